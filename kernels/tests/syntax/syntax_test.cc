// What of the syntax part needs no grammar, on hostile input: it ends, it stays in bounds (the sanitizers see to that),
// and what little can be said of any text holds.

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syntax/outline.h"
#include "syntax/policy.h"
#include "syntax/scanner_model.h"
#include "syntax/stacks.h"
#include "syntax/utf8.h"

namespace treefill::syntax {
namespace {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  uint32_t below(size_t n) { return static_cast<uint32_t>(engine_() % n); }
  bool one_in(uint32_t n) { return below(n) == 0; }
  template <typename T>
  const T& of(const std::vector<T>& all) {
    return all[below(all.size())];
  }

  // Made of pieces that mean something to somebody, and of any bytes.
  std::string text(size_t n_pieces) {
    static const std::vector<std::string> pieces = {"{",
                                                    "}",
                                                    "(",
                                                    ")",
                                                    "[",
                                                    "]",
                                                    "`",
                                                    "${",
                                                    "$a$",
                                                    "$$",
                                                    "$",
                                                    "R\"x(",
                                                    ")x\"",
                                                    "R\"",
                                                    "\\",
                                                    "\\\n",
                                                    "\\\r\n",
                                                    "'",
                                                    "\"",
                                                    "'''",
                                                    "f'",
                                                    "{{",
                                                    "}}",
                                                    "#if\n",
                                                    "#el",
                                                    "#else",
                                                    "#endif",
                                                    "#a\\\n",
                                                    "//",
                                                    "/*",
                                                    "*/",
                                                    "--",
                                                    "#",
                                                    "/",
                                                    "/[",
                                                    ";",
                                                    ",",
                                                    "\n",
                                                    "\r\n",
                                                    "\n    ",
                                                    "\t",
                                                    "\f",
                                                    " ",
                                                    "a",
                                                    "def",
                                                    "@",
                                                    "else:\n",
                                                    "if x:\n",
                                                    "1'0",
                                                    "é",
                                                    "\xE2\x80",
                                                    "\xF0\x9D",
                                                    "\xFF",
                                                    "\xEF\xBB\xBF",
                                                    "\xE2\x80\xA8",
                                                    "?",
                                                    "-->",
                                                    "<!--",
                                                    "in",
                                                    "."};
    std::string text;
    for (; n_pieces > 0; --n_pieces) {
      if (one_in(20))
        text.push_back(static_cast<char>(below(256)));
      else
        text += of(pieces);
    }
    return text.substr(0, one_in(4) ? below(text.size() + 1) : text.size());
  }

 private:
  std::mt19937 engine_;
};

// An exact copy, so that a byte beyond its end is nobody's.
class Exact {
 public:
  explicit Exact(std::string_view text) : bytes_(new char[text.size()]), size_(text.size()) {
    text.copy(bytes_.get(), size_);
  }
  std::string_view view() const { return {bytes_.get(), size_}; }

 private:
  std::unique_ptr<char[]> bytes_;
  size_t size_;
};

// Equal stacks are one, however many there are, and popping gives what was pushed on.
bool stacks_are_what_was_pushed(Random& random) {
  StackPool pool;
  std::map<std::pair<Stack, StateId>, Stack> known;
  std::vector<Stack> all = {kNoStack};
  for (int i = 0; i < 20'000; ++i) {
    const Stack under = random.one_in(3) ? random.of(all) : all.back();
    const auto state = static_cast<StateId>(random.one_in(2) ? random.below(5) : random.below(65536));
    const Stack stack = pool.push(under, state);
    const auto [at, is_new] = known.try_emplace({under, state}, stack);
    if (at->second != stack || pool.below(stack) != under || pool.state(stack) != state) return false;
    if (pool.pop(stack, 0) != stack || pool.pop(stack, 1) != under || pool.pop(stack, 1u << 31) != kNoStack)
      return false;
    if (is_new) all.push_back(stack);
  }
  return pool.n_nodes() == known.size();
}

// Every code point that is one comes back; whatever the bytes, reading goes on and never past the end.
bool utf8_is_read_to_the_end(Random& random) {
  for (int32_t code_point = 0; code_point < 0x110000; code_point += code_point < 0x3000 ? 1 : 0x101) {
    std::string text;
    if (code_point < 0x80)
      text = {static_cast<char>(code_point)};
    else if (code_point < 0x800)
      text = {static_cast<char>(0xC0 | code_point >> 6), static_cast<char>(0x80 | (code_point & 0x3F))};
    else if (code_point < 0x10000)
      text = {static_cast<char>(0xE0 | code_point >> 12), static_cast<char>(0x80 | (code_point >> 6 & 0x3F)),
              static_cast<char>(0x80 | (code_point & 0x3F))};
    else
      text = {static_cast<char>(0xF0 | code_point >> 18), static_cast<char>(0x80 | (code_point >> 12 & 0x3F)),
              static_cast<char>(0x80 | (code_point >> 6 & 0x3F)), static_cast<char>(0x80 | (code_point & 0x3F))};
    const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
    const Exact exact(text);
    const Utf8Character character = utf8_at(exact.view(), 0);
    if (character.code_point != (is_surrogate ? -1 : code_point)) return false;
    if (character.length != (is_surrogate ? 1 : text.size())) return false;
    for (size_t length = 1; length < text.size(); ++length)
      if (utf8_at(Exact(text.substr(0, length)).view(), 0).length != 0) return false;
  }
  for (int i = 0; i < 2'000; ++i) {
    const Exact exact(random.text(random.below(8)));
    for (size_t at = 0; at < exact.view().size();) {
      const Utf8Character character = utf8_at(exact.view(), at);
      if (character.length == 0 && at + 3 < exact.view().size()) return false;
      at += character.length == 0 ? 1 : character.length;
      if (at > exact.view().size()) return false;
    }
  }
  return true;
}

LexicalRules any_rules(Random& random) {
  LexicalRules rules;
  if (random.one_in(2)) rules.line_comments = {"//", "#"};
  if (random.one_in(2)) rules.line_comments.push_back("--");
  if (random.one_in(2)) rules.block_comments = {{"/*", "*/"}};
  rules.quotes = random.of<std::string>({"", "'", "\"", "'\""});
  if (random.one_in(2)) rules.long_quotes = {"\"\"\"", "'''", "`", "'"};
  rules.escape = random.one_in(2) ? '\\' : '\0';
  rules.separator = random.one_in(3) ? ',' : ';';
  for (bool* flag : {&rules.has_raw_strings, &rules.has_templates, &rules.has_regexes, &rules.has_dollar_quotes,
                     &rules.has_directives, &rules.has_commands, &rules.has_blocks})
    *flag = random.one_in(2);
  return rules;
}

bool is_in_order(const std::vector<uint32_t>& places, uint32_t from, uint32_t to) {
  for (uint32_t place : places) {
    if (place < from || place > to) return false;
    from = place;
  }
  return true;
}

bool outlines_lie_in_the_text(Random& random) {
  for (int i = 0; i < 20'000; ++i) {
    const Exact exact(random.text(random.below(40)));
    const std::string_view text = exact.view();
    const auto at = random.one_in(2) ? static_cast<uint32_t>(text.size()) : random.below(text.size() + 1);
    const uint32_t begin = random.one_in(2) ? 0 : random.below(at + 1);
    const LexicalRules rules = any_rules(random);
    const std::vector<Scope> scopes = outline(text, begin, at, rules);
    if (scopes.empty() || scopes[0].opener != 0) return false;
    for (const Scope& scope : scopes)
      if (scope.opened_at > scope.body || scope.starts.empty() || !is_in_order(scope.starts, begin, at)) return false;
    const uint32_t end = statement_end(text, begin, at, random.below(3), rules);
    if (end < at || end > text.size()) return false;
    const LayoutWords words{{"elif", "else"}, {"@"}, {"def", "@"}};
    const uint32_t line_end = logical_line_end(text, at, rules, words);
    if (line_end > text.size()) return false;
    const Layout found = layout(text, begin, at, rules, words);
    if (found.current < begin || found.current > at) return false;
    for (const auto& lines : found.levels) {
      if (lines.empty()) return false;
      for (const LogicalLine& line : lines)
        if (line.start > line.code || line.code > line.end || line.end > at) return false;
    }
  }
  return true;
}

bool json_numbers_are_told(Random& random) {
  for (const char* number : {"0", "-0", "1", "10", "1.5", "0.5", "1e5", "1E+5", "-1.25e-10"})
    for (std::string_view text = number; !text.empty(); text.remove_suffix(1)) {
      if (text == number && !is_json_number(Exact(text).view(), false)) return false;
      if (!is_json_number(Exact(text).view(), true)) return false;
    }
  for (const char* other : {"", "-", "01", "1.", ".5", "1.e5", "1e", "+1", "0x1", "1e5.", "--1", "1 "})
    if (is_json_number(Exact(other).view(), false)) return false;
  for (const char* other : {"01", ".", "1.e", "+", "0x", "--", "1 ", "e"})
    if (is_json_number(Exact(other).view(), true)) return false;
  for (int i = 0; i < 50'000; ++i) {  // what is a number is the beginning of one
    std::string text;
    for (uint32_t n = random.below(8); n > 0; --n) text.push_back("0019.eE+-"[random.below(9)]);
    if (is_json_number(Exact(text).view(), false) && !is_json_number(Exact(text).view(), true)) return false;
  }
  return true;
}

// Asked for anything, with any memory: what is found lies in the text, nothing is undecided at its end, and the memory
// that is written can be read again.
bool scanners_survive_any_memory(Random& random, const char* name) {
  const ScannerModel& model = *scanner_model(name);
  std::string memory;
  for (int i = 0; i < 30'000; ++i) {
    bool valid[64] = {};
    const uint32_t share = 1 + random.below(6);
    for (bool& flag : valid) flag = random.one_in(share);
    const Exact text(random.text(random.below(12)));
    const auto position = random.one_in(2) ? 0 : random.below(text.view().size() + 1);
    if (random.one_in(4)) {
      memory = random.one_in(3) ? random.text(random.below(10)) : "";
      for (uint32_t n = random.of<uint32_t>({0, 1, 2, 3, 40, 300, 1023, 1030}); n > 0; --n)
        memory.push_back(static_cast<char>(random.below(256)));
    }
    uint64_t n_read = 0;
    const bool is_whole = random.one_in(2);
    const Exact exact_memory(memory);
    const auto answer = model.scan({valid, exact_memory.view(), text.view(), position, is_whole, random.one_in(2),
                                    random.one_in(2), random.one_in(2), &n_read});
    if (is_whole && answer.is_undecided) return false;
    if (answer.is_undecided && answer.possible == 0 && !answer.may_decline) return false;
    if (answer.found && (answer.end < position || answer.end > text.view().size())) return false;
    if (n_read > text.view().size()) return false;
    if (answer.found) memory = answer.memory;
  }
  return true;
}

}  // namespace
}  // namespace treefill::syntax

int main() {
  using namespace treefill::syntax;
  int n_passed = 0, n_failed = 0;
  const auto expect = [&](bool holds, const char* what) {
    ++(holds ? n_passed : n_failed);
    if (!holds) std::printf("it is not so that %s\n", what);
  };
  Random random(1);
  expect(stacks_are_what_was_pushed(random), "stacks are what was pushed");
  expect(utf8_is_read_to_the_end(random), "UTF-8 is read to the end");
  expect(outlines_lie_in_the_text(random), "outlines lie in the text");
  expect(json_numbers_are_told(random), "JSON's numbers are told");
  for (const char* name : {"python", "javascript", "typescript", "cpp", "sql", "postgres"})
    expect(scanners_survive_any_memory(random, name), name);
  std::printf("syntax, %d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
