// A generalised LR parser (Tomita; tree-sitter's kind of it) over a grammar's own tables, without error recovery and
// without trees: what it keeps of a text is the set of parses that are still alive, each a stack of parse states, what
// the external scanner remembers and the lexeme that the text ends in. That lexeme is kept as a state of the lexer's
// automaton, and is judged by the tokens that it may yet become: `de` in `x = de` is alive for its identifiers, `def`
// is not. tree-sitter explores exactly these actions, drops a parse without errors only where two are equal or there
// are very many, and its precedences choose among trees, not texts; so a text is accepted exactly where tree-sitter
// parses it without an error.
//
// The parser owns no text: `acceptor.h` has one that grows, `mask_walk.h` many that branch.

#ifndef TREEFILL_SYNTAX_PARSER_H_
#define TREEFILL_SYNTAX_PARSER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "syntax/external_scanner.h"
#include "syntax/language.h"
#include "syntax/lexer_tables.h"
#include "syntax/policy.h"
#include "syntax/scanner_model.h"
#include "syntax/stacks.h"

namespace treefill::syntax {

class Brackets;
struct Situation;

// A grammar and what was recovered of its lexers. Shared by its parsers, from any thread.
struct Grammar {
  // `model` is the name of the external scanner's model, where there is one; `kept` what `keep` gave before, or empty.
  explicit Grammar(const TSLanguage* tables, const PolicyText& policy = {}, std::string_view model = {},
                   std::span<const uint32_t> kept = {});

  // All that was found out about the lexers, for the next process.
  std::vector<uint32_t> keep() const;

  Language language;
  LexerTables lexer;
  std::unique_ptr<LexerTables> keywords;  // null where the grammar has none
  Policy policy;
  const ScannerModel* model;  // null: the scanner itself is asked
  std::unordered_set<Symbol> layout_tokens;
  std::unordered_set<StateId> inside_brackets;  // states right after an opening bracket

  bool is_layout_token(Symbol symbol) const { return layout_tokens.contains(symbol); }
};

// Whether something may come next. kMaybe: only what lies below a stack's cut would tell.
enum class Verdict : int8_t { kNo, kMaybe, kYes };

// One parse that is alive. Its open lexeme, if any, is what lies from `position` to the end of the text. Where its
// stack is a cut the parse is lost: it has got to where nothing is known, and may be anything.
struct Version {
  Stack stack;
  ScannerState scanner;
  Symbol before;      // the last token taken, extras left out; kNoSymbol at the beginning
  uint32_t position;  // where the next token begins, white space before it included
  uint32_t seen = 0;  // the length of the text that was looked at; 0: the token is not begun
  uint32_t token_start = 0;
  uint32_t cursor = 0;          // how far the automaton has read
  uint32_t accepted_end = 0;    // where `accepted` ends
  Symbol accepted = kNoSymbol;  // the longest token so far
  LexState lex = kDead;         // kDead while the external scanner has not decided
  ExternalSet possible = 0;     // then: what it may yet find
  bool may_be_lexed = false;    // then: and it may find nothing
};
using Versions = std::vector<Version>;

// One thread at a time. Stacks and scanner memories are numbers that only the parser they are from can read.
class Parser {
 public:
  explicit Parser(std::shared_ptr<const Grammar> grammar);

  // The one parse of an empty text.
  Version beginning();
  // Lets every parse read up to the end of `text`, of which it has seen a beginning. True where one of them may go on
  // from there, or the parser has given up.
  bool read(std::string_view text, Versions& versions);
  // Is `text` a whole one? The versions end in it.
  bool read_whole(std::string_view text, Versions& versions);
  // The terminals that may come next, where a token has just ended: what the parses that are alive could take.
  std::vector<Symbol> expected(const Versions& versions);
  // What the end of `text` is about, which the versions have read (`situation.h`).
  Situation situation(std::string_view text, const Versions& versions, const Brackets& brackets);

  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }
  // Where the token begins that no parse could take, for the last text that was refused; a byte of the text with it.
  uint32_t refused_at = 0;
  // Why everything is allowed from here on; empty while the grammar decides.
  const std::string& gave_up() const { return gave_up_; }
  // Ready for another text, with all that was found out. False where that has become too much to keep.
  bool start_anew();
  // Takes up again what was given up for a text that is gone; unless memory is the reason.
  void take_up_again();

 private:
  friend class MaskWalk;  // steps single parses over texts of its own

  void run(Versions& versions, bool is_whole);
  void advance(Version version, Versions& versions, bool is_whole);
  ExternalScanner::Question question_for(const Version& version, bool is_whole);
  bool scan(Version& version, Versions& versions, bool is_whole);
  bool is_inside_brackets(Stack stack);
  void start_lexing(Version& version, uint16_t lex_state) const;
  bool lex(Version& version, bool is_whole);
  bool read_lexeme(Version& version, bool is_whole) const;
  Symbol keyword_or(Symbol word, const Version& version) const;
  void shift(const Version& version, Symbol symbol, uint32_t end, ScannerState scanner, bool is_keyword,
             Versions& versions);
  void end_extra(const Version& version, Versions& versions);
  Stack reduce(Stack stack, const ParseAction& action);
  bool policy_allows(Stack stack, Symbol before, Symbol symbol);
  bool is_at_home(Stack stack, size_t home);
  bool is_lost(const Version& version) const { return stacks_.is_cut(version.stack); }
  // The stack without what lies below its topmost `n_states`; the same where it has no more.
  Stack cut(Stack stack, size_t n_states);
  Verdict can_take(const Version& version, Symbol symbol);
  Verdict can_shift(Stack stack, Symbol symbol);
  Verdict is_viable(const Versions& versions, int depth = 0);
  Verdict is_viable(const Version& version, int depth);
  Verdict is_viable_after(const Version& version, int depth);
  Verdict may_be_scanned(const Version& version);
  Verdict may_be_lexed(Version version, int depth);
  Verdict may_become(const Version& version);
  Verdict may_become_word(const Version& version);
  // Where the keywords' automaton is after the open lexeme; kDead where no keyword begins so.
  LexState keyword_state(const Version& version) const;
  SymbolSet symbols_of(Version version);
  void add(const Version& version, Versions& versions);
  void start_watch();
  // Counts, and tells whether that is more than one call may take: then everything is allowed.
  bool is_spent(uint64_t n_steps);
  void give_up(std::string why);

  std::shared_ptr<const Grammar> grammar_;
  const Language& language_;
  ExternalScanner scanner_;
  StackPool stacks_;
  std::string_view text_;  // of the call that is under way
  std::unordered_set<Stack> known_outside_;
  std::unordered_map<uint64_t, Verdict> can_shift_;
  bool is_accepted_ = false;  // some parse took the end of the text
  uint64_t n_steps_ = 0;
  uint64_t max_steps_ = 0;
  std::string gave_up_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_PARSER_H_
