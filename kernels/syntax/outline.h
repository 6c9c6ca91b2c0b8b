// Where a place in a file stands: the scopes that enclose it, and where statements begin.
//
// Found by reading strings, comments, brackets and lines alone, so it works in a file that no grammar accepts, and at
// the speed of a byte table. Brackets that do not match are passed over as people read them: a closing one ends all
// that was left open inside. What encloses what is a guess there; the acceptor decides whether it makes sense.

#ifndef TREEFILL_SYNTAX_OUTLINE_H_
#define TREEFILL_SYNTAX_OUTLINE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treefill::syntax {

// How a language writes what is not code, and what separates its statements.
struct LexicalRules {
  std::vector<std::string> line_comments;
  std::vector<std::pair<std::string, std::string>> block_comments;
  std::string quotes;                    // of strings that end with their line at the latest
  std::vector<std::string> long_quotes;  // of strings that may span lines
  char escape = '\\';                    // 0 where a quote is doubled instead
  char separator = ';';                  // after which a statement or an element begins
  bool has_raw_strings = false;          // R"x(…)x"
  bool has_templates = false;            // `…${…}…`
  bool has_regexes = false;              // /…/ where a value is expected
  bool has_dollar_quotes = false;        // $x$…$x$
  bool has_directives = false;           // lines that begin with #
  bool has_commands = false;             // lines that begin with a backslash: a client's, not the language's
  bool has_blocks = true;                // braces hold statements; else brackets are part of one
};

struct Scope {
  char opener = 0;               // `{`, `[`; `#` for a conditional directive; 0 for the file
  uint32_t opened_at = 0;        // byte of the bracket, or of the directive's line
  uint32_t body = 0;             // byte after the bracket, or after the line
  std::vector<uint32_t> starts;  // where statements begin directly in it, ascending; the latest some
};

// The scopes round `at`, from the file itself to the innermost. `begin` is the start of a line from which on the text
// is read.
std::vector<Scope> outline(std::string_view text, uint32_t begin, uint32_t at, const LexicalRules& rules);

// Where the statement that begins at `start` ends, at `at` or after it: after its separator or its last brace, before
// the bracket that closes the scope round it, or at the text's end. A comma between elements is left out.
// `n_scopes` such brackets are passed over first: something at `at` may yet open what they close.
uint32_t statement_end(std::string_view text, uint32_t start, uint32_t at, uint32_t n_scopes,
                       const LexicalRules& rules);

// A logical line where layout is grammar: it ends at a line's end outside brackets and strings.
struct LogicalLine {
  uint32_t start = 0;  // of the line, indentation included
  uint32_t code = 0;   // its first character that is not white space
  uint32_t end = 0;    // before the line ending
  bool has_block = false;
};

// The lines that a place in a file of that kind hangs on.
struct Layout {
  // From the outermost level to that of the last whole line before the place: of each level the last statement, with
  // the parts that it was continued from (`if`, `elif`, `else`; decorators).
  std::vector<std::vector<LogicalLine>> levels;
  uint32_t current = 0;  // where the logical line that the place is in begins
};

// `continuations` are words that go on a statement of the level, `prefixes` beginnings of lines that the next goes on.
struct LayoutWords {
  std::vector<std::string> continuations;
  std::vector<std::string> prefixes;
  std::vector<std::string> resets;  // words that begin a line only where no bracket is open
};
// Where the logical line that begins at the text's beginning ends, at `at` or after it; 0 where it does not: then a
// bracket or string is open for good.
uint32_t logical_line_end(std::string_view text, uint32_t at, const LexicalRules& rules, const LayoutWords& words);

Layout layout(std::string_view text, uint32_t begin, uint32_t at, const LexicalRules& rules, const LayoutWords& words);

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_OUTLINE_H_
