#include "syntax/policy.h"

#include <cctype>
#include <stdexcept>

namespace treefill::syntax {
namespace {

std::vector<Symbol> symbols_named(const Language& language, const std::string& name) {
  std::vector<Symbol> symbols;
  for (uint32_t symbol = 0; symbol < language.symbol_count(); ++symbol)
    if (name == language.symbol_name(static_cast<Symbol>(symbol))) symbols.push_back(static_cast<Symbol>(symbol));
  if (symbols.empty()) throw std::invalid_argument("The grammar has no symbol named " + name + ".");
  return symbols;
}

// Adds the states that a stack is in right after a symbol of that name.
void add_states_after(const Language& language, const std::string& name, std::unordered_set<StateId>& states) {
  for (Symbol symbol : symbols_named(language, name)) states.merge(language.states_after(symbol));
}

}  // namespace

Policy::Policy(const Language& language, const PolicyText& text) : is_strict_(text.is_strict) {
  for (const auto& [before, after] : text.refused_pairs)
    for (Symbol one : symbols_named(language, before))
      for (Symbol other : symbols_named(language, after)) pairs_.insert(static_cast<uint32_t>(one) << 16 | other);
  for (const auto& [name, parts] : text.needed_parts)
    for (Symbol rule : symbols_named(language, name))
      for (const std::string& part : parts) add_states_after(language, part, parts_[rule]);
  for (const auto& [name, around] : text.needs_enclosing)
    for (Symbol symbol : symbols_named(language, name)) {
      const auto [home, is_new] = home_of_.try_emplace(symbol, homes_.size());
      if (is_new) homes_.emplace_back();
      add_states_after(language, around, homes_[home->second]);
    }
  for (const std::string& name : text.json_numbers)
    for (Symbol symbol : symbols_named(language, name)) json_numbers_.insert(symbol);
}

// -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?, of which every part but the last character may be missing where open.
bool is_json_number(std::string_view text, bool is_open) {
  size_t at = 0;
  const auto is = [&](char c) { return at < text.size() && text[at] == c; };
  const auto digits = [&] {
    const size_t from = at;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) ++at;
    return at - from;
  };
  const auto ends_early = [&] { return is_open && at == text.size(); };
  if (is('-')) ++at;
  if (is('0'))
    ++at;
  else if (digits() == 0)
    return ends_early();
  if (is('.')) {
    ++at;
    if (digits() == 0) return ends_early();
  }
  if (is('e') || is('E')) {
    ++at;
    if (is('-') || is('+')) ++at;
    if (digits() == 0) return ends_early();
  }
  return at == text.size();
}

}  // namespace treefill::syntax
