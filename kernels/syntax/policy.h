// What a language refuses and its grammar takes, as data of the language's folder.

#ifndef TREEFILL_SYNTAX_POLICY_H_
#define TREEFILL_SYNTAX_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "syntax/language.h"

namespace treefill::syntax {

// As the folder writes it, symbols by their names in the grammar.
struct PolicyText {
  // A token that may not come right after another: ":" and "_newline" are a block without a body.
  std::vector<std::pair<std::string, std::string>> refused_pairs;
  // A rule and the parts of which it must have one: a `try_statement` without a handler is none.
  std::vector<std::pair<std::string, std::vector<std::string>>> needed_parts;
  // A token that is at home only inside what another one began: `case` inside `switch`.
  std::vector<std::pair<std::string, std::string>> needs_enclosing;
  // Tokens that are JSON's numbers: no leading zero, and digits on both sides of a point.
  std::vector<std::string> json_numbers;
  // The scanner's model refuses what the scanner lets pass: dedents to no level, new lines within an expression.
  bool is_strict = false;
};

// The same by numbers. Empty by default: then the grammar alone decides.
class Policy {
 public:
  Policy() = default;
  // Throws std::invalid_argument for a name that the grammar has not.
  Policy(const Language& language, const PolicyText& text);

  bool refuses_pair(Symbol before, Symbol symbol) const {
    return !pairs_.empty() && pairs_.contains(static_cast<uint32_t>(before) << 16 | symbol);
  }
  // The states of which one must be among a rule's own when it is whole; null where it may have any.
  const std::unordered_set<StateId>* needed_parts_of(Symbol rule) const {
    if (parts_.empty()) return nullptr;
    const auto found = parts_.find(rule);
    return found == parts_.end() ? nullptr : &found->second;
  }
  // The place in `homes` of the states of which one must lie on the stack for `symbol` to be taken; nothing where any
  // stack will do.
  std::optional<size_t> home_of(Symbol symbol) const {
    const auto found = home_of_.find(symbol);
    return found == home_of_.end() ? std::nullopt : std::optional(found->second);
  }
  const std::vector<std::unordered_set<StateId>>& homes() const { return homes_; }
  bool is_strict() const { return is_strict_; }
  bool has_json_numbers() const { return !json_numbers_.empty(); }
  bool is_json_number(Symbol symbol) const { return json_numbers_.contains(symbol); }

 private:
  std::unordered_set<uint32_t> pairs_;
  std::unordered_map<Symbol, std::unordered_set<StateId>> parts_;
  std::vector<std::unordered_set<StateId>> homes_;
  std::unordered_map<Symbol, size_t> home_of_;
  std::unordered_set<Symbol> json_numbers_;
  bool is_strict_ = false;
};

// Whether a text is one of JSON's numbers; `is_open`: or the beginning of one.
bool is_json_number(std::string_view text, bool is_open);

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_POLICY_H_
