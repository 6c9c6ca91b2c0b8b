// What a compiled tree-sitter grammar holds: its parse table, its lexers and its external scanner, read in place.
//
// The layouts are tree-sitter's own (lib/src/parser.h, ABI 14 and 15). Nothing of tree-sitter's library is linked: the
// tables and functions are those that a grammar's wheel was compiled with.

#ifndef TREEFILL_SYNTAX_LANGUAGE_H_
#define TREEFILL_SYNTAX_LANGUAGE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace treefill::syntax {

using Symbol = uint16_t;
using StateId = uint16_t;

constexpr Symbol kEnd = 0;            // the symbol at the end of a text
constexpr Symbol kNoSymbol = 0xFFFF;  // tree-sitter's error symbol, which no table holds
constexpr StateId kStartState = 1;
constexpr uint16_t kNoLexing = 0xFFFF;  // as a lex state: here a non-terminal extra ends, whatever follows

// What lexers and scanners read their text through.
struct TSLexer {
  int32_t lookahead;
  Symbol result_symbol;
  void (*advance)(TSLexer*, bool skip);
  void (*mark_end)(TSLexer*);
  uint32_t (*get_column)(TSLexer*);
  bool (*is_at_included_range_start)(const TSLexer*);
  bool (*eof)(const TSLexer*);
  void (*log)(const TSLexer*, const char*, ...);
};

inline void ignore_log(const TSLexer*, const char*, ...) {}

using LexFunction = bool (*)(TSLexer*, StateId);

union ParseAction {
  enum Type : uint8_t { kShift, kReduce, kAccept, kRecover };
  uint8_t type;
  struct {
    uint8_t type;
    StateId state;
    bool extra;
    bool repetition;
  } shift;
  struct {
    uint8_t type;
    uint8_t child_count;
    Symbol symbol;
    int16_t dynamic_precedence;
    uint16_t production_id;
  } reduce;
};

struct LexMode {
  uint16_t lex_state;
  uint16_t external_lex_state;  // 0 where no external token is possible
  uint16_t reserved_word_set_id;
};

struct ExternalScannerFunctions {
  const bool* states;
  const Symbol* symbol_map;
  void* (*create)();
  void (*destroy)(void*);
  bool (*scan)(void*, TSLexer*, const bool* valid_symbols);
  unsigned (*serialize)(void*, char*);
  void (*deserialize)(void*, const char*, unsigned);
};

struct TSLanguage;

// One grammar, checked when it is made. Safe to use from many threads.
class Language {
 public:
  // `tables` is what a grammar's `tree_sitter_NAME()` returns; it must outlive this object. Throws
  // std::invalid_argument for an ABI other than 14 and 15.
  explicit Language(const TSLanguage* tables);

  uint32_t abi_version() const;
  uint32_t symbol_count() const;
  uint32_t token_count() const { return token_count_; }
  uint32_t state_count() const;
  uint32_t external_token_count() const;
  const char* symbol_name(Symbol symbol) const;

  // What may be done with a terminal in a state, in tree-sitter's order; empty where it is an error.
  std::span<const ParseAction> actions(StateId state, Symbol terminal) const {
    return actions_at(row(state)[terminal]);
  }
  // The state after `symbol`, terminal or not, in `state`; 0 where there is none.
  StateId next_state(StateId state, Symbol symbol) const;

  // Every state that a stack can be in right after that symbol, extras left out.
  std::unordered_set<StateId> states_after(Symbol symbol) const;

  LexMode lex_mode(StateId state) const;
  bool is_reserved_word(StateId state, Symbol symbol) const;
  Symbol keyword_capture_token() const { return keyword_capture_token_; }
  LexFunction lex_function() const;
  LexFunction keyword_lex_function() const;  // null where the grammar has no keywords

  bool has_scanner() const;
  const ExternalScannerFunctions& scanner() const;
  // One flag an external token: may the scanner find it in this lex state?
  const bool* valid_external_tokens(uint16_t external_lex_state) const;

 private:
  std::span<const ParseAction> actions_at(uint16_t index) const;
  // The state's part of the parse table: an entry a symbol. Rows that the grammar stores packed are unpacked on use.
  const uint16_t* row(StateId state) const;
  const uint16_t* unpack(StateId state) const;
  uint16_t packed_entry(StateId state, Symbol symbol) const;

  const TSLanguage* tables_;
  uint32_t token_count_;
  Symbol keyword_capture_token_;
  mutable std::vector<std::atomic<const uint16_t*>> rows_;
  mutable std::mutex unpacking_;
  mutable std::vector<std::unique_ptr<uint16_t[]>> unpacked_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_LANGUAGE_H_
