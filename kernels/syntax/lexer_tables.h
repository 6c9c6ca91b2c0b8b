// The deterministic automaton inside a generated lexer, recovered from its compiled function.
//
// A generated lexer is one function, `lex(lexer, state)`, a switch over the automaton's states, and it can be started
// in any of them. So what is accepted in a state, and on which characters it goes on, can be seen by calling it; hidden
// is only *which* state it goes on to. Two states are the same automaton state unless some text tells them apart, so
// the target is found by what it does: a decision tree of short texts, refined until every transition of the states in
// a leaf leads to the same leaf, tells which state a lexer is in within a few calls (Moore's refinement; the tree is
// the one of Kearns and Vazirani). Nothing is guessed about the compiled code but that `state` is the automaton's.

#ifndef TREEFILL_SYNTAX_LEXER_TABLES_H_
#define TREEFILL_SYNTAX_LEXER_TABLES_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "syntax/language.h"

namespace treefill::syntax {

using LexState = uint16_t;
constexpr LexState kDead = 0xFFFF;

// A set of terminals.
class SymbolSet {
 public:
  explicit SymbolSet(size_t n_symbols = 0) : words_((n_symbols + 63) / 64) {}
  bool contains(Symbol symbol) const { return words_[symbol / 64] >> (symbol % 64) & 1; }
  void insert(Symbol symbol) { words_[symbol / 64] |= uint64_t{1} << (symbol % 64); }
  // True where that made it larger.
  bool insert_all(const SymbolSet& other);
  template <typename Visit>
  bool any_of(Visit visit) const {
    for (size_t word = 0; word < words_.size(); ++word)
      for (uint64_t bits = words_[word]; bits; bits &= bits - 1)
        if (visit(static_cast<Symbol>(word * 64 + static_cast<size_t>(__builtin_ctzll(bits))))) return true;
    return false;
  }

 private:
  std::vector<uint64_t> words_;
};

class LexerTables {
 public:
  struct State {
    Symbol accepted = kNoSymbol;         // the token that may end here
    Symbol accepted_at_end = kNoSymbol;  // the token that ends here where the text does
    bool is_final = false;               // no character goes on from here
    bool is_bound_to_accept = false;     // whatever comes, it goes on until a token is accepted; as in `/* a`
    std::array<LexState, 128> next;      // by ASCII character; kDead where it ends the token
    std::bitset<128> skips;              // characters that are left out of the token: white space before it
    SymbolSet reachable;                 // every token that this state or one after it accepts
  };

  // `kept` is what `keep` gave for the same function before; empty: it is recovered anew. Throws std::runtime_error
  // where the function is not such an automaton, or not the one of `kept`.
  LexerTables(LexFunction lex, size_t n_symbols, std::span<const uint32_t> kept = {});
  ~LexerTables();

  // Does some character of those lead on from the state? Of more than 64 one of each kind that grammars tell apart is
  // tried, and the first, middle and last, so the answer may be wrong where a grammar tells others.
  bool leads_on(LexState state, int32_t first, int32_t last) const;

  // What the state makes of each of these: of a character where it leads to, of a range (of one of which a text has
  // only the first bytes) whether it leads on. Equal numbers in one of the classes are equal outcomes.
  void outcomes(LexState state, std::span<const std::pair<int32_t, int32_t>> ranges, std::span<const uint32_t> classes,
                std::span<uint64_t> found) const;

  // All that was found out, for the next process.
  std::vector<uint32_t> keep() const;

  size_t n_states() const { return states_.size(); }
  // How many numbers the compiled function has for them.
  size_t n_numbers() const { return class_of_.size(); }
  const State& state(LexState state) const { return states_[state]; }
  // The state that the number in a parse table's lex mode stands for.
  LexState start(uint16_t lex_state) const { return class_of_[lex_state]; }

  struct Step {
    LexState state;
    bool is_skipped;
  };
  // One character on; a state of kDead where it ends the token.
  Step step(LexState state, int32_t character) const {
    if (static_cast<uint32_t>(character) < 128)
      return {states_[state].next[character], states_[state].skips[character]};
    return step_wide(state, character);
  }

 private:
  class Recovery;

  template <typename Leads>
  static bool leads_on(Leads leads, int32_t first, int32_t last);
  void find_bound_to_accept();
  // Characters beyond ASCII are looked up in the compiled function when they are first met.
  Step step_wide(LexState state, int32_t character) const;

  std::vector<State> states_;
  std::vector<LexState> class_of_;  // by the compiled function's own numbers
  std::unique_ptr<Recovery> recovery_;
  mutable std::mutex wide_mutex_;
  mutable std::unordered_map<uint64_t, Step> wide_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_LEXER_TABLES_H_
