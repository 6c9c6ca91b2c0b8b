#include "syntax/outline.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace treefill::syntax {
namespace {

constexpr size_t kMaxStarts = 32;
constexpr size_t kMaxScopes = 512;
constexpr uint32_t kMaxRegexBytes = 1000;  // a longer one is a division
constexpr size_t kMaxRawOpening = 19;      // R, quote, delimiter and bracket

bool is_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isalnum(byte) || c == '_' || byte >= 0x80;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

char closer_of(char opener) { return opener == '(' ? ')' : opener == '[' ? ']' : '}'; }

// Reads over what is not code.
class Reader {
 public:
  Reader(std::string_view text, const LexicalRules& rules, uint32_t end) : text_(text.substr(0, end)), rules_(rules) {
    const auto begins_with = [&](std::string_view what) { may_begin_[static_cast<uint8_t>(what[0])] = true; };
    for (const std::string& comment : rules.line_comments) begins_with(comment);
    for (const auto& comment : rules.block_comments) begins_with(comment.first);
    for (const std::string& quote : rules.long_quotes) begins_with(quote);
    for (const char& quote : rules.quotes) begins_with({&quote, 1});
    for (std::string_view other : {"$", "/", "R"}) begins_with(other);
  }

  bool begins(uint32_t at, std::string_view what) const { return text_.substr(at).starts_with(what); }

  // The byte after the comment, string or literal that begins at `at`; `at` itself where none does. `before` is the
  // last character of code, 0 where there is none.
  uint32_t over(uint32_t at, char before) const {
    if (!may_begin_[static_cast<uint8_t>(text_[at])]) return at;
    for (const std::string& comment : rules_.line_comments)
      if (begins(at, comment)) return line_end(at);
    for (const auto& [open, close] : rules_.block_comments)
      if (begins(at, open)) return after(close, at + static_cast<uint32_t>(open.size()));
    for (const std::string& quote : rules_.long_quotes)
      if (begins(at, quote) && !(rules_.has_templates && quote == "`"))
        return over_string(at + static_cast<uint32_t>(quote.size()), quote, true);
    const char c = text_[at];
    if (rules_.quotes.find(c) != std::string::npos) return over_string(at + 1, {&c, 1}, false);
    if (c == '$' && rules_.has_dollar_quotes) return over_dollar_quote(at);
    if (c == '/' && rules_.has_regexes && is_before_value(before)) return over_regex(at);
    if (c == 'R' && rules_.has_raw_strings && begins(at, "R\"")) return over_raw_string(at);
    return at;
  }

  uint32_t over_word(uint32_t at) const {
    const bool is_number = std::isdigit(static_cast<unsigned char>(text_[at]));
    while (at < text_.size()) {
      const bool is_separator =
          is_number && rules_.has_raw_strings && text_[at] == '\'' && at + 1 < text_.size() && is_word(text_[at + 1]);
      if (!is_word(text_[at]) && !is_separator) break;
      ++at;
      if (rules_.has_raw_strings && begins(at, "R\"")) break;
    }
    return at;
  }

  // The line's end, backslashes before it heeded.
  uint32_t directive_end(uint32_t at) const {
    for (;;) {
      const uint32_t end = line_end(at);
      const bool is_continued = end > 0 && end < text_.size() && text_[end - (text_[end - 1] == '\r' ? 2 : 1)] == '\\';
      if (!is_continued) return end;
      at = end + 1;
    }
  }

  uint32_t line_end(uint32_t at) const {
    const size_t found = text_.find('\n', at);
    return static_cast<uint32_t>(found == std::string_view::npos ? text_.size() : found);
  }

  // The byte after what ends a template's text from `at` on, and what that is: '`', '$' for `${`, or 0 for the text's
  // end.
  std::pair<uint32_t, char> over_template(uint32_t at) const {
    for (; at < text_.size(); ++at) {
      if (text_[at] == '\\')
        ++at;
      else if (text_[at] == '`')
        return {at + 1, '`'};
      else if (begins(at, "${"))
        return {at + 2, '$'};
    }
    return {static_cast<uint32_t>(text_.size()), 0};
  }

  std::string_view text() const { return text_; }

 private:
  uint32_t after(std::string_view what, uint32_t at) const {
    const size_t found = at >= text_.size() ? std::string_view::npos : text_.find(what, at);
    return static_cast<uint32_t>(found == std::string_view::npos ? text_.size() : found + what.size());
  }

  uint32_t over_string(uint32_t at, std::string_view quote, bool is_long) const {
    while (at < text_.size()) {
      if (rules_.escape && text_[at] == rules_.escape) {
        at += 2;
      } else if (begins(at, quote)) {
        at += static_cast<uint32_t>(quote.size());
        if (rules_.escape || !begins(at, quote)) return at;
        at += static_cast<uint32_t>(quote.size());
      } else if (text_[at] == '\n' && !is_long) {
        return at;
      } else {
        ++at;
      }
    }
    return static_cast<uint32_t>(text_.size());
  }

  uint32_t over_dollar_quote(uint32_t at) const {
    uint32_t tag_end = at + 1;
    while (tag_end < text_.size() && is_word(text_[tag_end])) ++tag_end;
    if (tag_end >= text_.size() || text_[tag_end] != '$') return at;
    if (std::isdigit(static_cast<unsigned char>(text_[at + 1]))) return at;
    return after(text_.substr(at, tag_end + 1 - at), tag_end + 1);
  }

  uint32_t over_raw_string(uint32_t at) const {
    const size_t open = text_.substr(at, kMaxRawOpening).find('(');
    if (open == std::string_view::npos) return at + 1;
    const std::string close = ")" + std::string(text_.substr(at + 2, open - 2)) + "\"";
    return after(close, static_cast<uint32_t>(at + open + 1));
  }

  uint32_t over_regex(uint32_t at) const {
    bool is_in_class = false;
    const auto end = static_cast<uint32_t>(std::min<size_t>(text_.size(), size_t{at} + kMaxRegexBytes));
    for (uint32_t i = at + 1; i < end && text_[i] != '\n'; ++i) {
      if (text_[i] == '\\')
        ++i;
      else if (text_[i] == '[')
        is_in_class = true;
      else if (text_[i] == ']')
        is_in_class = false;
      else if (text_[i] == '/' && !is_in_class)
        return i + 1;
    }
    return at + 1;
  }

  static bool is_before_value(char before) {
    return !is_word(before) && before != ')' && before != ']' && before != '}';
  }

  std::string_view text_;
  const LexicalRules& rules_;
  std::array<bool, 256> may_begin_{};  // by byte: what is no code may begin with it
};

void add_start(Scope& scope, uint32_t start) {
  if (!scope.starts.empty() && scope.starts.back() == start) return;
  if (scope.starts.size() >= kMaxStarts) scope.starts.erase(scope.starts.begin());
  scope.starts.push_back(start);
}

// `}` ends a statement unless what comes next belongs to it: `};`, `}(…)`, `} | {`.
bool goes_on_after_brace(std::string_view text, uint32_t at) {
  while (at < text.size() && (is_blank(text[at]) || text[at] == '\n')) ++at;
  return at < text.size() && std::string_view(";,.()[]=?:|&").find(text[at]) != std::string_view::npos;
}

// The scopes of a text as it is read.
class ScopeReader {
 public:
  ScopeReader(std::string_view text, uint32_t begin, uint32_t at, const LexicalRules& rules)
      : reader_(text, rules, at), rules_(rules), at_(begin), end_(at) {
    scopes_.push_back({0, begin, begin, {begin}});
  }

  std::vector<Scope> read() {
    bool is_line_start = true;
    char before = 0;
    while (at_ < end_) {
      const char c = reader_.text()[at_];
      if (scopes_.back().opener == '`') {
        read_template();
        before = '`';
        continue;
      }
      if (c == '\n' || is_blank(c)) {
        is_line_start |= c == '\n';
        ++at_;
        continue;
      }
      if (rules_.has_directives && is_line_start && c == '#') {
        read_directive();
        continue;
      }
      if (rules_.has_commands && is_line_start && c == '\\') {
        at_ = std::min(reader_.line_end(at_) + 1, end_);
        add_start(scopes_.back(), at_);
        continue;
      }
      is_line_start = false;
      const uint32_t after = reader_.over(at_, before);
      if (after > at_) {
        if (!is_comment_at(at_)) before = ')';
        at_ = std::min(after, end_);
        continue;
      }
      if (is_word(c)) {
        at_ = reader_.over_word(at_);
        before = reader_.text()[at_ - 1];
        continue;
      }
      read_mark(c);
      before = c;
    }
    return std::move(scopes_);
  }

 private:
  bool is_comment_at(uint32_t at) const {
    return std::any_of(rules_.line_comments.begin(), rules_.line_comments.end(),
                       [&](const std::string& comment) { return reader_.begins(at, comment); }) ||
           std::any_of(rules_.block_comments.begin(), rules_.block_comments.end(),
                       [&](const auto& comment) { return reader_.begins(at, comment.first); });
  }

  void read_mark(char c) {
    ++at_;
    if (c == '{' || c == '(' || c == '[') {
      open(c);
    } else if (c == '`' && rules_.has_templates) {
      open('`');
    } else if (c == '}' || c == ')' || c == ']') {
      close(c);
    } else if (c == rules_.separator) {
      if (!rules_.has_blocks) scopes_.resize(1);  // a statement's end, whatever it has left open
      if (scopes_.back().opener != '(') add_start(scopes_.back(), at_);
    }
  }

  void open(char opener) {
    if (scopes_.size() < kMaxScopes) scopes_.push_back({opener, at_ - 1, at_, {at_}});
  }

  void close(char closer) {
    for (size_t i = scopes_.size() - 1; i > 0; --i) {
      const char opener = scopes_[i].opener;
      if (opener == '`') return;
      if (opener == '#' || closer_of(opener) != closer) continue;
      scopes_.resize(i);
      if (closer == '}' && rules_.separator == ';' && scopes_.back().opener != '`' &&
          !goes_on_after_brace(reader_.text(), at_))
        add_start(scopes_.back(), at_);
      return;
    }
  }

  void read_template() {
    const auto [after, stop] = reader_.over_template(at_);
    at_ = after;
    if (stop == '`') scopes_.pop_back();
    if (stop == '$') open('$');
  }

  void read_directive() {
    const uint32_t line = at_;
    const uint32_t end = reader_.directive_end(at_);
    uint32_t word = line + 1;
    while (word < end && is_blank(reader_.text()[word])) ++word;
    at_ = std::min(end + 1, end_);
    add_start(scopes_.back(), line);
    if (end >= end_) return;  // the place is in the directive itself
    const auto is = [&](std::string_view name) { return reader_.begins(word, name); };
    const auto conditional =
        std::find_if(scopes_.rbegin(), scopes_.rend(), [](const Scope& scope) { return scope.opener == '#'; });
    if (is("if")) {
      if (scopes_.size() < kMaxScopes) scopes_.push_back({'#', line, at_, {at_}});
      return;
    }
    if (conditional != scopes_.rend()) {
      const auto index = static_cast<size_t>(scopes_.rend() - conditional) - 1;
      if (is("el")) {  // another branch begins where the first one did
        scopes_.resize(index + 1);
        scopes_.back().body = at_;
        scopes_.back().starts = {at_};
        return;
      }
      if (is("endif")) scopes_.erase(scopes_.begin() + static_cast<ptrdiff_t>(index));
    }
    add_start(scopes_.back(), at_);
  }

  Reader reader_;
  const LexicalRules& rules_;
  uint32_t at_;
  uint32_t end_;
  std::vector<Scope> scopes_;
};

bool begins_with_word(std::string_view text, uint32_t at, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(), [&](const std::string& word) {
    if (!text.substr(at).starts_with(word)) return false;
    const size_t after = at + word.size();
    return !is_word(word.back()) || after >= text.size() || !is_word(text[after]);
  });
}

}  // namespace

std::vector<Scope> outline(std::string_view text, uint32_t begin, uint32_t at, const LexicalRules& rules) {
  return ScopeReader(text, begin, at, rules).read();
}

namespace {

// Closes the last of these brackets that fits, and all that was left open inside. False where none does, up to the
// template that is open.
bool close_bracket(std::vector<char>& open, char closer) {
  const size_t outermost = open.size() - std::min(open.size(), kMaxScopes);
  size_t match = open.size();
  while (match > outermost && open[match - 1] != '`' && closer_of(open[match - 1]) != closer) --match;
  if (match == outermost || open[match - 1] == '`') return false;
  open.resize(match - 1);
  return true;
}

// One character of code, and how it leaves the brackets.
struct Mark {
  char character;
  uint32_t at;
  bool is_surplus;  // a bracket that closes none of those that were opened
  size_t n_open;    // brackets and templates after it
};

// Tells `heed` of each character of code from `start` on, until it says that it has had enough.
template <typename Heed>
void read_code(const Reader& reader, uint32_t start, bool has_templates, Heed heed) {
  const std::string_view text = reader.text();
  std::vector<char> open;
  char before = 0;
  for (uint32_t i = start; i < text.size();) {
    if (!open.empty() && open.back() == '`') {
      const auto [after, stop] = reader.over_template(i);
      i = after;
      if (stop == '`') open.pop_back();
      if (stop == '$') open.push_back('$');
      before = stop == '`' ? ')' : '{';
      continue;
    }
    const uint32_t after = reader.over(i, before);
    if (after > i) {
      i = after;
      before = ')';
      continue;
    }
    const char c = text[i++];
    if (is_blank(c) || c == '\n') continue;
    before = c;
    const bool is_opener = c == '{' || c == '(' || c == '[' || (c == '`' && has_templates);
    const bool is_closer = c == '}' || c == ')' || c == ']';
    if (is_opener) open.push_back(c);
    const bool is_surplus = is_closer && !close_bracket(open, c);
    if (heed(Mark{c, i - 1, is_surplus, open.size()})) return;
  }
}

}  // namespace

uint32_t statement_end(std::string_view text, uint32_t start, uint32_t at, uint32_t n_scopes,
                       const LexicalRules& rules) {
  auto end = static_cast<uint32_t>(text.size());
  const Reader reader(text, rules, end);
  read_code(reader, start, rules.has_templates, [&](const Mark& mark) {
    const uint32_t after = mark.at + 1;
    if (mark.is_surplus && mark.at >= at && n_scopes-- == 0) {
      end = mark.at;
      return true;
    }
    if (mark.n_open > 0 || after <= at || n_scopes > 0) return false;
    const bool is_separator = mark.character == rules.separator;
    const bool is_block_end = mark.character == '}' && rules.has_blocks && !goes_on_after_brace(text, after);
    if (is_separator || is_block_end) end = is_separator && mark.character == ',' ? mark.at : after;
    return is_separator || is_block_end;
  });
  return end;
}

uint32_t n_closed_scopes(std::string_view text, uint32_t start, const LexicalRules& rules, std::string_view openers) {
  const Reader reader(text, rules, static_cast<uint32_t>(text.size()));
  uint32_t n_closed = 0;
  read_code(reader, start, rules.has_templates, [&](const Mark& mark) {
    n_closed += mark.is_surplus && std::any_of(openers.begin(), openers.end(),
                                               [&mark](char opener) { return closer_of(opener) == mark.character; });
    return false;
  });
  return n_closed;
}

namespace {

struct LineRead {
  uint32_t end;    // before the line ending
  bool is_ended;   // else the text is over
  bool is_closed;  // no bracket is left open
};

// Reads on to the end of a logical line, from its first character of code.
LineRead read_logical_line(const Reader& reader, uint32_t from, uint32_t limit, const LayoutWords& words) {
  const std::string_view text = reader.text();
  std::vector<char> open;
  for (uint32_t i = from; i < limit;) {
    const char c = text[i];
    const uint32_t after = reader.over(i, ')');
    if (after > i) {
      i = after;
    } else if (c == '\n') {
      uint32_t next = i + 1;
      while (next < limit && is_blank(text[next])) ++next;
      if (open.empty() || begins_with_word(text, next, words.resets)) return {i, true, open.empty()};
      ++i;
    } else if (c == '\\') {
      i += i + 2 < limit && text[i + 1] == '\r' && text[i + 2] == '\n' ? 3 : 2;
    } else {
      if (c == '{' || c == '(' || c == '[') open.push_back(c);
      const bool is_surplus = (c == '}' || c == ')' || c == ']') && !close_bracket(open, c);
      if (is_surplus && !open.empty()) open.pop_back();
      ++i;
    }
  }
  return {limit, false, open.empty()};
}

}  // namespace

uint32_t logical_line_end(std::string_view text, uint32_t at, const LexicalRules& rules, const LayoutWords& words) {
  const auto size = static_cast<uint32_t>(text.size());
  const Reader reader(text, rules, size);
  for (uint32_t start = 0; start < size;) {
    const LineRead line = read_logical_line(reader, start, size, words);
    if (!line.is_ended) return 0;
    if (line.end >= at) return line.is_closed ? line.end + 1 : 0;
    start = line.end + 1;
  }
  return 0;
}

Layout layout(std::string_view text, uint32_t begin, uint32_t at, const LexicalRules& rules, const LayoutWords& words) {
  struct Level {
    uint32_t indent;
    std::vector<LogicalLine> lines;
  };
  const Reader reader(text, rules, at);
  std::vector<Level> levels;
  uint32_t line = begin;
  while (line < at) {
    // One logical line, or one that is blank or a comment.
    LogicalLine current{line, line, line, false};
    uint32_t indent = 0;
    for (; current.code < at && is_blank(text[current.code]); ++current.code)
      indent = text[current.code] == '\t' ? indent / 8 * 8 + 8 : text[current.code] == '\f' ? 0 : indent + 1;
    const auto [i, is_ended, is_closed] = read_logical_line(reader, current.code, at, words);
    if (!is_ended) break;  // the place is in this one
    current.end = i;
    line = i + 1;
    const bool is_code = current.code < i && text[current.code] != '\n' &&
                         std::none_of(
                             rules.line_comments.begin(), rules.line_comments.end(),
                             [&](const std::string& comment) { return reader.begins(current.code, comment); });
    if (!is_code) continue;
    while (!levels.empty() && levels.back().indent > indent) levels.pop_back();
    if (levels.empty() || levels.back().indent < indent) {
      if (!levels.empty()) levels.back().lines.back().has_block = true;
      levels.push_back({indent, {}});
    }
    std::vector<LogicalLine>& lines = levels.back().lines;
    const bool goes_on = begins_with_word(text, current.code, words.continuations) ||
                         (!lines.empty() && begins_with_word(text, lines.back().code, words.prefixes));
    if (!goes_on) lines.clear();
    lines.push_back(current);
  }
  Layout found;
  for (Level& level : levels) found.levels.push_back(std::move(level.lines));
  found.current = std::min(line, at);
  return found;
}

}  // namespace treefill::syntax
