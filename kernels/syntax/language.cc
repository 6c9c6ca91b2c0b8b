#include "syntax/language.h"

#include <algorithm>
#include <stdexcept>

namespace treefill::syntax {

struct FieldMapSlice {
  uint16_t index;
  uint16_t length;
};

struct SymbolMetadata {
  bool visible;
  bool named;
  bool supertype;
};

union ParseActionEntry {
  ParseAction action;
  struct {
    uint8_t count;
    bool reusable;
  } entry;
};

// Up to `primary_state_ids` the same in both ABIs, but for the width of a lex mode; from `name` on ABI 15 alone.
struct TSLanguage {
  uint32_t abi_version;
  uint32_t symbol_count;
  uint32_t alias_count;
  uint32_t token_count;
  uint32_t external_token_count;
  uint32_t state_count;
  uint32_t large_state_count;
  uint32_t production_id_count;
  uint32_t field_count;
  uint16_t max_alias_sequence_length;
  const uint16_t* parse_table;
  const uint16_t* small_parse_table;
  const uint32_t* small_parse_table_map;
  const ParseActionEntry* parse_actions;
  const char* const* symbol_names;
  const char* const* field_names;
  const FieldMapSlice* field_map_slices;
  const void* field_map_entries;
  const SymbolMetadata* symbol_metadata;
  const Symbol* public_symbol_map;
  const uint16_t* alias_map;
  const Symbol* alias_sequences;
  const void* lex_modes;
  LexFunction lex_fn;
  LexFunction keyword_lex_fn;
  Symbol keyword_capture_token;
  ExternalScannerFunctions external_scanner;
  const StateId* primary_state_ids;
  const char* name;
  const Symbol* reserved_words;
  uint16_t max_reserved_word_set_size;
};

namespace {

constexpr uint32_t kOldestAbi = 14;
constexpr uint32_t kNewestAbi = 15;

struct NarrowLexMode {  // as ABI 14 has it
  uint16_t lex_state;
  uint16_t external_lex_state;
};

}  // namespace

Language::Language(const TSLanguage* tables) : tables_(tables) {
  if (tables->abi_version < kOldestAbi || tables->abi_version > kNewestAbi)
    throw std::invalid_argument("The grammar was made for version " + std::to_string(tables->abi_version) +
                                " of tree-sitter's tables, and 14 and 15 are known: install another release of it.");
  token_count_ = tables->token_count;
  keyword_capture_token_ = tables->keyword_capture_token;
  rows_ = std::vector<std::atomic<const uint16_t*>>(tables->state_count);
  for (uint32_t state = 0; state < tables->large_state_count; ++state)
    rows_[state] = tables->parse_table + static_cast<size_t>(state) * tables->symbol_count;
}

uint32_t Language::abi_version() const { return tables_->abi_version; }
uint32_t Language::symbol_count() const { return tables_->symbol_count; }
uint32_t Language::state_count() const { return tables_->state_count; }
uint32_t Language::external_token_count() const { return tables_->external_token_count; }
const char* Language::symbol_name(Symbol symbol) const { return tables_->symbol_names[symbol]; }
LexFunction Language::lex_function() const { return tables_->lex_fn; }
LexFunction Language::keyword_lex_function() const { return tables_->keyword_lex_fn; }
bool Language::has_scanner() const { return tables_->external_token_count > 0 && tables_->external_scanner.scan; }
const ExternalScannerFunctions& Language::scanner() const { return tables_->external_scanner; }

StateId Language::next_state(StateId state, Symbol symbol) const {
  const uint16_t entry = row(state)[symbol];
  if (symbol >= token_count_) return entry;
  const auto found = actions_at(entry);
  if (found.empty() || found.back().type != ParseAction::kShift) return 0;
  return found.back().shift.extra ? state : found.back().shift.state;
}

std::unordered_set<StateId> Language::states_after(Symbol symbol) const {
  std::unordered_set<StateId> states;
  for (uint32_t state = kStartState; state < tables_->state_count; ++state) {
    const uint16_t* row = rows_[state].load(std::memory_order_acquire);
    const uint16_t entry = row ? row[symbol] : packed_entry(static_cast<StateId>(state), symbol);
    if (symbol >= token_count_) {
      if (entry != 0) states.insert(entry);
      continue;
    }
    for (const ParseAction& action : actions_at(entry))
      if (action.type == ParseAction::kShift && !action.shift.extra && !action.shift.repetition)
        states.insert(action.shift.state);
  }
  return states;
}

LexMode Language::lex_mode(StateId state) const {
  if (tables_->abi_version >= 15) return static_cast<const LexMode*>(tables_->lex_modes)[state];
  const NarrowLexMode mode = static_cast<const NarrowLexMode*>(tables_->lex_modes)[state];
  return {mode.lex_state, mode.external_lex_state, 0};
}

bool Language::is_reserved_word(StateId state, Symbol symbol) const {
  const uint16_t set = lex_mode(state).reserved_word_set_id;
  if (set == 0) return false;
  const size_t size = tables_->max_reserved_word_set_size;
  const Symbol* words = tables_->reserved_words + set * size;
  const Symbol* last = std::find(words, words + size, 0);
  return std::find(words, last, symbol) != last;
}

const bool* Language::valid_external_tokens(uint16_t external_lex_state) const {
  return tables_->external_scanner.states + static_cast<size_t>(external_lex_state) * tables_->external_token_count;
}

std::span<const ParseAction> Language::actions_at(uint16_t index) const {
  static_assert(sizeof(ParseActionEntry) == sizeof(ParseAction));
  const ParseActionEntry* entry = tables_->parse_actions + index;
  return {&entry[1].action, entry->entry.count};
}

const uint16_t* Language::row(StateId state) const {
  const uint16_t* row = rows_[state].load(std::memory_order_acquire);
  return row ? row : unpack(state);
}

// A packed row is a list of groups: an entry, how many symbols have it, and those symbols.
const uint16_t* Language::unpack(StateId state) const {
  std::lock_guard lock(unpacking_);
  if (const uint16_t* row = rows_[state].load(std::memory_order_relaxed)) return row;
  auto row = std::make_unique<uint16_t[]>(tables_->symbol_count);
  const uint16_t* data =
      tables_->small_parse_table + tables_->small_parse_table_map[state - tables_->large_state_count];
  for (uint16_t n_groups = *data++; n_groups > 0; --n_groups) {
    const uint16_t entry = *data++;
    for (uint16_t n_symbols = *data++; n_symbols > 0; --n_symbols) row[*data++] = entry;
  }
  unpacked_.push_back(std::move(row));
  rows_[state].store(unpacked_.back().get(), std::memory_order_release);
  return unpacked_.back().get();
}

// The same without unpacking the row: for those who look at all of them once.
uint16_t Language::packed_entry(StateId state, Symbol symbol) const {
  const uint16_t* data =
      tables_->small_parse_table + tables_->small_parse_table_map[state - tables_->large_state_count];
  for (uint16_t n_groups = *data++; n_groups > 0; --n_groups) {
    const uint16_t entry = *data++;
    const uint16_t n_symbols = *data++;
    if (std::find(data, data + n_symbols, symbol) != data + n_symbols) return entry;
    data += n_symbols;
  }
  return 0;
}

}  // namespace treefill::syntax
