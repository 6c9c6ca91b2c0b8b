#include "syntax/mask_walk.h"

#include <algorithm>
#include <utility>

namespace treefill::syntax {
namespace {

constexpr size_t kMaxParsed = 2'000'000;  // steps of one mask: then everything is allowed
constexpr size_t kMaxConfigs = 100'000;   // are remembered: a kilobyte each
constexpr size_t kWhole = ~size_t{0};
constexpr size_t kMaxOpen = 250;  // tokens that are asked about again where the rest of the mask was known
constexpr size_t kDepths[] = {4,  6,  9,     14,
                              22, 40, kWhole};  // states of the stack that are looked at, one after the other

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
    if (entry && !entry->mask && kDepths[rung] == kWhole) entry = nullptr;  // nothing is deeper
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

MaskWalk::Id MaskWalk::keep_parse(const Parse& parse) {
  const Id id = parse_ids_.find_or_add(parse, parses_);
  if (id == verdicts_.size()) {
    verdicts_.push_back(-1);
    alone_.push_back(kUnknown);
  }
  return id;
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
