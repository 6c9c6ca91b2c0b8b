#include "syntax/situation.h"

#include <utility>

namespace treefill::syntax {
namespace {

struct Pair {
  char opener;
  std::string_view opening;
  std::string_view closing;
};
constexpr Pair kPairs[] = {{'(', "(", ")"},  {'[', "[", "]"},  {'{', "{", "}"},
                           {'{', "${", "}"}, {'{', "#{", "}"}, {'<', "<", ">"}};

std::vector<Symbol> terminals_called(const Language& language, std::string_view name) {
  std::vector<Symbol> found;
  for (uint32_t symbol = 1; symbol < language.token_count(); ++symbol)
    if (name == language.symbol_name(static_cast<Symbol>(symbol))) found.push_back(static_cast<Symbol>(symbol));
  return found;
}

// Where a state leads by shifting the terminal; 0 where it does not.
StateId shifted(const Language& language, StateId state, Symbol terminal) {
  for (const ParseAction& action : language.actions(state, terminal))
    if (action.type == ParseAction::kShift && !action.shift.extra && !action.shift.repetition)
      return action.shift.state;
  return 0;
}

// The states after a `>` that closes what a state after `<` began: at once, or with one symbol between them. After the
// less-than of `a < b` there is none, because there a `>` first ends the comparison.
std::vector<StateId> states_after_angle(const Language& language, StateId begun, Symbol closing) {
  std::vector<StateId> found;
  const auto look = [&](StateId state) {
    if (const StateId after = shifted(language, state, closing)) found.push_back(after);
  };
  look(begun);
  for (uint32_t symbol = 1; symbol < language.symbol_count(); ++symbol) {
    const StateId state = language.next_state(begun, static_cast<Symbol>(symbol));
    if (state != 0 && state != begun) look(state);
  }
  return found;
}

}  // namespace

Brackets::Brackets(const Language& language) {
  for (const Pair& pair : kPairs) {
    const bool is_angle = pair.opener == '<';
    const std::vector<Symbol> closings = terminals_called(language, pair.closing);
    for (Symbol opening : terminals_called(language, pair.opening))
      for (StateId begun : language.states_after(opening)) {
        bool is_bracket = !is_angle;
        for (size_t i = 0; is_angle && i < closings.size(); ++i)
          for (StateId after : states_after_angle(language, begun, closings[i])) {
            is_bracket = true;
            edges_.emplace(after, Edge{pair.opener, true});
          }
        if (is_bracket) edges_.emplace(begun, Edge{pair.opener, false});
      }
    for (size_t i = 0; !is_angle && i < closings.size(); ++i)
      for (StateId after : language.states_after(closings[i])) edges_.emplace(after, Edge{pair.opener, true});
  }
}

char Brackets::innermost(const StackPool& stacks, Stack stack) const {
  size_t n_closed = 0;  // of which the beginning is still to come
  bool is_angle_closed = false;
  for (Stack at = stack; at != kNoStack && !stacks.is_cut(at); at = stacks.below(at)) {
    const auto found = edges_.find(stacks.state(at));
    if (found == edges_.end()) continue;
    const auto [opener, closes] = found->second;
    const bool is_angle = opener == '<';
    if (closes) {
      // A `>` that is not the last token is a comparison's: what it closed would have become one symbol by now.
      n_closed += !is_angle;
      is_angle_closed |= is_angle && at == stack;
    } else if (is_angle && is_angle_closed) {
      is_angle_closed = false;
    } else if (n_closed > 0) {
      n_closed -= !is_angle;
    } else {
      return opener;
    }
  }
  return 0;
}

Situation Parser::situation(std::string_view text, const Versions& versions, const Brackets& brackets) {
  text_ = text;
  start_watch();
  Situation found;
  SymbolSet symbols(language_.token_count());
  for (const Version& version : versions) {
    if (is_lost(version)) continue;
    const char bracket = brackets.innermost(stacks_, version.stack);
    if (&version == &versions.front() || bracket == '<') found.bracket = bracket;
    const bool is_line_ended = text_.substr(version.position).find('\n') != std::string_view::npos;
    const SymbolSet own = symbols_of(version);
    own.any_of([&](Symbol symbol) {
      if (can_take(version, symbol) == Verdict::kNo) return false;
      symbols.insert(symbol);
      found.is_layout |= is_line_ended && grammar_->is_layout_token(symbol);
      return false;
    });
  }
  symbols.any_of([&](Symbol symbol) {
    found.symbols.push_back(symbol);
    return false;
  });
  return found;
}

// Those that the open lexeme may become, whether or not the parse can take them; all where none is begun.
SymbolSet Parser::symbols_of(Version version) {
  SymbolSet symbols(language_.token_count());
  if (version.position == text_.size()) {
    for (uint32_t symbol = 0; symbol < language_.token_count(); ++symbol) symbols.insert(static_cast<Symbol>(symbol));
    return symbols;
  }
  if (version.lex == kDead) {
    for (ExternalSet possible = version.possible; possible; possible &= possible - 1)
      symbols.insert(language_.scanner().symbol_map[__builtin_ctzll(possible)]);
    if (!version.may_be_lexed) return symbols;
    start_lexing(version, language_.lex_mode(stacks_.state(version.stack)).lex_state);
    read_lexeme(version, false);
  }
  if (version.lex == kDead) return symbols;
  symbols.insert_all(grammar_->lexer.state(version.lex).reachable);
  const Symbol word = language_.keyword_capture_token();
  if (!grammar_->keywords || word == kEnd || !symbols.contains(word)) return symbols;
  const LexState at_keyword = keyword_state(version);
  if (at_keyword != kDead) symbols.insert_all(grammar_->keywords->state(at_keyword).reachable);
  return symbols;
}

}  // namespace treefill::syntax
