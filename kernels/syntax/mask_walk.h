// Which tokens of a vocabulary may come next: all of them at once.
//
// The tokens are walked as a trie, and what has been read on the way is a number: the parses that are alive, written so
// that two texts have the same number where nothing that follows tells them apart. Where a letter leads from a number
// is found out once, by the parser, and looked up from then on; so a walk over 200,000 nodes asks the parser some
// thousand times. What is forgotten of a text, and why that is sound:
//
// - Of an open lexeme only the automaton's states count (its own and the keywords'), and what lies behind the longest
//   token so far, which may be read again. Where a conflict may send the parser back to read the lexeme in another
//   way, what it is in that way is followed beside it.
// - Of a lexeme that has ended only its token counts.
// - Of a text that the external scanner has not decided, what its model says is enough (`ScannerModel::Rest`); a
//   scanner without a model gets all of it.
// - Of what lies before the open lexeme nothing, but for models that look at the indentation of lines before, and
//   scanners that ask for their column.
// - Of the stack what is below its topmost states. Where a token leads below them it is asked about again with more of
//   the stack, and at last with all of it; so places that are alike share what was found out, however deep they are.
//
// `mask_walk.cc` walks, `mask_lexeme.cc` says what of a text is enough, `mask_key.cc` writes down what a mask is found
// by.

#ifndef TREEFILL_SYNTAX_MASK_WALK_H_
#define TREEFILL_SYNTAX_MASK_WALK_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syntax/mask_dictionary.h"
#include "syntax/parser.h"
#include "syntax/vocabulary.h"

namespace treefill::syntax {

class MaskWalk {
 public:
  MaskWalk(Parser& parser, std::shared_ptr<const GrammarVocabulary> vocabulary);

  // kUnknown: the dictionary has not the mask, and nothing was to be walked. kGaveUp: so did the grammar.
  enum class Outcome { kDecided, kUnknown, kGaveUp };
  enum class Effort { kLookUp, kWalk };
  // Sets the bits of the tokens that may come after `text`, whose parses are `versions`, in a mask that is all 0; those
  // of all tokens where the grammar gave up. Of an unknown one the bits mean nothing. What the dictionary has is taken
  // from there, and what it has not is added.
  Outcome fill(std::string_view text, const Versions& versions, std::span<uint32_t> words,
               MaskDictionary* dictionary = nullptr, Effort effort = Effort::kWalk);
  // What the halves of the mask were found by in the last `fill` with a dictionary.
  const std::vector<std::string>& keys() const { return keys_; }

  // How much the last walk did.
  struct Counts {
    uint64_t n_nodes = 0;      // of the tries that were looked at
    uint64_t n_steps = 0;      // where letters led from numbers for the first time
    uint64_t n_parsed = 0;     // times that the parser was asked
    uint64_t n_raw = 0;        // texts that are a scanner's to decide
    uint64_t n_configs = 0;    // numbers, those of earlier masks among them
    uint64_t n_rechecked = 0;  // tokens that the dictionary left open
  };
  const Counts& counts() const { return counts_; }

 private:
  using Id = uint32_t;
  static constexpr size_t kNear = 1024;
  static constexpr Id kUnknown = 0xFFFFFFFF;
  static constexpr Id kNowhere = 0xFFFFFFFE;           // no parse is alive there
  static constexpr uint64_t kNotAsked = ~uint64_t{0};  // no lexeme goes on with everything

  // What else a lexeme may be: what it is to a parse with that stack, which begins where the lexeme does.
  struct Alternative {
    Stack stack;
    Id config;  // or kNowhere
  };
  // The open lexeme of a parse: a text, and how the parser stands in it. Places count from the lexeme's beginning.
  struct Lexeme {
    std::string text;
    Version version;
    bool is_lexed;  // by the automaton alone, so that where a letter leads does not depend on the stack
    std::vector<Alternative> alternatives;
    std::string key;      // what tells it from others but for the alternatives
    std::string written;  // what of its text is in that
  };
  // What a walk asks of a lexeme at every node.
  struct LexemeLinks {
    Id ending;          // what of it counts once it has ended; kNowhere where that takes the parser
    Id row = kUnknown;  // lexemes, where it is lexed
    uint64_t loops = kNotAsked;
    bool is_lexed;
    bool may_be_word;
    bool is_whole = false;  // nothing can make it longer
  };
  // One parse that is alive.
  struct Parse {
    Stack stack;
    ScannerState scanner;
    Symbol before;
    Id past;
    Id lexeme;
    bool operator==(const Parse&) const = default;
  };
  struct ParseHash {
    size_t operator()(const Parse& parse) const;
  };
  // Where a walk is: in a parse that is alone, of which base and lexeme are enough, or in several (no base, a config).
  struct Place {
    Id base;
    Id at;  // a lexeme, or a config
    bool operator==(const Place&) const = default;
  };
  static constexpr Id kNoBase = 0xFFFFFFFD;
  static constexpr Place kDeadPlace{kNoBase, kNowhere};
  // A parse, its lexeme left out.
  struct Base {
    Parse parse;
    bool takes_word;
    Id beginning;                  // parses that begin their lexemes alike share it
    Id first_row;                  // where a letter leads from where no lexeme is begun: to a lexeme, or `kUseParser`
    std::vector<Id> ended;         // by the lexeme's ending: what comes after it, kNotAskedYet where nobody asked
    std::vector<int8_t> verdicts;  // by the lexeme; -1: not asked yet
  };
  static constexpr Id kUseParser = 0xFFFFFFFC;
  static constexpr Id kNotAskedYet = 0xFFFFFFFB;
  // All parses of one text.
  struct Config {
    std::vector<Id> parses;
    Verdict verdict;
    Id base = kUnknown;          // of the parse, where it is alone and nothing stands against leaving the rest out
    uint64_t loops = kNotAsked;  // kinds of letters that lead back here
    Id row = kUnknown;
    std::array<std::string, 2> keys;  // without and with line feeds; empty until asked for
    bool is_private = false;          // the key has something that a user wrote
  };
  // Numbers of parses, by what they are.
  class ParseIds {
   public:
    // The number of an equal one, or the next one.
    Id find_or_add(const Parse& parse, std::vector<Parse>& parses);
    void clear() { slots_.assign(kFirstSlots, kUnknown); }

   private:
    static constexpr size_t kFirstSlots = 1024;
    void grow(const std::vector<Parse>& parses);

    std::vector<Id> slots_ = std::vector<Id>(kFirstSlots, kUnknown);  // open addressing; at most half full
  };
  struct IdsHash {
    size_t operator()(const std::vector<Id>& ids) const;
  };
  // A text and its parses, by how much of their stacks is looked at.
  struct Roots {
    std::string_view text;
    const Versions& versions;
    std::vector<Id> found;
  };
  // The entry of a config in the walk's own small table.
  struct Near {
    Id config = kNowhere;
    bool has_line_feed = false;
    uint64_t generation = 0;
    MaskDictionary::Found entry;
  };

  bool fill_half(const TokenTrie& trie, Roots& roots, std::span<uint32_t> words, MaskDictionary* dictionary,
                 Effort effort);
  MaskDictionary::Found look_up(Id config, bool has_line_feed, MaskDictionary& dictionary);
  MaskDictionary::Found keep(Id config, bool has_line_feed, size_t rung, const std::vector<TokenRange>& open,
                             std::span<const uint32_t> made, const TokenTrie& trie, MaskDictionary& dictionary);
  Near& near_of(Id config, bool has_line_feed) { return near_[(config * 2 + has_line_feed) % near_.size()]; }
  const std::string& key_of(Id config, bool has_line_feed);
  void write(const Parse& parse, std::string& key, bool& is_private) const;
  void write(Id config, std::string& key, bool& is_private) const;
  void write(Stack stack, std::string& key) const;
  Id root(Roots& roots, size_t rung);
  std::vector<TokenRange> walk(const TokenTrie& trie, Place root, std::span<const TokenRange> asked,
                               std::span<uint32_t> words);
  Place place_of(Id config);
  bool is_lost(Place place) const { return place.base == kNoBase && place.at == nothing_known_; }
  Place advance(Place place, Letter letter);
  Parse parse_at(Place place) const;
  Id after_ending(Id base, Id lexeme);
  Id undecided_after(Place place, Letter letter);
  Id find_undecided_after(const Parse& parse, Letter letter);
  Id keep_undecided(Version version, const ScannerModel::Rest& rest, std::string_view text);
  bool is_lexed_alike(const Version& version, std::string_view text, std::string_view other);
  Id beginning_of(const Parse& parse);
  Id undecided_row(Id beginning, Id lexeme);
  Id base_of(const Parse& parse);
  Verdict verdict(Place place);
  uint64_t loops(Place place);
  Id next(Id config, Letter letter);
  Id find_next(Id config, Letter letter);
  uint64_t loops(Id config);
  uint64_t lexeme_loops(Id lexeme);
  template <typename Stays>
  uint64_t kinds_that_stay(Stays stays) const;
  void step(Id parse, Letter letter, std::vector<Id>& found);
  Id lexeme_after(Id lexeme, Letter letter);
  // Has the buffer hold the parse's text, `more` after it; its version with places in there.
  Version lay_out(const Parse& parse, std::string_view more);
  void forget();
  Id keep(const Version& version, Id past, uint32_t begins_at);
  Id keep_parse(const Parse& parse);
  Id config_of(Id parse);
  Id new_row();
  Id& entry(Id row, Letter letter) { return rows_[static_cast<size_t>(row) * n_letters_ + letter]; }
  Id find_after_ending(Id base, Id lexeme);
  Id keep_lexeme(const Version& version, std::string_view text, std::string_view rest,
                 std::vector<Alternative> alternatives);
  std::string lexed_key(const Version& version, const std::string& before, std::string_view text);
  bool is_extra(Stack stack, Symbol symbol) const;
  std::string rest_of(const Version& version, std::string_view text);
  std::vector<Alternative> read_otherwise(const Version& version, Id past, uint32_t begins_at);
  std::string_view unsettled(const Version& version, std::string_view text) const;
  std::string lexeme_key(const Version& version, std::string_view text) const;
  LexState keyword_at(const Version& version, std::string_view text, uint32_t end) const;
  Id ending_of(const Version& version, std::string_view text);
  bool takes_word(const Parse& parse);
  Id past_after(std::string_view before, std::string_view consumed);
  bool may_lex_otherwise(Stack stack);
  std::vector<Stack> stacks_of_conflicts(const Version& version);
  void add_stacks_of_conflicts(Stack stack, Symbol symbol, std::vector<Stack>& found);
  Verdict verdict(Id parse);
  Id intern(std::vector<Id> parses);

  Parser& parser_;
  std::shared_ptr<const GrammarVocabulary> vocabulary_;
  const Language& language_;
  size_t n_letters_;
  Counts counts_;

  // All of it is true for as long as the parser lives.
  std::vector<Lexeme> lexemes_;
  std::vector<LexemeLinks> links_;  // of lexemes
  std::unordered_map<std::string, Id> lexeme_ids_;
  std::unordered_map<std::string, Id> ending_ids_;
  std::unordered_map<Stack, bool> lexes_otherwise_;
  std::vector<std::string> pasts_{""};  // what is before a lexeme, as far as it matters; "" is the text's beginning
  std::unordered_map<std::string, Id> past_ids_{{"", 0}};
  std::vector<Parse> parses_;
  std::vector<int8_t> verdicts_;  // of parses; -1: not asked yet
  ParseIds parse_ids_;
  std::vector<Base> bases_;
  std::unordered_map<Parse, Id, ParseHash> base_ids_;
  std::unordered_map<std::string, Id> beginning_ids_;
  std::unordered_map<uint64_t, Id> undecided_;    // rows by beginning and lexeme: lexemes, or `kUseParser`
  std::unordered_map<uint64_t, uint64_t> loops_;  // of lexemes that are not decided, by base and lexeme
  Id not_begun_;                                  // the lexeme of which nothing is there yet
  Id lost_;                                       // the parse that has got below what is known of its stack
  Id nothing_known_;                              // the config that it is alone in
  std::vector<Id> alone_;                         // of parses: the configs that they are alone in
  std::unordered_map<uint64_t, bool> takes_word_;
  std::vector<Id> rows_;                                 // `n_letters_` each: where a letter leads
  std::unordered_map<uint64_t, std::vector<Id>> steps_;  // of parses that are not alone
  std::vector<Config> configs_;
  std::unordered_map<std::vector<Id>, Id, IdsHash> config_ids_;
  std::string buffer_;  // the text of the parse that is looked at
  bool is_column_kept_ = false;
  std::vector<Near> near_ = std::vector<Near>(kNear);
  std::vector<std::string> keys_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_MASK_WALK_H_
