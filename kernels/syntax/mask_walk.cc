#include "syntax/mask_walk.h"

#include <algorithm>
#include <utility>

#include "syntax/utf8.h"

namespace treefill::syntax {
namespace {

constexpr size_t kMaxParsed = 2'000'000;  // steps of one mask: then everything is allowed
constexpr int kMaxComments = 500;         // in a row, of which those that are alike count as one
constexpr size_t kMaxConfigs = 100'000;   // are remembered: a kilobyte each
constexpr size_t kWhole = ~size_t{0};
constexpr size_t kMaxOpen = 250;     // tokens that are asked about again where the rest of the mask was known
constexpr size_t kMaxHarmless = 64;  // bytes of a text in a key
constexpr size_t kDepths[] = {4,  6,  9,     14,
                              22, 40, kWhole};  // states of the stack that are looked at, one after the other

template <typename T>
void append(std::string& key, T value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void append_text(std::string& key, std::string_view text) {
  append(key, static_cast<uint32_t>(text.size()));
  key += text;
}

// Layout, what strings and comments begin with, and what stands for anything in a text of which only that counts.
bool is_harmless(std::string_view text) {
  return text.size() <= kMaxHarmless && text.find_first_not_of(" \t\r\n#ax\"'`{}\\/*-<>$") == std::string_view::npos;
}

size_t n_tokens(const std::vector<TokenRange>& ranges) {
  size_t n = 0;
  for (const TokenRange& range : ranges) n += range.to - range.from;
  return n;
}

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

void set_tokens(std::span<const uint32_t> ids, std::span<uint32_t> words) {
  for (uint32_t id : ids) words[id / 32] |= uint32_t{1} << (id % 32);
}

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

size_t MaskWalk::ParseHash::operator()(const Parse& parse) const {
  uint64_t hash = mix(parse.stack, static_cast<uint64_t>(parse.scanner) << 16 | parse.before);
  return mix(hash, static_cast<uint64_t>(parse.past) << 32 | parse.lexeme);
}

size_t MaskWalk::IdsHash::operator()(const std::vector<Id>& ids) const {
  uint64_t hash = ids.size();
  for (Id id : ids) hash = mix(hash, id);
  return hash;
}

MaskWalk::MaskWalk(Parser& parser, std::shared_ptr<const GrammarVocabulary> vocabulary)
    : parser_(parser),
      vocabulary_(std::move(vocabulary)),
      language_(parser.language_),
      n_letters_(vocabulary_->letters().n_letters()) {
  forget();
}

MaskWalk::Id MaskWalk::ParseIds::find_or_add(const Parse& parse, std::vector<Parse>& parses) {
  if (parses.size() * 2 >= slots_.size()) grow(parses);
  size_t slot = ParseHash()(parse) & (slots_.size() - 1);
  for (; slots_[slot] != kUnknown; slot = (slot + 1) & (slots_.size() - 1))
    if (parses[slots_[slot]] == parse) return slots_[slot];
  slots_[slot] = static_cast<Id>(parses.size());
  parses.push_back(parse);
  return slots_[slot];
}

void MaskWalk::ParseIds::grow(const std::vector<Parse>& parses) {
  slots_.assign(slots_.size() * 2, kUnknown);
  for (Id id = 0; id < parses.size(); ++id) {
    size_t slot = ParseHash()(parses[id]) & (slots_.size() - 1);
    while (slots_[slot] != kUnknown) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = id;
  }
}

MaskWalk::Outcome MaskWalk::fill(std::string_view text, const Versions& versions, std::span<uint32_t> words,
                                 MaskDictionary* dictionary, Effort effort) {
  counts_ = {};
  keys_.clear();
  if (configs_.size() > kMaxConfigs) forget();
  bool is_known = true;
  while (is_known && parser_.gave_up().empty()) {
    Roots roots{text, versions, {}};
    is_known = fill_half(vocabulary_->without_line_feed(), roots, words, dictionary, effort) &&
               fill_half(vocabulary_->with_line_feed(), roots, words, dictionary, effort);
    if (is_column_kept_ == parser_.scanner_.asks_for_column()) break;
    is_column_kept_ = true;  // the scanner has shown that it looks at what was forgotten: all over again
    forget();
    std::fill(words.begin(), words.end(), 0);
  }
  counts_.n_configs = configs_.size();
  if (is_known && parser_.gave_up().empty()) return Outcome::kDecided;
  if (parser_.gave_up().empty()) return Outcome::kUnknown;
  forget();
  set_tokens(vocabulary_->without_line_feed().ids, words);
  set_tokens(vocabulary_->with_line_feed().ids, words);
  return Outcome::kGaveUp;
}

void MaskWalk::forget() {
  lexemes_.clear();
  links_.clear();
  lexeme_ids_.clear();
  ending_ids_.clear();
  pasts_.assign(1, "");
  past_ids_ = {{"", 0}};
  parses_.clear();
  verdicts_.clear();
  parse_ids_.clear();
  bases_.clear();
  base_ids_.clear();
  beginning_ids_.clear();
  undecided_.clear();
  loops_.clear();
  alone_.clear();
  takes_word_.clear();
  rows_.clear();
  steps_.clear();
  configs_.clear();
  config_ids_.clear();
  near_.assign(kNear, {});
  not_begun_ = keep_lexeme(Version{}, "", "", {});
  lost_ = keep_parse({parser_.stacks_.cut(0), ExternalScanner::kFresh, kNoSymbol, 0, not_begun_});
  verdicts_[lost_] = static_cast<int8_t>(Verdict::kMaybe);
  nothing_known_ = config_of(lost_);
}

// Half of the mask: the tokens of one trie. False where it is not known and nothing is to be walked.
bool MaskWalk::fill_half(const TokenTrie& trie, Roots& roots, std::span<uint32_t> words, MaskDictionary* dictionary,
                         Effort effort) {
  const bool has_line_feed = &trie == &vocabulary_->with_line_feed();
  std::vector<TokenRange> open{{0, static_cast<uint32_t>(trie.ids.size())}};
  std::vector<uint32_t> made;  // what came of the walks so far
  bool is_asked = dictionary != nullptr;
  for (size_t rung = 0; rung < std::size(kDepths) && !open.empty() && parser_.gave_up().empty(); ++rung) {
    const Id config = root(roots, rung);
    if (config == kNowhere) return true;
    if (!is_asked) {
      open = walk(trie, place_of(config), open, words);
      continue;
    }
    MaskDictionary::Found entry = look_up(config, has_line_feed, *dictionary);
    if (!entry && effort == Effort::kLookUp) return false;
    if (!entry) {
      made.resize(words.size());
      open = walk(trie, place_of(config), open, made);
      if (!parser_.gave_up().empty()) return true;
      entry = keep(config, has_line_feed, rung, open, made, trie, *dictionary);
    }
    if (!entry->mask) continue;
    entry->mask->apply(words, trie.words);
    open = entry->open;
    counts_.n_rechecked += n_tokens(open);
    is_asked = false;
  }
  return true;
}

MaskDictionary::Found MaskWalk::look_up(Id config, bool has_line_feed, MaskDictionary& dictionary) {
  Near& near = near_of(config, has_line_feed);
  const std::string& key = key_of(config, has_line_feed);
  const bool is_near = near.entry && near.config == config && near.has_line_feed == has_line_feed &&
                       near.generation == dictionary.generation();
  if (!is_near) {
    near = {config, has_line_feed, dictionary.generation(), dictionary.find(dictionary.hash(key), key)};
  } else {
    dictionary.count_nearest();
  }
  if (near.entry && near.entry->mask) keys_.push_back(key);
  return near.entry;
}

MaskDictionary::Found MaskWalk::keep(Id config, bool has_line_feed, size_t rung, const std::vector<TokenRange>& open,
                                     std::span<const uint32_t> made, const TokenTrie& trie,
                                     MaskDictionary& dictionary) {
  const std::string& key = key_of(config, has_line_feed);
  MaskEntry entry;
  entry.is_private = configs_[config].is_private;
  if (n_tokens(open) <= kMaxOpen || kDepths[rung] == kWhole) {
    entry.mask = std::make_shared<const StoredMask>(made, trie.ids);
    entry.open = open;
    keys_.push_back(key);
  }
  // What was found out before the scanner showed that it looks at what was forgotten is no knowledge.
  if (is_column_kept_ != parser_.scanner_.asks_for_column()) return std::make_shared<const MaskEntry>(std::move(entry));
  const uint64_t generation = dictionary.generation();
  const MaskDictionary::Found kept = dictionary.add(dictionary.hash(key), key, std::move(entry));
  near_of(config, has_line_feed) = {config, has_line_feed, generation, kept};
  return kept;
}

// All that a mask of the config depends on, as bytes that mean the same in every process.
const std::string& MaskWalk::key_of(Id config, bool has_line_feed) {
  std::string& key = configs_[config].keys[has_line_feed];
  if (key.empty()) {
    key.push_back(static_cast<char>(has_line_feed));
    key.push_back(static_cast<char>(is_column_kept_));
    write(config, key, configs_[config].is_private);
  }
  return key;
}

void MaskWalk::write(Id config, std::string& key, bool& is_private) const {
  if (config == kNowhere) return append(key, kNowhere);
  std::vector<std::string> parses;
  for (Id parse : configs_[config].parses) write(parses_[parse], parses.emplace_back(), is_private);
  std::sort(parses.begin(), parses.end());
  append(key, static_cast<uint32_t>(parses.size()));
  for (const std::string& parse : parses) key += parse;
}

void MaskWalk::write(const Parse& parse, std::string& key, bool& is_private) const {
  const Lexeme& lexeme = lexemes_[parse.lexeme];
  const std::string_view memory = parser_.scanner_.memory(parse.scanner);
  write(parse.stack, key);
  append(key, parse.before);
  append_text(key, memory);
  append_text(key, pasts_[parse.past]);
  append_text(key, lexeme.key);
  const ScannerModel* model = parser_.grammar()->model;
  const bool is_memory_harmless = memory.empty() || (model && model->remembers_layout_only());
  is_private |= !is_memory_harmless || !is_harmless(pasts_[parse.past]) || !is_harmless(lexeme.written);
  std::vector<std::string> alternatives;
  for (const Alternative& each : lexeme.alternatives) {
    write(each.stack, alternatives.emplace_back());
    write(each.config, alternatives.back(), is_private);
  }
  std::sort(alternatives.begin(), alternatives.end());
  append(key, static_cast<uint32_t>(alternatives.size()));
  for (const std::string& each : alternatives) key += each;
}

// From the top down.
void MaskWalk::write(Stack stack, std::string& key) const {
  const StackPool& stacks = parser_.stacks_;
  std::string states;
  for (; stack != kNoStack && !stacks.is_cut(stack); stack = stacks.below(stack)) append(states, stacks.state(stack));
  append_text(key, states);
  append(key, stack == kNoStack);
  append(key, stack == kNoStack ? uint16_t{0} : stacks.facts_below(stack));
}

MaskWalk::Id MaskWalk::root(Roots& roots, size_t rung) {
  if (rung < roots.found.size()) return roots.found[rung];
  std::vector<Id> parses;
  for (Version version : roots.versions) {
    buffer_ = roots.text;
    parser_.text_ = buffer_;
    version.stack = parser_.cut(version.stack, kDepths[rung]);
    parses.push_back(keep(version, 0, 0));
  }
  roots.found.resize(rung, kUnknown);
  roots.found.push_back(intern(std::move(parses)));
  return roots.found.back();
}

// Sets the bits of those of the tokens that may come, and returns those that more of the stack would tell about.
std::vector<TokenRange> MaskWalk::walk(const TokenTrie& trie, Place root, std::span<const TokenRange> asked,
                                       std::span<uint32_t> words) {
  std::vector<TokenRange> open;
  if (root == kDeadPlace) return open;
  std::array<Place, 257> at;
  at[0] = root;
  const auto judge = [&](uint32_t from, uint32_t to, Verdict verdict) {
    for (const TokenRange& range : asked) {
      const uint32_t first = std::max(from, range.from);
      const uint32_t last = std::min(to, range.to);
      if (first >= to) break;
      if (first >= last || verdict == Verdict::kNo) continue;
      if (verdict == Verdict::kYes)
        set_tokens({trie.ids.data() + first, trie.ids.data() + last}, words);
      else if (!open.empty() && open.back().to == first)
        open.back().to = last;
      else
        open.push_back({first, last});
    }
  };
  const auto n_nodes = static_cast<uint32_t>(trie.nodes.size() - 1);
  for (uint32_t i = 0; i < n_nodes && parser_.gave_up().empty();) {
    const TokenTrie::Node& node = trie.nodes[i];
    while (!asked.empty() && asked.front().to <= node.first_token) asked = asked.subspan(1);
    if (asked.empty()) break;
    if (asked.front().from >= node.end_token) {
      i = node.end;
      continue;
    }
    ++counts_.n_nodes;
    const Place place = advance(at[node.depth], node.letter);
    const Verdict verdict = place == kDeadPlace ? Verdict::kNo : this->verdict(place);
    const bool is_alike = place == at[node.depth] && node.below && (node.below & ~loops(place)) == 0;
    if (place == kDeadPlace || is_lost(place) || (verdict != Verdict::kNo && is_alike)) {
      judge(node.first_token, node.end_token, verdict);
      i = node.end;
      continue;
    }
    judge(node.first_token, trie.nodes[i + 1].first_token, verdict);
    at[node.depth + 1u] = place;
    ++i;
  }
  return open;
}

MaskWalk::Place MaskWalk::place_of(Id id) {
  if (id == kNowhere) return kDeadPlace;
  Config& config = configs_[id];
  if (config.base == kUnknown) {
    config.base = kNoBase;
    if (config.parses.size() == 1 && config.parses[0] != lost_) {
      const Parse parse = parses_[config.parses[0]];
      if (!may_lex_otherwise(parse.stack)) configs_[id].base = base_of(parse);
    }
  }
  const Id base = configs_[id].base;
  return {base, base == kNoBase ? id : parses_[configs_[id].parses[0]].lexeme};
}

MaskWalk::Place MaskWalk::advance(Place place, Letter letter) {
  if (place.base == kNoBase) return place_of(next(place.at, letter));
  const bool is_lexed = links_[place.at].is_lexed;
  const Id lexeme = is_lexed ? lexeme_after(place.at, letter) : undecided_after(place, letter);
  if (lexeme < kUseParser) {
    if (!links_[lexeme].is_whole) return {place.base, lexeme};
    const Id after = after_ending(place.base, lexeme);
    if (after != kUnknown) return place_of(after);
  } else if (lexeme == kNowhere) {
    if (!is_lexed) return kDeadPlace;
    const Id after = after_ending(place.base, place.at);
    if (after == kNowhere) return kDeadPlace;
    if (after != kUnknown) return advance(place_of(after), letter);
  }
  return place_of(next(config_of(keep_parse(parse_at(place))), letter));
}

MaskWalk::Parse MaskWalk::parse_at(Place place) const {
  Parse parse = bases_[place.base].parse;
  parse.lexeme = place.at;
  return parse;
}

Verdict MaskWalk::verdict(Place place) {
  if (place.base == kNoBase) return configs_[place.at].verdict;
  if (place.at == not_begun_ || (links_[place.at].may_be_word && bases_[place.base].takes_word)) return Verdict::kYes;
  const auto& known = bases_[place.base].verdicts;
  if (place.at < known.size() && known[place.at] >= 0) return static_cast<Verdict>(known[place.at]);
  const Verdict found = verdict(keep_parse(parse_at(place)));
  auto& verdicts = bases_[place.base].verdicts;
  if (verdicts.size() <= place.at) verdicts.resize(place.at + 1, -1);
  verdicts[place.at] = static_cast<int8_t>(found);
  return found;
}

uint64_t MaskWalk::loops(Place place) {
  if (place.base == kNoBase) return loops(place.at);
  if (links_[place.at].is_lexed) return lexeme_loops(place.at);
  if (place.at == not_begun_) return 0;
  const uint64_t key = static_cast<uint64_t>(place.base) << 32 | place.at;
  const auto [known, is_new] = loops_.try_emplace(key, 0);
  if (is_new) loops_[key] = kinds_that_stay([&](Letter letter) { return advance(place, letter) == place; });
  return loops_[key];
}

MaskWalk::Id MaskWalk::base_of(const Parse& parse) {
  Parse key = parse;
  key.lexeme = kNowhere;
  const auto [known, is_new] = base_ids_.try_emplace(key, static_cast<Id>(bases_.size()));
  if (is_new) {
    const bool has_words = parser_.grammar()->keywords && language_.keyword_capture_token() != kEnd;
    const bool takes = has_words && takes_word(parse);
    const Id beginning = beginning_of(parse);
    const Id first_row = undecided_row(beginning, not_begun_);
    bases_.push_back({key, takes, beginning, first_row, {}, {}});
  }
  return known->second;
}

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

MaskWalk::Id MaskWalk::undecided_row(Id beginning, Id lexeme) {
  const uint64_t key = static_cast<uint64_t>(beginning) << 32 | lexeme;
  const auto [known, is_new] = undecided_.try_emplace(key, kUnknown);
  if (is_new) known->second = new_row();
  return known->second;
}

// What a lexeme that is not begun or not decided becomes with the letter; kNowhere where that is no lexeme, kUseParser
// where the scanner has found something.
MaskWalk::Id MaskWalk::undecided_after(Place place, Letter letter) {
  const Base& base = bases_[place.base];
  const Id row = place.at == not_begun_ ? base.first_row : undecided_row(base.beginning, place.at);
  const Id known = entry(row, letter);
  if (known != kUnknown) return known;
  ++counts_.n_steps;
  const Id found = find_undecided_after(parse_at(place), letter);
  return entry(row, letter) = found;
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

MaskWalk::Id MaskWalk::next(Id config, Letter letter) {
  if (configs_[config].row == kUnknown) configs_[config].row = new_row();
  const Id known = entry(configs_[config].row, letter);
  return known != kUnknown ? known : find_next(config, letter);
}

MaskWalk::Id MaskWalk::new_row() {
  rows_.resize(rows_.size() + n_letters_, kUnknown);
  return static_cast<Id>(rows_.size() / n_letters_ - 1);
}

MaskWalk::Id MaskWalk::find_next(Id config, Letter letter) {
  ++counts_.n_steps;
  std::vector<Id> found;
  if (configs_[config].parses.size() == 1) {
    step(configs_[config].parses[0], letter, found);
  } else {
    const std::vector<Id> parses = configs_[config].parses;
    for (Id parse : parses) {
      const uint64_t key = static_cast<uint64_t>(parse) << 8 | letter;
      auto known = steps_.find(key);
      if (known == steps_.end()) {
        std::vector<Id> led_to;
        step(parse, letter, led_to);
        known = steps_.insert_or_assign(key, std::move(led_to)).first;
      }
      found.insert(found.end(), known->second.begin(), known->second.end());
    }
  }
  const Id to = found.size() == 1 ? config_of(found[0]) : intern(std::move(found));
  return entry(configs_[config].row, letter) = to;
}

template <typename Stays>
uint64_t MaskWalk::kinds_that_stay(Stays stays) const {
  uint64_t kinds = ~uint64_t{0};
  for (size_t letter = 0; letter < vocabulary_->letters().n_letters(); ++letter) {
    const uint64_t kind = GrammarVocabulary::kind_of(static_cast<Letter>(letter));
    if ((kinds & kind) && !stays(static_cast<Letter>(letter))) kinds &= ~kind;
  }
  return kinds;
}

// Kinds of letters of which every one leads back to where it came from.
uint64_t MaskWalk::loops(Id config) {
  if (configs_[config].loops != kNotAsked) return configs_[config].loops;
  uint64_t loops = ~uint64_t{0};
  bool is_lexed = true;
  for (Id parse : configs_[config].parses) {
    const Id lexeme = parses_[parse].lexeme;
    is_lexed &= lexemes_[lexeme].is_lexed;
    if (is_lexed) loops &= lexeme_loops(lexeme);
  }
  if (!is_lexed) {
    configs_[config].loops = 0;
    loops = kinds_that_stay([&](Letter letter) { return next(config, letter) == config; });
  }
  return configs_[config].loops = loops;
}

uint64_t MaskWalk::lexeme_loops(Id lexeme) {
  if (links_[lexeme].loops == kNotAsked) {
    links_[lexeme].loops = 0;
    const uint64_t loops = kinds_that_stay([&](Letter letter) { return lexeme_after(lexeme, letter) == lexeme; });
    links_[lexeme].loops = loops;
  }
  return links_[lexeme].loops;
}

void MaskWalk::step(Id id, Letter letter, std::vector<Id>& found) {
  if (id == lost_) return found.push_back(id);
  const Parse parse = parses_[id];
  if (lexemes_[parse.lexeme].is_lexed) {
    Parse longer = parse;
    longer.lexeme = lexeme_after(parse.lexeme, letter);
    const bool is_longer = longer.lexeme != kNowhere;
    const bool is_whole = is_longer && links_[longer.lexeme].is_whole;
    if (is_longer && !is_whole) {
      found.push_back(keep_parse(longer));
      return;
    }
    const bool is_plain = lexemes_[parse.lexeme].alternatives.empty() && !may_lex_otherwise(parse.stack);
    Id after = is_plain ? after_ending(base_of(parse), is_whole ? longer.lexeme : parse.lexeme) : kUnknown;
    if (after != kUnknown) {
      if (after != kNowhere && !is_whole) after = next(after, letter);
      if (after != kNowhere) found.insert(found.end(), configs_[after].parses.begin(), configs_[after].parses.end());
      return;
    }
  }
  ++counts_.n_parsed;
  Versions versions{lay_out(parse, vocabulary_->letters().spelling(letter))};
  parser_.start_watch();
  parser_.run(versions, false);
  if (counts_.n_parsed > kMaxParsed) parser_.give_up("The vocabulary takes too long here.");
  const auto begins_at = static_cast<uint32_t>(pasts_[parse.past].size());
  for (const Version& version : versions) found.push_back(keep(version, parse.past, begins_at));
}

// The lexeme with the letter; kNowhere where it has ended before.
MaskWalk::Id MaskWalk::lexeme_after(Id lexeme, Letter letter) {
  if (links_[lexeme].row == kUnknown) links_[lexeme].row = new_row();
  const Id known = entry(links_[lexeme].row, letter);
  if (known != kUnknown) return known;
  const std::string text = lexemes_[lexeme].text + vocabulary_->letters().spelling(letter);
  Version version = lexemes_[lexeme].version;
  parser_.text_ = text;
  const bool is_done = parser_.read_lexeme(version, false);
  version.seen = static_cast<uint32_t>(text.size());
  Id after = kNowhere;
  const bool is_whole = is_done && version.cursor == text.size();
  if (!is_done || is_whole) {
    std::vector<Alternative> alternatives = lexemes_[lexeme].alternatives;
    for (auto& [stack, config] : alternatives)
      if (config != kNowhere) config = next(config, letter);
    after = keep_lexeme(version, text, text, std::move(alternatives));
    links_[after].is_whole = is_whole;
  }
  return entry(links_[lexeme].row, letter) = after;
}

// What a lexeme that has ended leads to: only its token counts, not how it was spelled. A config, kNowhere, or kUnknown
// where more than the token counts.
MaskWalk::Id MaskWalk::after_ending(Id base, Id lexeme) {
  const Id ending = links_[lexeme].ending;
  if (ending == kNowhere) return kUnknown;
  const auto& ended = bases_[base].ended;
  if (ending < ended.size() && ended[ending] != kNotAskedYet) return ended[ending];
  const Id after = find_after_ending(base, lexeme);
  if (bases_[base].ended.size() <= ending) bases_[base].ended.resize(ending + 1, kNotAskedYet);
  return bases_[base].ended[ending] = after;
}

MaskWalk::Id MaskWalk::find_after_ending(Id base, Id lexeme) {
  ++counts_.n_parsed;
  const Parse parse = parse_at({base, lexeme});
  Version version = lay_out(parse, "");
  const auto begins_at = static_cast<uint32_t>(pasts_[parse.past].size());
  const Symbol symbol = parser_.keyword_or(version.accepted, version);
  Versions versions;
  parser_.start_watch();
  parser_.shift(version, symbol, version.accepted_end, version.scanner, symbol != version.accepted, versions);
  std::vector<Id> parses;
  for (Version& each : versions) {
    if (!parser_.is_lost(each) && each.position != version.accepted_end) return kUnknown;  // sent back
    each.seen = each.position;
    parses.push_back(keep(each, parse.past, begins_at));
  }
  return intern(std::move(parses));
}

Version MaskWalk::lay_out(const Parse& parse, std::string_view more) {
  const Lexeme& lexeme = lexemes_[parse.lexeme];
  buffer_ = pasts_[parse.past];
  const auto from = static_cast<uint32_t>(buffer_.size());
  buffer_ += lexeme.text;
  buffer_ += more;
  parser_.text_ = buffer_;
  Version version = lexeme.version;
  version.stack = parse.stack;
  version.scanner = parse.scanner;
  version.before = parse.before;
  version.position += from;
  version.seen += from;
  version.token_start += from;
  version.cursor += from;
  version.accepted_end += from;
  return version;
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

MaskWalk::Id MaskWalk::keep_parse(const Parse& parse) {
  const Id id = parse_ids_.find_or_add(parse, parses_);
  if (id == verdicts_.size()) {
    verdicts_.push_back(-1);
    alone_.push_back(kUnknown);
  }
  return id;
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

Verdict MaskWalk::verdict(Id id) {
  if (verdicts_[id] < 0) {
    const Parse parse = parses_[id];
    Verdict found = Verdict::kYes;
    if (!links_[parse.lexeme].may_be_word || !takes_word(parse)) {
      const Version version = lay_out(parse, "");
      parser_.start_watch();
      found = parser_.is_viable(version, 0);
      if (!parser_.gave_up().empty()) found = Verdict::kYes;
    }
    verdicts_[id] = static_cast<int8_t>(found);
  }
  return static_cast<Verdict>(verdicts_[id]);
}

bool MaskWalk::takes_word(const Parse& parse) {
  const auto [known, is_new] = takes_word_.try_emplace(static_cast<uint64_t>(parse.stack) << 16 | parse.before, false);
  if (is_new) {
    Version version{};
    version.stack = parse.stack;
    version.before = parse.before;
    parser_.start_watch();
    known->second = parser_.can_take(version, language_.keyword_capture_token()) == Verdict::kYes;
  }
  return known->second;
}

MaskWalk::Id MaskWalk::config_of(Id parse) {
  if (alone_[parse] == kUnknown) alone_[parse] = intern({parse});
  return alone_[parse];
}

MaskWalk::Id MaskWalk::intern(std::vector<Id> parses) {
  if (parses.empty()) return kNowhere;
  std::sort(parses.begin(), parses.end());
  parses.erase(std::unique(parses.begin(), parses.end()), parses.end());
  const bool is_alone = parses.size() == 1;
  if (is_alone) {
    if (alone_[parses[0]] != kUnknown) return alone_[parses[0]];
  } else if (const auto known = config_ids_.find(parses); known != config_ids_.end()) {
    return known->second;
  }
  Verdict best = Verdict::kNo;
  for (Id parse : parses) best = std::max(best, verdict(parse));
  const auto id = static_cast<Id>(configs_.size());
  if (is_alone)
    alone_[parses[0]] = id;
  else
    config_ids_.emplace(parses, id);
  Config& config = configs_.emplace_back();
  config.parses = std::move(parses);
  config.verdict = best;
  return id;
}

}  // namespace treefill::syntax
