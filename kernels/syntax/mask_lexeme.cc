// What of a text is enough to tell what may follow: lexemes that are open or undecided, what lies before them, and how
// else they may be read, as numbers.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syntax/bytes.h"
#include "syntax/mask_walk.h"
#include "syntax/utf8.h"

namespace treefill::syntax {
namespace {

constexpr int kMaxComments = 500;  // in a row, of which those that are alike count as one

// The version without its stack, its places counted from `from`.
Version relative_to(Version version, uint32_t from) {
  version.stack = kNoStack;
  version.scanner = ExternalScanner::kFresh;
  version.before = kNoSymbol;
  for (uint32_t* place :
       {&version.position, &version.seen, &version.token_start, &version.cursor, &version.accepted_end})
    *place -= std::min(*place, from);
  return version;
}

}  // namespace

// A number for all that the lexer and the scanner may ask of a parse where they begin a lexeme.
MaskWalk::Id MaskWalk::beginning_of(const Parse& parse) {
  Version version{};
  version.stack = parse.stack;
  version.scanner = parse.scanner;
  version.before = parse.before;
  const LexMode mode = language_.lex_mode(parser_.stacks_.state(parse.stack));
  std::string key;
  append(key, mode.lex_state);
  append(key, mode.external_lex_state);
  append(key, parse.past == 0);
  if (mode.external_lex_state != 0) {
    const auto question = parser_.question_for(version, false);
    append(key, parse.scanner);
    append(key, question.is_statement_start);
    append(key, question.is_outside_brackets);
    append(key, parse.past);
  }
  return beginning_ids_.try_emplace(std::move(key), static_cast<Id>(beginning_ids_.size())).first->second;
}

MaskWalk::Id MaskWalk::find_undecided_after(const Parse& parse, Letter letter) {
  Version version = lay_out(parse, vocabulary_->letters().spelling(letter));
  const LexMode mode = language_.lex_mode(parser_.stacks_.state(parse.stack));
  if (mode.lex_state == kNoLexing || parse.past == 0) return kUseParser;
  const std::string_view text = std::string_view(buffer_).substr(version.position);
  if (mode.external_lex_state != 0) {
    const auto question = parser_.question_for(version, false);
    const auto answer = parser_.scanner_.scan(question, buffer_);
    if (answer.is_refused) return kNowhere;
    if (answer.found || answer.is_overfull) return kUseParser;
    if (answer.is_undecided) {
      version.possible = answer.possible;
      version.may_be_lexed = answer.may_decline;
      return keep_undecided(version, parser_.scanner_.rest(question, buffer_), text);
    }
  }
  // What is before it is in the buffer, too: at a text's beginning a mark would be left out.
  parser_.start_lexing(version, mode.lex_state);
  const bool is_done = parser_.read_lexeme(version, false);
  const bool is_whole = is_done && version.cursor == buffer_.size();
  if (is_done && !is_whole) return version.accepted == kNoSymbol ? kNowhere : kUseParser;
  version.seen = static_cast<uint32_t>(buffer_.size());
  const Id lexeme = keep_lexeme(relative_to(version, version.position), text, text, {});
  links_[lexeme].is_whole = is_whole;
  return lexeme;
}

MaskWalk::Id MaskWalk::keep_undecided(Version version, const ScannerModel::Rest& rest, std::string_view text) {
  const bool is_lexer_asked = version.may_be_lexed && !rest.is_never_lexed && rest.text != text;
  if (ends_inside_character(text) || (is_lexer_asked && !is_lexed_alike(version, text, rest.text))) return kUseParser;
  version = relative_to(version, version.position);
  version.lex = kDead;
  version.seen = static_cast<uint32_t>(rest.text.size());
  return keep_lexeme(version, rest.text, rest.text, {});
}

// Does the lexer make the same of both texts, whatever the parser could take of it?
bool MaskWalk::is_lexed_alike(const Version& version, std::string_view text, std::string_view other) {
  const auto key_of = [&](std::string_view each) {
    Version open = version;
    open.position = 0;
    parser_.text_ = each;
    parser_.start_lexing(open, language_.lex_mode(parser_.stacks_.state(version.stack)).lex_state);
    if (!parser_.read_lexeme(open, false)) return lexeme_key(open, each);
    return std::string(open.accepted == kNoSymbol ? "nothing" : "");
  };
  const std::string key = key_of(text);
  const bool is_alike = !key.empty() && key == key_of(other);
  parser_.text_ = buffer_;
  return is_alike;
}

// A parse of the buffer's text as a number. What `past` stands for ends at `begins_at`.
MaskWalk::Id MaskWalk::keep(const Version& version, Id past, uint32_t begins_at) {
  if (parser_.is_lost(version)) return lost_;
  const std::string_view all = buffer_;
  const uint32_t from = version.position;
  if (from != begins_at) past = past_after(all.substr(0, begins_at), all.substr(begins_at, from - begins_at));
  Version relative = relative_to(version, from);
  const std::string_view text = all.substr(from);
  const bool is_undecided = !text.empty() && version.lex == kDead;
  const std::string rest(is_undecided ? rest_of(version, text) : text);
  std::vector<Alternative> alternatives;
  std::string shown = rest;
  if (!text.empty() && may_lex_otherwise(version.stack)) {
    shown = text;
    alternatives = read_otherwise(version, past, begins_at);
  }
  relative.seen = static_cast<uint32_t>(shown.size());
  return keep_parse({version.stack, version.scanner, version.before, past,
                     keep_lexeme(relative, shown, rest, std::move(alternatives))});
}

// What the buffer's text is to each parse that a conflict may yet send back to where the lexeme begins.
std::vector<MaskWalk::Alternative> MaskWalk::read_otherwise(const Version& version, Id past, uint32_t begins_at) {
  std::vector<Alternative> alternatives;
  const std::string text = buffer_;
  for (Stack stack : stacks_of_conflicts(version)) {
    if (parser_.stacks_.is_cut(stack)) {
      alternatives.push_back({stack, nothing_known_});
      continue;
    }
    Versions versions{{stack, version.scanner, version.before, version.position}};
    parser_.text_ = buffer_ = text;
    parser_.start_watch();
    parser_.run(versions, false);
    std::vector<Id> parses;
    for (const Version& each : versions) {
      parses.push_back(keep(each, past, begins_at));
      parser_.text_ = buffer_ = text;
    }
    alternatives.push_back({stack, intern(std::move(parses))});
  }
  parser_.text_ = buffer_ = text;
  return alternatives;
}

// What is enough of a text that the scanner has not decided.
std::string MaskWalk::rest_of(const Version& version, std::string_view text) {
  if (ends_inside_character(text)) return std::string(text);
  ScannerModel::Rest rest = parser_.scanner_.rest(parser_.question_for(version, false), buffer_);
  if (version.may_be_lexed && !rest.is_never_lexed) {
    // The lexer may be asked after all.
    const std::string before = buffer_.substr(0, version.position);
    const bool is_same = lexed_key(version, before, text) == lexed_key(version, before, rest.text);
    parser_.text_ = buffer_;
    if (!is_same) return std::string(text);
  }
  return std::move(rest.text);
}

// What the lexer makes of a text, were the scanner to decline; nothing of what can't be taken. Behind a comment the
// scanner is asked again: where it is asked the same it declines again.
std::string MaskWalk::lexed_key(const Version& version, const std::string& before, std::string_view text) {
  std::string key;
  std::string asked;
  for (int n = 0; n < kMaxComments; ++n) {
    Version again = version;
    again.position = static_cast<uint32_t>(before.size());
    std::string rest = parser_.scanner_.rest(parser_.question_for(again, false), before + std::string(text)).text;
    if (n > 0 && rest != asked) key += 'c' + rest + '\0';
    asked = std::move(rest);
    Version open = version;
    open.position = 0;
    parser_.text_ = text;
    parser_.start_watch();
    if (parser_.may_be_lexed(open, 0) == Verdict::kNo) return key;
    parser_.start_lexing(open, language_.lex_mode(parser_.stacks_.state(version.stack)).lex_state);
    const bool is_done = parser_.read_lexeme(open, false);
    const std::string_view left = text.substr(std::min<size_t>(open.accepted_end, text.size()));
    if (!is_done || open.accepted == kNoSymbol || left.empty() || !is_extra(version.stack, open.accepted))
      return key + 'k' + lexeme_key(open, text);
    text = left;
  }
  return key + 't' + std::string(text);
}

bool MaskWalk::is_extra(Stack stack, Symbol symbol) const {
  const auto actions = language_.actions(parser_.stacks_.state(stack), symbol);
  return actions.size() == 1 && actions[0].type == ParseAction::kShift && actions[0].shift.extra;
}

// `rest` is enough of the text, but where there are alternatives.
MaskWalk::Id MaskWalk::keep_lexeme(const Version& version, std::string_view text, std::string_view rest,
                                   std::vector<Alternative> alternatives) {
  const bool is_begun = !text.empty();
  const bool is_lexed = is_begun && version.lex != kDead;
  std::string key;
  append(key, static_cast<uint8_t>(is_begun + is_lexed));
  if (is_lexed) {
    key += lexeme_key(version, text);
  } else if (is_begun) {
    append(key, version.possible);
    append(key, version.may_be_lexed);
    key += rest;
    ++counts_.n_raw;
  }
  std::string whole = key;
  for (const auto& [stack, config] : alternatives) {
    append(whole, stack);
    append(whole, config);
  }
  append(whole, alternatives.size());
  const auto [known, is_new] = lexeme_ids_.try_emplace(std::move(whole), static_cast<Id>(lexemes_.size()));
  if (is_new) {
    const Id ending = is_lexed && alternatives.empty() ? ending_of(version, text) : kNowhere;
    const Symbol word = language_.keyword_capture_token();
    const bool may_be_word = is_lexed && parser_.grammar()->keywords && word != kEnd &&
                             parser_.grammar()->lexer.state(version.lex).reachable.contains(word);
    std::string written(is_lexed ? unsettled(version, text) : rest);
    lexemes_.push_back(
        {std::string(text), version, is_lexed, std::move(alternatives), std::move(key), std::move(written)});
    links_.push_back({.ending = ending, .is_lexed = is_lexed, .may_be_word = may_be_word});
  }
  return known->second;
}

// A number for what of a lexeme counts once it has ended where its text does; kNowhere where it can't end there.
MaskWalk::Id MaskWalk::ending_of(const Version& version, std::string_view text) {
  const Grammar& grammar = *parser_.grammar();
  const bool is_token = version.accepted != kNoSymbol && version.accepted_end == text.size();
  if (!is_token || grammar.policy.is_json_number(version.accepted)) return kNowhere;
  std::string key;
  append(key, version.accepted);
  append(key, version.accepted == language_.keyword_capture_token() ? keyword_at(version, text, version.accepted_end)
                                                                    : kDead);
  if (grammar.model) key += grammar.model->past(text);
  if (is_column_kept_ && !grammar.model) key += text;
  return ending_ids_.try_emplace(std::move(key), static_cast<Id>(ending_ids_.size())).first->second;
}

// The state that the automaton of keywords is in after the word up to `end`; kDead where it is none's beginning.
LexState MaskWalk::keyword_at(const Version& version, std::string_view text, uint32_t end) const {
  const auto& keywords = parser_.grammar()->keywords;
  if (!keywords) return kDead;
  LexState state = keywords->start(0);
  for (uint32_t at = version.token_start; at < end && state != kDead;) {
    const Utf8Character character = utf8_at(text, at);
    state = keywords->step(state, character.code_point).state;
    at += std::max<uint8_t>(character.length, 1);
  }
  return state;
}

// What of the lexeme's text may be read again. Where the automaton will find a longer token whatever comes, it never
// goes back to the one before.
std::string_view MaskWalk::unsettled(const Version& version, std::string_view text) const {
  const Grammar& grammar = *parser_.grammar();
  const Policy& policy = grammar.policy;
  const bool has_token = version.accepted != kNoSymbol;
  const auto& state = grammar.lexer.state(version.lex);
  const bool is_number = policy.has_json_numbers() &&
                         ((has_token && policy.is_json_number(version.accepted)) ||
                          state.reachable.any_of([&](Symbol symbol) { return policy.is_json_number(symbol); }));
  if (is_number) return text.substr(version.token_start);
  if (is_column_kept_ && !grammar.model) return text;  // how far into its line it ends may be asked
  const bool goes_back = has_token && !state.is_bound_to_accept;
  return text.substr(goes_back ? std::min(version.accepted_end, version.cursor) : version.cursor);
}

// All that the automaton and the parser may yet ask of the lexeme.
std::string MaskWalk::lexeme_key(const Version& version, std::string_view text) const {
  const Grammar& grammar = *parser_.grammar();
  const Symbol word = language_.keyword_capture_token();
  const bool has_token = version.accepted != kNoSymbol;
  std::string key;
  append(key, version.lex);
  append(key, version.accepted);
  if (grammar.keywords && (version.accepted == word || grammar.lexer.state(version.lex).reachable.contains(word))) {
    append(key, keyword_at(version, text, version.cursor));
    if (has_token) append(key, keyword_at(version, text, version.accepted_end));
  }
  key += unsettled(version, text);
  if (grammar.model && text.find('\n') != std::string_view::npos) key += grammar.model->past(text);
  return key;
}

// What of the text before a lexeme may matter to the scanner, as a text.
MaskWalk::Id MaskWalk::past_after(std::string_view before, std::string_view consumed) {
  std::string past = std::string(before) += consumed;
  if (const ScannerModel* model = parser_.grammar()->model)
    past = model->past(past);
  else
    past.erase(0, is_column_kept_ ? past.rfind('\n') + 1 : past.size());
  if (past.empty()) past = "\n";  // not the text's beginning
  const auto [known, is_new] = past_ids_.try_emplace(past, static_cast<Id>(pasts_.size()));
  if (is_new) pasts_.push_back(std::move(past));
  return known->second;
}

// May a conflict send a parse with that stack back to read its lexeme by other rules?
bool MaskWalk::may_lex_otherwise(Stack stack) {
  const auto known = lexes_otherwise_.find(stack);
  if (known != lexes_otherwise_.end()) return known->second;
  std::vector<Stack> found;
  for (uint32_t symbol = 0; symbol < language_.token_count() && found.empty(); ++symbol)
    add_stacks_of_conflicts(stack, static_cast<Symbol>(symbol), found);
  return lexes_otherwise_[stack] = !found.empty();
}

// The stacks of the parses that would be sent back by one of the tokens that the version may yet find.
std::vector<Stack> MaskWalk::stacks_of_conflicts(const Version& version) {
  std::vector<Stack> found;
  const Symbol word = language_.keyword_capture_token();
  const auto add = [&](Symbol symbol) { add_stacks_of_conflicts(version.stack, symbol, found); };
  if (version.lex == kDead) {
    for (uint32_t symbol = 0; symbol < language_.token_count(); ++symbol) add(static_cast<Symbol>(symbol));
  } else {
    const Grammar& grammar = *parser_.grammar();
    const auto visit = [&](Symbol symbol) {
      add(symbol);
      if (grammar.keywords && symbol == word)
        grammar.keywords->state(grammar.keywords->start(0)).reachable.any_of([&](Symbol keyword) {
          add(keyword);
          return false;
        });
      return false;
    };
    grammar.lexer.state(version.lex).reachable.any_of(visit);
    if (version.accepted != kNoSymbol) visit(version.accepted);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void MaskWalk::add_stacks_of_conflicts(Stack stack, Symbol symbol, std::vector<Stack>& found) {
  const auto mode_of = [&](Stack of) {
    const LexMode mode = language_.lex_mode(parser_.stacks_.state(of));
    return std::pair(mode.lex_state, mode.external_lex_state);
  };
  const auto own = mode_of(stack);
  std::vector<Stack> reached{stack};
  const auto add_from = [&](Stack from, Symbol with) {
    const auto actions = language_.actions(parser_.stacks_.state(from), with);
    for (size_t i = 0; i < actions.size(); ++i) {
      if (actions[i].type != ParseAction::kReduce) continue;
      const Stack reduced = parser_.reduce(from, actions[i]);
      if (reduced == kNoStack || std::find(reached.begin(), reached.end(), reduced) != reached.end()) continue;
      if (parser_.stacks_.is_cut(reduced)) {
        if (i + 1 < actions.size()) found.push_back(reduced);
        continue;
      }
      if (i + 1 < actions.size() && mode_of(reduced) != own) found.push_back(reduced);
      reached.push_back(reduced);
    }
  };
  for (size_t at = 0; at < reached.size() && !parser_.is_spent(1); ++at) {
    add_from(reached[at], symbol);
    if (parser_.grammar()->keywords) add_from(reached[at], language_.keyword_capture_token());  // what a keyword may be
  }
}

}  // namespace treefill::syntax
