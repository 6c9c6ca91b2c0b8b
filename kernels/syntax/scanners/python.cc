// Python: line ends, indentation and strings.
//
// The memory is a byte that says whether the innermost string is formatted, the number of open strings and a byte of
// flags for each, and the columns of the enclosing blocks, two bytes each, but for the outermost at 0. Tree-sitter has
// room for 1024 bytes: a memory grows past that in about 510 nested blocks, by at most a byte, as the scanner's own
// does (in tree-sitter that ends the process), and deeper blocks are left out of it.
//
// The grammar takes more than the language. Where `is_strict`, refused is
//   x =          a line's end inside a statement, where no bracket is open;
//   1
//
//   if x:        a block that does not begin;
//   y
//
//   x = 1        a line that is further in, or
//       y = 2
//
//   if x:
//       y
//     z          further out, but no enclosing block's;
//
//   "
//   "            a string of one line over two,
//
// and an indentation of tabs where the block's own is of spaces, the other way round, or with tabs after spaces. Python
// compares columns with tabs of 8 and of 1; the memory has only those of 8, so the block's own indentation is searched
// for in the text. A blank line, a comment's line and what follows a backslash are never refused.

#include <optional>
#include <set>
#include <vector>

#include "syntax/scanners/reader.h"
#include "syntax/scanners/scanners.h"

namespace treefill::syntax {
namespace {

enum Token : uint8_t {
  kNewline,
  kIndent,
  kDedent,
  kStringStart,
  kStringContent,
  kEscapeInterpolation,
  kStringEnd,
  kComment,
  kCloseParen,
  kCloseBracket,
  kCloseBrace,
  kExcept,
};

enum Flag : uint8_t {  // of a string, by its opening
  kSingleQuote = 1,
  kDoubleQuote = 2,
  kBackQuote = 4,
  kRaw = 8,
  kFormat = 16,
  kTriple = 32,
  kBytes = 64,
};
constexpr uint8_t kQuotes = kSingleQuote | kDoubleQuote | kBackQuote;

constexpr size_t kMaxStrings = 255;
constexpr size_t kMaxMemory = 1024;  // bytes; no column is begun from there on
constexpr uint32_t kTab = 8;

// A quote's own flag, and for other bytes that may matter inside a string the flag of those where they do.
constexpr uint8_t kAlways = 128;
constexpr uint8_t kLineFeed = 64;
constexpr auto kStringBytes = [] {
  std::array<uint8_t, 256> classes{};
  classes['\''] = kSingleQuote;
  classes['"'] = kDoubleQuote;
  classes['`'] = kBackQuote;
  classes['{'] = classes['}'] = kFormat;
  classes['\n'] = kLineFeed;
  classes['\\'] = classes['\0'] = kAlways;
  return classes;
}();

constexpr auto kPrefixFlags = [] {
  std::array<uint8_t, 128> flags{};
  flags['f'] = flags['F'] = flags['t'] = flags['T'] = kFormat;
  flags['r'] = flags['R'] = kRaw;
  flags['b'] = flags['B'] = kBytes;
  flags['u'] = flags['U'] = kAlways;
  return flags;
}();

constexpr ByteSet kCommentStops = bytes_of(std::string_view("\n\0", 2));

class Memory {
 public:
  explicit Memory(std::string_view memory) {
    if (memory.size() < 2) return;
    is_in_format = memory[0] != 0;
    strings = memory.substr(2, static_cast<uint8_t>(memory[1]));
    columns_ = memory.substr(std::min(2 + strings.size(), memory.size()));
  }

  size_t n_columns() const { return columns_.size() / 2; }
  uint16_t column(size_t i) const {  // 0 is the outermost block's
    if (i == 0) return 0;
    const auto low = static_cast<uint8_t>(columns_[2 * i - 2]);
    return static_cast<uint16_t>(low | static_cast<uint8_t>(columns_[2 * i - 1]) << 8);
  }
  uint16_t column() const { return column(n_columns()); }
  // The innermost block's that is not further in.
  uint16_t column_up_to(uint16_t limit) const {
    size_t i = n_columns();
    while (column(i) > limit) --i;
    return column(i);
  }

  std::string same() const { return write(strings, {}, 0); }
  std::string with_column(uint16_t column) const {
    const char bytes[] = {static_cast<char>(column & 0xFF), static_cast<char>(column >> 8)};
    return write(strings, std::string_view(bytes, 2), 0);
  }
  std::string without_column() const { return write(strings, {}, 1); }
  std::string with_string(uint8_t flags) const {
    Memory changed = *this;
    changed.is_in_format = (flags & kFormat) != 0;
    return changed.write(std::string(strings) + static_cast<char>(flags), {}, 0);
  }
  std::string without_string() const {
    Memory changed = *this;
    changed.is_in_format = false;
    return changed.write(strings.substr(0, strings.size() - 1), {}, 0);
  }

  bool is_in_format = false;
  std::string_view strings;

 private:
  std::string write(std::string_view all_strings, std::string_view more_column, size_t n_fewer_columns) const {
    const std::string_view kept = all_strings.substr(0, kMaxStrings);
    std::string memory{static_cast<char>(is_in_format), static_cast<char>(kept.size())};
    memory += kept;
    const size_t n_room = memory.size() < kMaxMemory ? (kMaxMemory - memory.size() + 1) / 2 : 0;
    const size_t n_kept = std::min(n_columns() - n_fewer_columns, n_room);
    memory += columns_.substr(0, 2 * n_kept);
    if (n_kept < n_room) memory += more_column;
    return memory;
  }

  std::string_view columns_;
};

// What is before the next token.
struct Layout {
  bool has_line_end = false;
  uint16_t column = 0;
  int32_t comment_column = -1;  // of the first comment that has a line of its own
  bool is_blocked = false;      // there is something in it that is no token's beginning: the scanner finds nothing
  bool has_line_feed = false;
  bool is_plain = true;     // nothing in it that makes the last line's column uncertain
  uint32_t line_start = 0;  // of the last line
};

uint32_t width_of(std::string_view indentation) {
  const auto n_tabs = static_cast<uint32_t>(std::count(indentation.begin(), indentation.end(), '\t'));
  return n_tabs * kTab + static_cast<uint32_t>(indentation.size()) - n_tabs;
}

// Has the line nothing after its indentation of that length, or only what may not be a statement's beginning?
bool is_blank(std::string_view line, size_t length) {
  return length == line.size() || std::string_view("\r\f\\#").find(line[length]) != std::string_view::npos;
}

// A text's lines from its first line feed on: their indentations, and whether there is more. Of lines that are alike
// one after the other one is kept, and none that is blank but the last.
std::string lines_in(std::string_view text) {
  std::string lines;
  std::string before;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at + 1), text.size());
    const std::string_view line = text.substr(at + 1, end - at - 1);
    const size_t length = std::min(line.find_first_not_of(" \t"), line.size());
    std::string kept = '\n' + std::string(line.substr(0, length));
    if (length < line.size()) kept += is_blank(line, length) ? line[length] : 'x';
    const bool is_last = end == text.size();
    if (is_last || (!is_blank(line, length) && kept != before)) lines += kept;
    before = kept;
    at = end;
  }
  return lines;
}

// Is there a byte in what is before a token, comments left out, that is neither a blank nor a line feed?
bool has_odd_layout(std::string_view text) {
  bool is_comment = false;
  for (char c : text) {
    if (c == '\0' || (!is_comment && (c == '\r' || c == '\f' || c == '\\'))) return true;
    is_comment = c == '#' || (is_comment && c != '\n');
  }
  return false;
}

class PythonScanner : public ScannerModel {
 public:
  Answer scan(const Question& question) const override {
    Scan scan(question);
    return scan.run();
  }

  std::string past(std::string_view text) const override;
  bool remembers_layout_only() const override { return true; }

 private:
  // One question's state.
  class Scan {
   public:
    explicit Scan(const Question& question)
        : question_(question), valid_(question.valid), memory_(question.memory), reader_(question) {
      is_recovering_ = valid_[kStringContent] && valid_[kIndent];
      is_in_brackets_ = valid_[kCloseParen] || valid_[kCloseBracket] || valid_[kCloseBrace];
    }

    Answer run() {
      if (!memory_.strings.empty() && !is_recovering_) {
        const auto flags = static_cast<uint8_t>(memory_.strings.back());
        const bool may_be_brace = valid_[kEscapeInterpolation] && (flags & kFormat) != 0;
        if (may_be_brace && reader_.is_unknown()) {
          const ExternalSet other = valid_[kStringContent] ? string_tokens(false) : layout_tokens(Layout());
          return undecided(only(kEscapeInterpolation) | other, true);
        }
        if (may_be_brace && (reader_.next() == '{' || reader_.next() == '}')) return doubled_brace();
        if (valid_[kStringContent])
          if (auto answer = string(flags)) return *std::move(answer);
      }
      return layout();
    }

   private:
    Answer doubled_brace() {
      const int32_t brace = reader_.next();
      reader_.advance();
      if (reader_.is_unknown()) return undecided(only(kEscapeInterpolation), true);
      if (reader_.next() != brace) return declined();
      reader_.advance();
      return found(kEscapeInterpolation, reader_.position(), memory_.same());
    }

    Answer content(uint32_t end) const { return found(kStringContent, end, memory_.same()); }

    // In a string: its text, or its end. Nothing where the text ends before either.
    std::optional<Answer> string(uint8_t flags) {
      const bool is_triple = (flags & kTriple) != 0;
      const uint8_t stops = kAlways | (flags & (kQuotes | kFormat)) | (is_triple ? 0 : kLineFeed);
      bool has_content = false;
      for (uint32_t open = reader_.position();;) {  // an escape that may not be whole, or the text's end
        const bool is_more = reader_.skip_until([&](uint8_t byte) { return (kStringBytes[byte] & stops) != 0; });
        has_content |= is_more;
        const uint32_t end = reader_.position();
        const auto content_or_nothing = [&] { return has_content ? content(end) : declined(); };
        if (is_more || !reader_.is_unknown()) open = end;
        if (reader_.is_unknown()) {
          tell_rest_of_string(is_triple, has_content, open);
          return undecided(string_tokens(has_content), true);
        }
        switch (reader_.next()) {
          case '\0':
            return std::nullopt;
          case '{':
          case '}':
            return content_or_nothing();
          case '\n':
            if (question_.is_strict) return refused();
            if (has_content) return declined();
            reader_.advance();
            has_content = true;
            break;
          case '\\':
            if ((flags & kRaw) != 0) {
              skip_raw_escape(flags);
            } else {
              if ((flags & kBytes) == 0) return content_or_nothing();
              reader_.advance();
              if (reader_.is_unknown()) break;
              // No escape in bytes; the scanner takes the character after it with it, whatever it is.
              const bool is_plain = reader_.next() == 'N' || reader_.next() == 'u' || reader_.next() == 'U';
              if (!is_plain) return content_or_nothing();
              reader_.advance();
              reader_.advance();
              has_content = true;
            }
            break;
          default:
            return is_triple ? triple_quote(has_content) : quote(has_content);
        }
      }
    }

    void skip_raw_escape(uint8_t flags) {
      reader_.advance();
      const int32_t escaped = reader_.next();
      const bool is_quote = escaped > 0 && escaped < 128 && (kStringBytes[escaped] & flags & kQuotes) != 0;
      if (is_quote || escaped == '\\') reader_.advance();
      if (reader_.next() == '\r') {
        reader_.advance();
        if (reader_.next() == '\n') reader_.advance();
      } else if (reader_.next() == '\n') {
        reader_.advance();
      }
    }

    // Its content is as good as one letter, but for the indentations of lines in it, which `past` is told. In a string
    // of one line it matters where a line feed is.
    void tell_rest_of_string(bool is_triple, bool has_content, uint32_t open) const {
      if (!question_.rest) return;
      const std::string_view text = question_.text.substr(question_.position, open - question_.position);
      const size_t line_feed = text.find('\n');
      std::string before(has_content ? 1 : 0, 'a');
      if (line_feed != std::string_view::npos)
        before = is_triple ? before + lines_in(text.substr(line_feed)) : std::string(text);
      tell_rest(question_, before, open);
      // A line's end in it is all that the scanner would find nothing for.
      question_.rest->is_never_lexed = question_.is_strict && has_content;
    }

    // The text's last line and one comment before it are all that tells what is found.
    void tell_rest_of_layout() const {
      if (!question_.rest) return;
      const std::string_view text = question_.text.substr(question_.position);
      question_.rest->text = text;
      const size_t last = text.rfind('\n');
      const bool is_blank_line = text.find_first_not_of(" \t") == std::string_view::npos;
      if (is_blank_line && !text.empty() && question_.position > 0) question_.rest->text = " ";  // no line begins in it
      if (last == std::string_view::npos || has_odd_layout(text)) return;
      const std::string_view line = text.substr(last);
      if (line.find_first_not_of(" \t", 1) != line.npos && line[line.find_first_not_of(" \t", 1)] != '#') return;
      const size_t comment = text.find('#');
      std::string& rest = question_.rest->text;
      rest.clear();
      if (comment < last) {
        const size_t start = std::min(text.rfind('\n', comment), comment);
        rest = text.substr(start, comment - start + 1);
      }
      rest += line.substr(0, std::min(line.find('#'), line.size() - 1) + 1);
    }

    Answer quote(bool has_content) {
      if (has_content) return content(reader_.position());
      reader_.advance();
      return found(kStringEnd, reader_.position(), memory_.without_string());
    }

    Answer triple_quote(bool has_content) {
      const uint32_t start = reader_.position();
      const int32_t quote = reader_.next();
      for (int n_quotes = 1; n_quotes < 3; ++n_quotes) {
        reader_.advance();
        if (reader_.is_unknown()) {
          tell_rest_of_string(true, has_content, start);
          return undecided(only(kStringContent) | only_if(!has_content, kStringEnd), false);
        }
        if (reader_.next() != quote) return content(reader_.position());
      }
      if (has_content) return content(start);
      reader_.advance();
      return found(kStringEnd, reader_.position(), memory_.without_string());
    }

    // What an open string may go on with; where the whole text ends in it, a line does, too.
    ExternalSet string_tokens(bool has_content) const {
      return only(kStringContent) | only_if(!has_content, kStringEnd) | only_if(may_be_newline(), kNewline) |
             only_if(may_be_dedent(), kDedent);
    }

    Answer layout() {
      const uint32_t start = reader_.position();
      Layout layout;
      layout.line_start = start;
      read_layout(layout);
      if (is_stray(layout) && !has_valid_layout_token()) return refused();
      if (reader_.is_unknown()) {
        tell_rest_of_layout();
        return undecided(layout_tokens(layout), true);
      }
      if (layout.is_blocked) return declined();
      if (is_misplaced(layout)) return refused();

      if (layout.has_line_end) {
        if (valid_[kIndent] && layout.column > memory_.column())
          return found(kIndent, start, memory_.with_column(layout.column));
        const bool is_string = reader_.next() == '"' || reader_.next() == '\'' || reader_.next() == '`';
        const bool is_dedent = valid_[kDedent] || !(valid_[kStringStart] && is_string);
        if (is_dedent && may_be_dedent() && layout.column < memory_.column() &&
            layout.comment_column < memory_.column())
          return found(kDedent, start, memory_.without_column());
        if (may_be_newline()) return found(kNewline, start, memory_.same());
      }
      if (is_stray(layout)) return refused();
      return layout.comment_column == -1 && valid_[kStringStart] ? string_start() : declined();
    }

    // Up to the next token; or up to the unknown.
    void read_layout(Layout& layout) {
      const bool are_comments_layout = has_valid_layout_token() || valid_[kExcept];
      for (;;) {
        const int32_t next = reader_.next();
        switch (next) {
          case '\n':
            reader_.advance();
            layout.has_line_end = layout.has_line_feed = layout.is_plain = true;
            layout.column = 0;
            layout.line_start = reader_.position();
            continue;
          case ' ':
          case '\t':
            layout.column = static_cast<uint16_t>(layout.column + (next == ' ' ? 1 : kTab));
            reader_.advance();
            continue;
          case '\r':
          case '\f':
            layout.column = 0;
            layout.is_plain = false;
            reader_.advance();
            continue;
          case '#':
            if (!are_comments_layout) return;
            layout.is_blocked = !layout.has_line_end;
            if (layout.is_blocked) return;
            if (layout.comment_column == -1) layout.comment_column = layout.column;
            reader_.skip_until(kCommentStops);
            if (reader_.is_unknown()) return;
            if (reader_.next() == '\n') {
              layout.line_start = reader_.position() + 1;
              layout.is_plain = true;
            }
            reader_.advance();
            layout.column = 0;
            continue;
          case '\\':
            layout.is_plain = false;
            reader_.advance();
            if (reader_.next() == '\r') reader_.advance();
            if (reader_.is_unknown()) return;
            layout.is_blocked = reader_.next() != '\n' && !reader_.is_at_end();
            if (layout.is_blocked) return;
            reader_.advance();
            continue;
          default:
            if (!reader_.is_at_end()) return;
            layout.column = 0;
            layout.has_line_end = true;
            return;
        }
      }
    }

    bool has_valid_layout_token() const { return valid_[kNewline] || valid_[kIndent] || valid_[kDedent]; }
    bool may_be_newline() const { return valid_[kNewline] && !is_recovering_; }
    // The scanner ends blocks even where the grammar does not expect it.
    bool may_be_dedent() const {
      return (valid_[kDedent] || (!valid_[kNewline] && !is_in_brackets_)) && memory_.column() > 0 &&
             !memory_.is_in_format;
    }

    ExternalSet layout_tokens(const Layout& layout) const {
      const bool is_newline = layout.has_line_end && may_be_newline();
      const bool may_be_string = layout.comment_column == -1 && !is_newline;
      return only_if(valid_[kIndent], kIndent) |
             only_if(may_be_dedent() && layout.comment_column < memory_.column(), kDedent) |
             only_if(may_be_newline(), kNewline) | only_if(valid_[kStringStart] && may_be_string, kStringStart);
    }

    Answer string_start() {
      uint8_t flags = 0;
      const auto flag = [&](const auto& table) -> uint8_t {
        return reader_.next() > 0 && reader_.next() < 128 ? table[static_cast<size_t>(reader_.next())] : 0;
      };
      for (; flag(kPrefixFlags) != 0; reader_.advance()) flags |= flag(kPrefixFlags) & ~kAlways;
      if (reader_.is_unknown()) return undecided(only(kStringStart), true);
      const uint8_t quote = flag(kStringBytes) & kQuotes;
      if (quote == 0) return declined();
      const int32_t character = reader_.next();
      reader_.advance();
      uint32_t end = reader_.position();
      flags |= quote;
      if (quote != kBackQuote) {
        int n_more = 0;
        for (; n_more < 2 && reader_.next() == character; ++n_more) reader_.advance();
        if (n_more < 2 && reader_.is_unknown()) return undecided(only(kStringStart), false);
        if (n_more == 2) {
          end = reader_.position();
          flags |= kTriple;
        }
      }
      return found(kStringStart, end, memory_.with_string(flags));
    }

    // A line ends where no statement does.
    bool is_stray(const Layout& layout) const {
      return question_.is_strict && layout.has_line_feed && question_.is_outside_brackets &&
             !question_.is_statement_start;
    }

    // A line begins at a column where none may, or the text ends where a block must begin.
    bool is_misplaced(const Layout& layout) const {
      if (!question_.is_strict || is_recovering_ || is_in_brackets_) return false;
      if (reader_.is_at_end()) return valid_[kIndent];
      const bool is_statement = has_valid_layout_token() || question_.is_statement_start;
      const bool is_line_start = layout.has_line_feed || question_.position == 0;
      const bool is_certain = layout.is_plain && reader_.next() != '#';
      if (!is_statement || !is_line_start || !is_certain) return false;
      if (layout.column > memory_.column() && !valid_[kIndent]) return true;
      if (layout.column <= memory_.column() && valid_[kIndent]) return true;
      const uint16_t column = memory_.column_up_to(layout.column);
      if (layout.column < memory_.column() && layout.column != column) return true;
      const std::string_view text = question_.text;
      const uint32_t line_start = layout.line_start;
      return !is_consistent(text.substr(0, line_start), text.substr(line_start, reader_.position() - line_start),
                            column);
    }

    // Is the indentation that of the enclosing block, which is at `column`, and what is more of the same kind?
    static bool is_consistent(std::string_view before, std::string_view indentation, uint16_t column) {
      size_t n_shared = 0;
      uint32_t reached = 0;
      while (reached < column && n_shared < indentation.size()) reached += indentation[n_shared++] == '\t' ? kTab : 1;
      if (reached != column) return false;
      const std::string_view shared = indentation.substr(0, n_shared);
      const size_t space = indentation.find(' ', n_shared == 0 ? 0 : n_shared - 1);
      const size_t tab = indentation.rfind('\t');
      const bool is_mixed =
          space != std::string_view::npos && tab != std::string_view::npos && tab >= n_shared && space < tab;
      return !is_mixed && (shared.empty() || !is_other(before, shared, column));
    }

    // Did the block's lines so far have another one, and no line at all this one? The lines are read backwards, those
    // inside brackets and strings like all others, so what they show of another indentation is doubted.
    static bool is_other(std::string_view lines, std::string_view indentation, uint32_t column) {
      bool is_doubtful = false;
      bool is_in_block = true;
      while (!lines.empty() && (is_in_block || is_doubtful)) {
        lines.remove_suffix(1);  // the line feed
        const size_t line_feed = lines.rfind('\n');
        const std::string_view line = lines.substr(line_feed == std::string_view::npos ? 0 : line_feed + 1);
        lines.remove_suffix(line.size());
        const size_t length = std::min(line.find_first_not_of(" \t"), line.size());
        if (is_blank(line, length)) continue;
        const std::string_view its = line.substr(0, length);
        if (its == indentation) return false;
        const uint32_t width = width_of(its);
        is_doubtful |= is_in_block && width == column;
        is_in_block = is_in_block && width >= column;
      }
      return is_doubtful;
    }

    const Question& question_;
    const bool* valid_;
    Memory memory_;
    Reader reader_;
    bool is_recovering_;
    bool is_in_brackets_;
  };
};

bool has_no_tab(const std::set<std::string_view>& indentations) {
  return std::none_of(indentations.begin(), indentations.end(),
                      [](std::string_view each) { return each.find('\t') != std::string_view::npos; });
}

// Only `is_other` looks back, and it asks two things: whether a line of the block has an indentation of that width that
// is another one, and whether any line at all has this one. So enough is a line for each indentation that there was,
// and then, of the lines that no later one with less ends the blocks of, one for each. Where there is no tab only those
// of the latter matter that one with a tab could be as wide as.
std::string PythonScanner::past(std::string_view text) const {
  std::set<std::string_view> all;
  std::vector<std::string_view> open;
  std::string sequence;  // without repeats, for texts that have no line at the margin
  size_t at = 0;
  for (size_t end; (end = text.find('\n', at)) != std::string_view::npos; at = end + 1) {
    const std::string_view line = text.substr(at, end - at);
    const size_t length = std::min(line.find_first_not_of(" \t"), line.size());
    if (is_blank(line, length)) continue;
    const std::string_view its = line.substr(0, length);
    all.insert(its);
    while (!open.empty() && width_of(open.back()) > width_of(its)) open.pop_back();
    if (std::find(open.begin(), open.end(), its) == open.end()) open.push_back(its);
    if (!sequence.ends_with('\n' + std::string(its) + "x\n")) sequence += std::string(its) + "x\n";
  }
  const std::string_view line = text.substr(at);
  const size_t length = std::min(line.find_first_not_of(" \t"), line.size());
  const std::string_view last = line.substr(0, length);
  std::string past;
  const auto add = [&past](std::string_view indentation) { past.append(indentation).append("x\n"); };
  if (has_no_tab(all) && last.find('\t') == std::string_view::npos) {
    for (std::string_view each : open)
      if (each.size() >= kTab) add(each);
    if (last.size() >= kTab) past += last;
  } else {
    if (all.contains("")) {
      for (std::string_view each : all)
        if (!each.empty()) add(each);
      for (std::string_view each : open) add(each);
      if (open.empty() || !open.front().empty()) add("");
    } else {
      past = sequence;
    }
    past += last;
  }
  if (length < line.size()) past += is_blank(line, length) ? line[length] : 'x';
  return past;
}

}  // namespace

const ScannerModel& python_scanner() {
  static const PythonScanner scanner;
  return scanner;
}

}  // namespace treefill::syntax
