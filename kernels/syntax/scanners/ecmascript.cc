// JavaScript and TypeScript: where a line's end is a semicolon, template text, JSX text, `?` and HTML-like comments.
//
// Neither scanner has a memory. Both are asked before white space is skipped, so a semicolon's place is where they
// begin, however far they look: over all comments to the next token. A helper that meets the unknown stops there
// with any result; that the reader stands before the unknown is what counts, and is looked at before the result is.

#include "syntax/scanners/reader.h"
#include "syntax/scanners/scanners.h"

namespace treefill::syntax {
namespace {

enum Token : uint8_t {
  kSemicolon,
  kTemplateChars,
  kTernaryMark,
  kHtmlComment,
  kLogicalOr,
  kEscapeSequence,
  kRegexPattern,
  kJsxText,
  kSignatureSemicolon,  // TypeScript's alone
};

constexpr uint8_t kSeparatorLead = 0xE2;  // of U+2028 and U+2029, which end lines, too

constexpr ByteSet with(ByteSet set, uint8_t byte) {
  set[byte] = true;
  return set;
}
constexpr ByteSet with_nul(std::string_view members) { return with(bytes_of(members), 0); }

constexpr ByteSet kTemplateStops = with_nul("`$\\");
constexpr ByteSet kJsxStops = with_nul("<>{}&");
constexpr ByteSet kLineStops = with_nul("\n");
constexpr ByteSet kAnyLineStops = with(kLineStops, kSeparatorLead);
constexpr ByteSet kBlockStops = with_nul("*");
constexpr ByteSet kBlockOrLineStops = with(with_nul("*\n"), kSeparatorLead);

bool is_separator(int32_t character) { return character == 0x2028 || character == 0x2029; }
bool is_line_end(int32_t character) { return character == '\n' || is_separator(character); }

void skip_line(Reader& reader) {
  for (;;) {
    reader.skip_until(kAnyLineStops);
    if (reader.next() == 0 || reader.is_unknown() || is_line_end(reader.next())) return;
    reader.advance();
  }
}

ScannerModel::Answer template_chars(Reader& reader, const ScannerModel::Question& question) {
  for (bool has_content = false;; has_content = true) {
    has_content |= reader.skip_until(kTemplateStops);
    const uint32_t end = reader.position();
    const bool is_dollar = reader.next() == '$';
    if (is_dollar) reader.advance();
    if (reader.is_unknown()) {
      tell_rest(question, has_content ? "a" : "", end);
      return undecided(only(kTemplateChars), true);
    }
    const bool is_end = is_dollar ? reader.next() == '{' : reader.next() != 0;
    if (is_end) return has_content ? found(kTemplateChars, end) : declined();
    if (!is_dollar) return declined();
  }
}

// Text between tags; white space does not count from a line's end on.
bool skip_jsx_text(Reader& reader) {
  bool is_after_line_feed = false;
  while (!reader.is_unknown() && (reader.next() < 0 || reader.next() > 127 || !kJsxStops[reader.next()])) {
    is_after_line_feed = reader.next() == '\n' || (is_after_line_feed && is_space(reader.next()));
    if (!is_after_line_feed) {
      reader.skip_until(kJsxStops);
      return true;
    }
    reader.advance();
  }
  return false;
}

ScannerModel::Answer html_comment(Reader& reader) {
  while (is_space(reader.next()) || is_separator(reader.next())) reader.advance();
  for (char character : std::string_view(reader.next() == '<' ? "<!--" : "-->")) {
    if (reader.is_unknown()) return undecided(only(kHtmlComment), true);
    if (reader.next() != character) return declined();
    reader.advance();
  }
  skip_line(reader);
  return reader.is_unknown() ? undecided(only(kHtmlComment), false) : found(kHtmlComment, reader.position());
}

// The rest of an undecided text of white space and comments, of which neither the length nor the words matter. What is
// not of that kind is kept, and so is all of a text with characters in it that only some scanners take for line ends.
void tell_gap(const ScannerModel::Question& question) {
  if (!question.rest) return;
  const std::string_view text = question.text.substr(question.position);
  if (text.find_first_of(std::string_view("\xE2\0", 2)) != std::string_view::npos) {
    question.rest->text = text;
    return;
  }
  std::string& rest = question.rest->text;
  const auto line_end = [](std::string_view part) { return part.find('\n') != std::string_view::npos ? "\n" : ""; };
  for (size_t at = 0; at < text.size();) {
    const std::string_view open = text.substr(at);
    const size_t n_blank = std::min(open.find_first_not_of(" \t\n\v\f\r"), open.size());
    if (n_blank > 0) {
      const std::string_view end = line_end(open.substr(0, n_blank));
      rest += end.empty() ? " " : end;
      at += n_blank;
    } else if (open.starts_with("//")) {
      const size_t end = open.find('\n');
      rest += "//";
      if (end == std::string_view::npos) return;
      rest += '\n';
      at += end + 1;
    } else if (open.starts_with("/*")) {
      const size_t end = open.find("*/", 2);
      const std::string_view inside = open.substr(2, end == std::string_view::npos ? end : end - 2);
      rest += "/*";
      rest += line_end(inside);
      if (end == std::string_view::npos) {
        if (inside.ends_with('*')) rest += '*';
        return;
      }
      rest += "*/";
      at += end + 2;
    } else {
      rest += open;
      return;
    }
  }
}

// What only a word that is no `in` and no `instanceof` lets be a semicolon.
bool is_other_word(Reader& reader) {
  reader.advance();
  if (reader.next() != 'n') return true;
  reader.advance();
  if (!is_letter(reader.next())) return false;
  for (char character : std::string_view("stanceof")) {
    if (reader.next() != character) return true;
    reader.advance();
  }
  return is_letter(reader.next());
}

// What comes after the one character that a token began with.
int32_t second(Reader& reader) {
  reader.advance();
  return reader.next();
}

// Does what comes after a line's end begin a statement of its own? Not what is in `goes_on`.
bool begins_statement(Reader& reader, const ByteSet& goes_on) {
  switch (reader.next()) {
    case '+':
      return second(reader) == '+';
    case '-':
      return second(reader) == '-';
    case '!':
      return second(reader) != '=';
    case 'i':
      return is_other_word(reader);
    default:
      return reader.next() < 0 || reader.next() > 127 || !goes_on[reader.next()];
  }
}

class EcmaScriptScanner : public ScannerModel {
 public:
  Answer scan(const Question& question) const override {
    const bool* valid = question.valid;
    Reader reader(question);
    if (valid[kTemplateChars]) return valid[kSemicolon] ? declined() : template_chars(reader, question);

    const bool is_comment_valid =
        valid[kHtmlComment] && !valid[kLogicalOr] && !valid[kEscapeSequence] && !valid[kRegexPattern];
    if (valid[kJsxText]) {
      const bool is_text = skip_jsx_text(reader);
      if (reader.is_unknown() && is_text) {
        tell_rest(question, "a", reader.position());
        return undecided(only(kJsxText), false);
      }
      if (reader.is_unknown()) tell_gap(question);
      if (reader.is_unknown())
        return undecided(only(kJsxText) | only_if(may_be_semicolon(valid), kSemicolon) |
                             only_if(valid[kTernaryMark], kTernaryMark) | only_if(is_comment_valid, kHtmlComment),
                         true);
      if (is_text) return found(kJsxText, reader.position());
    }
    if (may_be_semicolon(valid)) {
      const uint32_t start = reader.position();
      bool has_comment = false;
      const bool is_semicolon = this->is_semicolon(reader, valid, has_comment);
      const bool may_be_mark = valid[kTernaryMark] && !has_comment;
      if (reader.is_unknown()) tell_gap(question);
      if (reader.is_unknown()) return undecided(only(kSemicolon) | only_if(may_be_mark, kTernaryMark), true);
      if (is_semicolon) return found(kSemicolon, start);
      return may_be_mark && reader.next() == '?' ? ternary_mark(reader) : declined();
    }
    if (valid[kTernaryMark]) return ternary_mark(reader);
    return is_comment_valid ? html_comment(reader) : declined();
  }

 protected:
  virtual bool may_be_semicolon(const bool* valid) const = 0;
  virtual bool is_semicolon(Reader& reader, const bool* valid, bool& has_comment) const = 0;
  virtual bool is_ternary(Reader& reader) const = 0;

 private:
  Answer ternary_mark(Reader& reader) const {
    skip_space(reader);
    if (reader.is_unknown()) return undecided(only(kTernaryMark), true);
    if (reader.next() != '?') return declined();
    reader.advance();
    const uint32_t end = reader.position();
    const bool is_mark = is_ternary(reader);
    if (reader.is_unknown()) return undecided(only(kTernaryMark), true);
    return is_mark ? found(kTernaryMark, end) : declined();
  }
};

class JavaScriptScanner : public EcmaScriptScanner {
 protected:
  bool may_be_semicolon(const bool* valid) const override { return valid[kSemicolon]; }

  bool is_semicolon(Reader& reader, const bool* valid, bool& has_comment) const override {
    for (;;) {
      if (reader.is_unknown()) return false;
      if (reader.next() == 0) return true;
      if (reader.next() == '/') {
        const Gap gap = skip_gap(reader, true, has_comment);
        if (gap == Gap::kSlash) return false;
        const bool may_follow = reader.next() != ',' && reader.next() != '=';
        if (gap == Gap::kLine && !valid[kLogicalOr] && may_follow) return true;
      }
      if (reader.next() == '}' || reader.position() == 0) return true;
      if (is_line_end(reader.next())) break;
      if (!is_space(reader.next())) return false;
      reader.advance();
    }
    reader.advance();
    if (skip_gap(reader, false, has_comment) == Gap::kSlash) return false;
    return reader.next() == '.' ? is_digit(second(reader)) : begins_statement(reader, kGoesOn);
  }

  bool is_ternary(Reader& reader) const override {
    if (reader.next() == '?') return false;
    return reader.next() != '.' || is_digit(second(reader));
  }

 private:
  static constexpr ByteSet kGoesOn = bytes_of("`,:;*%><=[(?^|&/");

  enum class Gap { kSlash, kNoLine, kLine };  // there is a `/` in it that begins no comment; no line end; or all else

  // White space and comments. `is_comment_first`: only up to the end of the first block comment, to know whether it
  // holds a line's end.
  static Gap skip_gap(Reader& reader, bool is_comment_first, bool& has_comment) {
    bool has_line_end = false;
    for (;;) {
      skip_space(reader);
      if (reader.next() != '/') return Gap::kLine;
      reader.advance();
      if (reader.next() == '/') {
        skip_line(reader);
        has_comment = true;
      } else if (reader.next() == '*') {
        reader.advance();
        if (!skip_block(reader, has_line_end)) continue;
        has_comment = true;
        if (reader.next() != '/' && is_comment_first) return has_line_end ? Gap::kLine : Gap::kNoLine;
      } else {
        return Gap::kSlash;
      }
    }
  }

  // True where the comment ends in what is there.
  static bool skip_block(Reader& reader, bool& has_line_end) {
    for (;;) {
      reader.skip_until(kBlockOrLineStops);
      if (reader.next() == 0 || reader.is_unknown()) return false;
      has_line_end |= is_line_end(reader.next());
      const bool is_star = reader.next() == '*';
      reader.advance();
      if (!is_star || reader.next() != '/') continue;
      reader.advance();
      return true;
    }
  }
};

class TypeScriptScanner : public EcmaScriptScanner {
 protected:
  bool may_be_semicolon(const bool* valid) const override { return valid[kSemicolon] || valid[kSignatureSemicolon]; }

  bool is_semicolon(Reader& reader, const bool* valid, bool& has_comment) const override {
    for (;;) {
      if (reader.is_unknown()) return false;
      if (reader.next() == 0) return true;
      if (reader.next() == '}') return valid[kLogicalOr] || !is_typed_pattern(reader);
      if (!is_space(reader.next())) return false;
      if (reader.next() == '\n') break;
      reader.advance();
    }
    reader.advance();
    if (!skip_gap(reader, has_comment)) return false;
    switch (reader.next()) {
      case '{':
        return !valid[kSignatureSemicolon];
      case '(':
      case '[':
        return !valid[kLogicalOr];
      default:
        return begins_statement(reader, kGoesOn);
    }
  }

  bool is_ternary(Reader& reader) const override {
    if (reader.next() == '?' || reader.next() == '.') return false;
    skip_space(reader);
    if (reader.next() == ':' || reader.next() == ')' || reader.next() == ',') return false;
    return reader.next() != '.' || is_digit(second(reader));
  }

 private:
  static constexpr ByteSet kGoesOn = bytes_of("`,.;*%><=?^|&/:");

  // `{a}: {a: number}` is a pattern with its type, which no semicolon may part.
  static bool is_typed_pattern(Reader& reader) {
    reader.advance();
    skip_space(reader);
    return reader.next() == ':';
  }

  // White space and comments; false where there is a `/` in it that begins no comment.
  static bool skip_gap(Reader& reader, bool& has_comment) {
    for (;;) {
      skip_space(reader);
      if (reader.next() != '/') return true;
      reader.advance();
      if (reader.next() == '/') {
        reader.skip_until(kLineStops);
        has_comment = true;
      } else if (reader.next() == '*') {
        reader.advance();
        skip_block(reader);
      } else {
        return false;
      }
    }
  }

  static void skip_block(Reader& reader) {
    for (;;) {
      reader.skip_until(kBlockStops);
      if (reader.next() != '*') return;
      reader.advance();
      if (reader.next() != '/') continue;
      reader.advance();
      return;
    }
  }
};

}  // namespace

const ScannerModel& javascript_scanner() {
  static const JavaScriptScanner scanner;
  return scanner;
}

const ScannerModel& typescript_scanner() {
  static const TypeScriptScanner scanner;
  return scanner;
}

}  // namespace treefill::syntax
