#include "syntax/parser.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "syntax/utf8.h"

namespace treefill::syntax {
namespace {

// The watchdog: beyond any of these the grammar is not worth its time here, and everything is allowed.
constexpr size_t kMaxVersions = 64;
constexpr size_t kMaxNodes = 4'000'000;
constexpr size_t kMaxMemo = 1'000'000;
constexpr size_t kMaxKeptNodes = 500'000;  // from one text to the next
constexpr size_t kMaxKeptMemo = 200'000;
constexpr uint64_t kMaxStepsAByte = 6;    // real files take less than two
constexpr uint64_t kFreeSteps = 300'000;  // of one call
constexpr uint64_t kWalkedAStep = 16;     // bytes that are read, or states of a stack, that count as one

constexpr int32_t kByteOrderMark = 0xFEFF;
constexpr int kMaxReLexings = 8;  // of one open lexeme, each time from an earlier end

// What is known of what lies below a stack's cut: a bit for this, and one for each of the policy's homes above it.
constexpr uint16_t kIsInsideBrackets = 1;
constexpr size_t kMaxHomes = 15;

uint16_t home_bit(size_t home) { return static_cast<uint16_t>(2u << home); }

// The best verdict of all, as far as it is to be known.
template <typename Judge>
Verdict best_of(const Versions& versions, Judge judge) {
  Verdict best = Verdict::kNo;
  for (const Version& version : versions)
    if (best != Verdict::kYes) best = std::max(best, judge(version));
  return best;
}

template <typename Judge>
Verdict best_of(const SymbolSet& symbols, Judge judge) {
  Verdict best = Verdict::kNo;
  symbols.any_of([&](Symbol symbol) {
    best = std::max(best, judge(symbol));
    return best == Verdict::kYes;
  });
  return best;
}

// What was kept of the first lexer comes after its length, that of the keywords behind it.
std::span<const uint32_t> lexers_part(std::span<const uint32_t> kept) {
  if (!kept.empty() && kept.front() >= kept.size()) throw std::runtime_error("what was kept of the lexer is damaged");
  return kept.empty() ? kept : kept.subspan(1, kept.front());
}

std::span<const uint32_t> keywords_part(std::span<const uint32_t> kept) {
  return kept.empty() ? kept : kept.subspan(1 + kept.front());
}

}  // namespace

Grammar::Grammar(const TSLanguage* tables, const PolicyText& policy_text, std::string_view model_name,
                 std::span<const uint32_t> kept)
    : language(tables),
      lexer(language.lex_function(), language.token_count(), lexers_part(kept)),
      keywords(language.keyword_lex_function()
                   ? std::make_unique<LexerTables>(language.keyword_lex_function(), language.token_count(),
                                                   keywords_part(kept))
                   : nullptr),
      policy(language, policy_text),
      model(scanner_model(model_name)) {
  if (language.external_token_count() > 8 * sizeof(ExternalSet))
    throw std::invalid_argument("The grammar has more external tokens than can be followed.");
  if (policy.homes().size() > kMaxHomes)
    throw std::invalid_argument("More tokens need something around them than can be followed.");
  for (uint32_t state = 0; state < language.state_count(); ++state) {
    const uint16_t lex_state = language.lex_mode(static_cast<StateId>(state)).lex_state;
    if (lex_state != kNoLexing && lex_state >= lexer.n_numbers())
      throw std::runtime_error("the grammar's lexer has not all the states that its tables name");
  }
  for (uint32_t number = 1; number < language.token_count(); ++number) {
    const auto symbol = static_cast<Symbol>(number);
    const std::string_view name = language.symbol_name(symbol);
    if (name == "_newline" || name == "_indent" || name == "_dedent") layout_tokens.insert(symbol);
    if (model && (name == "(" || name == "[" || name == "{")) inside_brackets.merge(language.states_after(symbol));
  }
}

std::vector<uint32_t> Grammar::keep() const {
  std::vector<uint32_t> words = lexer.keep();
  words.insert(words.begin(), static_cast<uint32_t>(words.size()));
  if (keywords) {
    const std::vector<uint32_t> more = keywords->keep();
    words.insert(words.end(), more.begin(), more.end());
  }
  return words;
}

Parser::Parser(std::shared_ptr<const Grammar> grammar)
    : grammar_(std::move(grammar)), language_(grammar_->language), scanner_(language_, grammar_->model) {}

Version Parser::beginning() { return {stacks_.push(kNoStack, kStartState), ExternalScanner::kFresh, kNoSymbol, 0}; }

bool Parser::read(std::string_view text, Versions& versions) {
  if (!gave_up_.empty()) return true;
  text_ = text;
  start_watch();
  run(versions, false);
  return is_viable(versions) != Verdict::kNo || !gave_up_.empty();
}

bool Parser::read_whole(std::string_view text, Versions& versions) {
  text_ = text;
  is_accepted_ = false;
  start_watch();
  run(versions, true);
  return is_accepted_;
}

std::vector<Symbol> Parser::expected(const Versions& versions) {
  std::vector<Symbol> symbols;
  start_watch();
  for (uint32_t symbol = 0; symbol < language_.token_count(); ++symbol)
    for (const Version& version : versions)
      if (can_take(version, static_cast<Symbol>(symbol)) != Verdict::kNo) {
        symbols.push_back(static_cast<Symbol>(symbol));
        break;
      }
  return symbols;
}

bool Parser::start_anew() {
  refused_at = 0;
  if (can_shift_.size() > kMaxKeptMemo) can_shift_.clear();
  return gave_up_.empty() && stacks_.n_nodes() <= kMaxKeptNodes;
}

void Parser::take_up_again() {
  if (stacks_.n_nodes() > kMaxNodes) return;
  gave_up_.clear();
  can_shift_.clear();  // a search that was broken off has left stacks in it as dead ends that are none
}

// Lets every parse read up to the end of the text, those that are behind first, so that equal ones meet.
void Parser::run(Versions& versions, bool is_whole) {
  for (;;) {
    const auto needs_work = [&](const Version& version) {
      return !is_lost(version) && (is_whole || version.seen != text_.size());
    };
    auto next = versions.end();
    for (auto each = versions.begin(); each != versions.end(); ++each)
      if (needs_work(*each) && (next == versions.end() || each->position < next->position)) next = each;
    if (next == versions.end()) return;
    const Version version = *next;
    *next = versions.back();
    versions.pop_back();
    advance(version, versions, is_whole);
    if (versions.size() > kMaxVersions) give_up("The grammar has too many readings of this.");
    if (is_spent(1)) return;
  }
}

// Finds the token that comes next in one parse and lets it take it; or leaves it waiting for more text.
void Parser::advance(Version version, Versions& versions, bool is_whole) {
  if (version.position == text_.size() && !is_whole) {
    version.seen = static_cast<uint32_t>(text_.size());
    add(version, versions);
    return;
  }
  if (version.lex == kDead) {
    const LexMode mode = language_.lex_mode(stacks_.state(version.stack));
    if (mode.lex_state == kNoLexing) return end_extra(version, versions);
    if (mode.external_lex_state != 0 && scan(version, versions, is_whole)) return;
    start_lexing(version, mode.lex_state);
  }
  if (!lex(version, is_whole)) {
    version.seen = static_cast<uint32_t>(text_.size());
    add(version, versions);
    return;
  }
  if (version.accepted == kNoSymbol) {
    refused_at = std::max(refused_at, version.token_start);
    return;
  }
  const auto length = version.accepted_end - version.token_start;
  if (grammar_->policy.is_json_number(version.accepted) &&
      !is_json_number(text_.substr(version.token_start, length), false)) {
    refused_at = std::max(refused_at, version.token_start);
    return;
  }
  const Symbol symbol = keyword_or(version.accepted, version);
  shift(version, symbol, version.accepted_end, version.scanner, symbol != version.accepted, versions);
}

ExternalScanner::Question Parser::question_for(const Version& version, bool is_whole) {
  const bool is_statement_start = version.before == kNoSymbol || grammar_->is_layout_token(version.before);
  return {language_.lex_mode(stacks_.state(version.stack)).external_lex_state,
          version.scanner,
          version.position,
          is_whole,
          grammar_->policy.is_strict(),
          is_statement_start,
          !is_inside_brackets(version.stack)};
}

// Asks the external scanner. True where that settles the version: it took a token, waits for more text, or is refused.
bool Parser::scan(Version& version, Versions& versions, bool is_whole) {
  const auto answer = scanner_.scan(question_for(version, is_whole), text_);
  is_spent(answer.n_read / kWalkedAStep);
  if (answer.is_overfull) give_up("The text is nested too deeply for the grammar's scanner.");
  if (answer.is_undecided) {
    version.seen = static_cast<uint32_t>(text_.size());
    version.possible = answer.possible;
    version.may_be_lexed = answer.may_decline;
    add(version, versions);
    return true;
  }
  if (answer.is_refused) refused_at = std::max(refused_at, version.position);
  if (!answer.found) return answer.is_refused;
  const StateId state = stacks_.state(version.stack);
  // An empty token that leaves everything as it is would be found for ever (tree-sitter leaves it out, too).
  const bool is_empty = answer.end <= version.position && answer.state == version.scanner;
  if (is_empty && language_.next_state(state, answer.symbol) == state) return false;
  version.token_start = version.position;
  shift(version, answer.symbol, answer.end, answer.state, false, versions);
  return true;
}

// Is a bracket open in this parse?
bool Parser::is_inside_brackets(Stack stack) {
  const auto& states = grammar_->inside_brackets;
  if (states.empty()) return false;
  Stack at = stack;
  uint64_t n_walked = 0;
  const auto is_open = [&] {
    return stacks_.is_cut(at) ? (stacks_.facts_below(at) & kIsInsideBrackets) != 0 : states.contains(stacks_.state(at));
  };
  bool is_inside = false;
  for (; at != kNoStack && !known_outside_.contains(at); at = stacks_.below(at)) {
    is_inside = is_open();
    if (is_inside || stacks_.is_cut(at)) break;
    ++n_walked;
  }
  is_spent(n_walked / kWalkedAStep);
  if (!is_inside) known_outside_.insert(stack);
  return is_inside;
}

void Parser::start_lexing(Version& version, uint16_t lex_state) const {
  version.lex = grammar_->lexer.start(lex_state);
  version.cursor = version.token_start = version.position;
  version.accepted = grammar_->lexer.state(version.lex).accepted;
  version.accepted_end = version.position;
}

// Reads on with the automaton. True where the token's end is known; false where more text may make it longer.
bool Parser::lex(Version& version, bool is_whole) {
  const uint32_t from = version.cursor;
  const bool is_done = read_lexeme(version, is_whole);
  is_spent((version.cursor - from) / kWalkedAStep);
  return is_done;
}

bool Parser::read_lexeme(Version& version, bool is_whole) const {
  const LexerTables& lexer = grammar_->lexer;
  if (lexer.state(version.lex).is_final) return true;
  while (version.cursor < text_.size()) {
    const Utf8Character character = utf8_at(text_, version.cursor);
    if (character.length == 0 && !is_whole) {
      const CodePoints some = unfinished_at(text_, version.cursor);
      const bool may_be_mark = version.cursor == 0 && some.first <= kByteOrderMark && kByteOrderMark <= some.last;
      return !may_be_mark && !lexer.leads_on(version.lex, some.first, some.last);
    }
    if (version.cursor == 0 && character.code_point == kByteOrderMark) {  // left out where the text begins with it
      version.cursor = version.token_start = character.length;
      continue;
    }
    const LexerTables::Step step = lexer.step(version.lex, character.code_point);
    if (step.state == kDead) return true;
    version.lex = step.state;
    version.cursor += std::max<uint8_t>(character.length, 1);
    if (step.is_skipped) version.token_start = version.cursor;
    const LexerTables::State& state = lexer.state(step.state);
    if (state.accepted != kNoSymbol) {
      version.accepted = state.accepted;
      version.accepted_end = version.cursor;
    }
    if (state.is_final) return true;
  }
  if (!is_whole) return false;
  const Symbol at_end = lexer.state(version.lex).accepted_at_end;
  if (at_end != kNoSymbol) {
    version.accepted = at_end;
    version.accepted_end = version.cursor;
  }
  return true;
}

// The keyword that a word spells, where the state has a use for it or reserves it; else the word.
Symbol Parser::keyword_or(Symbol word, const Version& version) const {
  if (!grammar_->keywords || word == kEnd || word != language_.keyword_capture_token()) return word;
  const LexerTables& keywords = *grammar_->keywords;
  LexState state = keywords.start(0);
  for (uint32_t at = version.token_start; at < version.accepted_end;) {
    const Utf8Character character = utf8_at(text_, at);
    state = keywords.step(state, character.code_point).state;
    if (state == kDead) return word;
    at += std::max<uint8_t>(character.length, 1);
  }
  const Symbol keyword = keywords.state(state).accepted;
  if (keyword == kNoSymbol) return word;
  const StateId top = stacks_.state(version.stack);
  const bool is_usable = !language_.actions(top, keyword).empty() || language_.is_reserved_word(top, keyword);
  return is_usable ? keyword : word;
}

// Lets one parse take a token, as tree-sitter's `ts_parser__advance` does: each reduction is a parse of its own, the
// last of them goes on with the same token, the others look for theirs anew; a shift ends it.
void Parser::shift(const Version& version, Symbol symbol, uint32_t end, ScannerState scanner, bool is_keyword,
                   Versions& versions) {
  Stack stack = version.stack;
  while (!is_spent(1)) {
    if (stacks_.is_cut(stack)) return add({stack, version.scanner, version.before, version.position}, versions);
    const StateId state = stacks_.state(stack);
    Stack reduced = kNoStack;
    const auto relex = [&](Stack other) {
      if (other != kNoStack) add({other, version.scanner, version.before, version.position}, versions);
    };
    for (const ParseAction& action : language_.actions(state, symbol)) {
      if (action.type == ParseAction::kAccept) {
        is_accepted_ |= policy_allows(stack, version.before, symbol);
        return;
      }
      if (action.type == ParseAction::kReduce) {
        const Stack other = reduce(stack, action);
        if (other == kNoStack) continue;
        relex(std::exchange(reduced, other));
      } else if (action.type == ParseAction::kShift && !action.shift.repetition) {
        relex(reduced);
        const Stack shifted = action.shift.extra ? stack : stacks_.push(stack, action.shift.state);
        if (action.shift.extra || policy_allows(stack, version.before, symbol))
          add({shifted, scanner, action.shift.extra ? version.before : symbol, end}, versions);
        else
          refused_at = std::max(refused_at, version.token_start);
        return;
      }
    }
    if (reduced != kNoStack) {
      stack = reduced;
      continue;
    }
    const Symbol word = language_.keyword_capture_token();
    if (!is_keyword || language_.is_reserved_word(state, symbol) || language_.actions(state, word).empty()) break;
    symbol = word;
    is_keyword = false;
  }
  refused_at = std::max(refused_at, version.token_start);
}

// A comment that is a rule of the grammar ends here, whatever comes: its reduction is stored under the end.
void Parser::end_extra(const Version& version, Versions& versions) {
  for (const ParseAction& action : language_.actions(stacks_.state(version.stack), kEnd)) {
    if (action.type != ParseAction::kReduce) continue;
    const Stack below = stacks_.pop(version.stack, action.reduce.child_count);
    if (below == kNoStack) continue;
    if (stacks_.is_cut(below)) {
      add({below, version.scanner, version.before, version.position}, versions);
      continue;
    }
    const StateId state = stacks_.state(below);
    const StateId next = language_.next_state(state, action.reduce.symbol);
    add({next == state ? below : stacks_.push(below, next), version.scanner, version.before, version.position},
        versions);
  }
}

// The cut where more is taken off than is known.
Stack Parser::reduce(Stack stack, const ParseAction& action) {
  const Stack below = stacks_.pop(stack, action.reduce.child_count);
  if (below == kNoStack || stacks_.is_cut(below)) return below;
  if (const auto* parts = grammar_->policy.needed_parts_of(action.reduce.symbol)) {
    Stack part = stack;
    while (part != below && !parts->contains(stacks_.state(part))) part = stacks_.below(part);
    if (part == below) return kNoStack;
  }
  const StateId next = language_.next_state(stacks_.state(below), action.reduce.symbol);
  return next == 0 ? kNoStack : stacks_.push(below, next);
}

// Does the language's policy have nothing against the token after the one before, on this stack?
bool Parser::policy_allows(Stack stack, Symbol before, Symbol symbol) {
  const Policy& policy = grammar_->policy;
  if (policy.refuses_pair(before, symbol)) return false;
  const auto home = policy.home_of(symbol);
  return !home || is_at_home(stack, *home);
}

bool Parser::is_at_home(Stack stack, size_t home) {
  const auto& states = grammar_->policy.homes()[home];
  uint64_t n_walked = 0;
  for (; stack != kNoStack; stack = stacks_.below(stack)) {
    if (stacks_.is_cut(stack)) return (stacks_.facts_below(stack) & home_bit(home)) != 0;
    if (states.contains(stacks_.state(stack))) break;
    ++n_walked;
  }
  is_spent(n_walked / kWalkedAStep);
  return stack != kNoStack;
}

Stack Parser::cut(Stack stack, size_t n_states) {
  std::vector<StateId> kept;
  Stack at = stack;
  for (; at != kNoStack && !stacks_.is_cut(at) && kept.size() < n_states; at = stacks_.below(at))
    kept.push_back(stacks_.state(at));
  if (at == kNoStack) return stack;
  uint16_t facts = is_inside_brackets(at) ? kIsInsideBrackets : 0;
  for (size_t home = 0; home < grammar_->policy.homes().size(); ++home)
    if (is_at_home(at, home)) facts |= home_bit(home);
  Stack top = stacks_.cut(facts);
  for (size_t i = kept.size(); i > 0; --i) top = stacks_.push(top, kept[i - 1]);
  return top;
}

Verdict Parser::can_take(const Version& version, Symbol symbol) {
  if (is_lost(version)) return Verdict::kMaybe;
  if (language_.actions(stacks_.state(version.stack), symbol).empty()) return Verdict::kNo;
  const Verdict verdict = can_shift(version.stack, symbol);
  const bool is_no = verdict == Verdict::kNo || !policy_allows(version.stack, version.before, symbol);
  return is_no ? Verdict::kNo : verdict;
}

// Can this stack take that terminal, after whatever reductions it calls for? The table alone does not tell: it merges
// states, and a reduction that it lists may lead to a state with no use for the terminal. There may be as many in a row
// as the text has levels, so they are searched without recursion.
Verdict Parser::can_shift(Stack stack, Symbol symbol) {
  const auto key = [symbol](Stack of) { return static_cast<uint64_t>(of) << 16 | symbol; };
  if (const auto known = can_shift_.find(key(stack)); known != can_shift_.end()) return known->second;
  if (can_shift_.size() >= kMaxMemo) can_shift_.clear();
  struct Reached {
    Stack stack;
    size_t from;  // place of the one that it was reduced from
  };
  std::vector<Reached> reached{{stack, 0}};
  can_shift_.emplace(key(stack), Verdict::kNo);  // all are taken for dead ends until one is none
  Verdict verdict = Verdict::kNo;
  size_t last = 0;
  for (size_t at = 0; at < reached.size() && verdict != Verdict::kYes; ++at) {
    if (is_spent(1)) return Verdict::kYes;
    last = at;
    for (const ParseAction& action : language_.actions(stacks_.state(reached[at].stack), symbol)) {
      if (action.type == ParseAction::kAccept) verdict = Verdict::kYes;
      if (action.type == ParseAction::kShift && !action.shift.repetition) verdict = Verdict::kYes;
      if (action.type != ParseAction::kReduce || verdict == Verdict::kYes) continue;
      const Stack reduced = reduce(reached[at].stack, action);
      if (reduced == kNoStack) continue;
      if (stacks_.is_cut(reduced)) {
        verdict = Verdict::kMaybe;
        continue;
      }
      const auto [known, is_new] = can_shift_.try_emplace(key(reduced), Verdict::kNo);
      if (is_new)
        reached.push_back({reduced, at});
      else
        verdict = std::max(verdict, known->second);
    }
  }
  if (verdict == Verdict::kNo) return verdict;
  // What the others may do has not been found out.
  for (const Reached& each : reached) can_shift_.erase(key(each.stack));
  if (verdict == Verdict::kYes)
    for (; last > 0; last = reached[last].from) can_shift_.emplace(key(reached[last].stack), verdict);
  can_shift_.emplace(key(stack), verdict);
  return verdict;
}

Verdict Parser::is_viable(const Versions& versions, int depth) {
  return best_of(versions, [&](const Version& version) { return is_viable(version, depth); });
}

// Is there something that, written after the text, this parse could take?
Verdict Parser::is_viable(const Version& version, int depth) {
  if (is_lost(version)) return Verdict::kMaybe;
  if (version.position == text_.size()) return Verdict::kYes;
  if (version.lex == kDead) {
    const Verdict scanned = may_be_scanned(version);
    if (scanned == Verdict::kYes || !version.may_be_lexed) return scanned;
    return std::max(scanned, may_be_lexed(version, depth));
  }
  const Verdict longer = may_become(version);
  if (longer == Verdict::kYes) return longer;
  if (longer == Verdict::kNo) refused_at = std::max(refused_at, version.token_start);
  const bool may_be_shorter = version.accepted != kNoSymbol && version.accepted_end < version.cursor;
  if (!may_be_shorter || depth >= kMaxReLexings) return longer;
  return std::max(longer, is_viable_after(version, depth));
}

// The open lexeme ends where it could have ended before, and what comes after that end is another token's beginning.
Verdict Parser::is_viable_after(const Version& version, int depth) {
  Versions after;
  const Symbol symbol = keyword_or(version.accepted, version);
  shift(version, symbol, version.accepted_end, version.scanner, symbol != version.accepted, after);
  run(after, false);
  return is_viable(after, depth + 1);
}

// Can one of the tokens that the scanner may yet find be taken?
Verdict Parser::may_be_scanned(const Version& version) {
  Verdict verdict = Verdict::kNo;
  for (ExternalSet possible = version.possible; possible && verdict != Verdict::kYes; possible &= possible - 1)
    verdict = std::max(verdict, can_take(version, language_.scanner().symbol_map[__builtin_ctzll(possible)]));
  return verdict;
}

// Were the scanner to find nothing, could the lexer?
Verdict Parser::may_be_lexed(Version version, int depth) {
  if (depth >= kMaxReLexings) return Verdict::kYes;
  start_lexing(version, language_.lex_mode(stacks_.state(version.stack)).lex_state);
  if (!lex(version, false)) return is_viable(version, depth + 1);
  return version.accepted == kNoSymbol ? Verdict::kNo : is_viable_after(version, depth);
}

// Can the open lexeme become a token that the stack can take?
Verdict Parser::may_become(const Version& version) {
  const Symbol word = language_.keyword_capture_token();
  return best_of(grammar_->lexer.state(version.lex).reachable, [&](Symbol symbol) {
    if (grammar_->keywords && symbol == word && word != kEnd) return may_become_word(version);
    if (grammar_->policy.is_json_number(symbol) && !is_json_number(text_.substr(version.token_start), true))
      return Verdict::kNo;
    return can_take(version, symbol);
  });
}

Verdict Parser::may_become_word(const Version& version) {
  const Verdict as_word = can_take(version, language_.keyword_capture_token());
  if (as_word == Verdict::kYes) return as_word;
  const LexState at_keyword = keyword_state(version);
  if (at_keyword == kDead) return as_word;
  const auto take = [&](Symbol symbol) { return can_take(version, symbol); };
  return std::max(as_word, best_of(grammar_->keywords->state(at_keyword).reachable, take));
}

LexState Parser::keyword_state(const Version& version) const {
  const LexerTables& keywords = *grammar_->keywords;
  LexState at_keyword = keywords.start(0);
  for (uint32_t at = version.token_start; at < text_.size();) {
    const Utf8Character character = utf8_at(text_, at);
    if (character.length == 0) break;
    at_keyword = keywords.step(at_keyword, character.code_point).state;
    if (at_keyword == kDead) break;
    at += character.length;
  }
  return at_keyword;
}

void Parser::add(const Version& version, Versions& versions) {
  for (const Version& other : versions)
    if (other.stack == version.stack && other.position == version.position && other.scanner == version.scanner &&
        other.before == version.before)
      return;
  versions.push_back(version);
}

void Parser::start_watch() {
  n_steps_ = 0;
  max_steps_ = kFreeSteps + kMaxStepsAByte * text_.size();
}

bool Parser::is_spent(uint64_t n_steps) {
  n_steps_ += n_steps;
  if (n_steps_ > max_steps_) give_up("The grammar takes too long here.");
  if (stacks_.n_nodes() > kMaxNodes) give_up("The grammar takes too much memory here.");
  return !gave_up_.empty();
}

void Parser::give_up(std::string why) {
  if (gave_up_.empty()) gave_up_ = std::move(why);
}

}  // namespace treefill::syntax
