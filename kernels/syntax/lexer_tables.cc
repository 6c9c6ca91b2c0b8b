#include "syntax/lexer_tables.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <stdexcept>

namespace treefill::syntax {
namespace {

using Text = std::vector<int32_t>;  // code points

constexpr size_t kMaxStates = 0xFFFE;
constexpr int32_t kFew = 64;            // characters that begin alike and lack one byte: all of them are tried
constexpr size_t kAlikeTried = 97;      // of so many characters that behave alike one is followed to its state
constexpr size_t kUnusedInARow = 2048;  // numbers without a state, after which no further one is looked for

// Beside ASCII, characters of the kinds that grammars tell apart: controls, spaces, letters, digits, marks, signs,
// other scripts, the first and last beyond the basic plane.
constexpr int32_t kWideSamples[] = {
    0x80,   0x85,   0xA0,   0xA9,    0xAA,    0xAD,    0xB5,    0xB7,    0xBA,    0xD7,    0xE9,   0x2C2,
    0x300,  0x37E,  0x387,  0x3B1,   0x660,   0xE33,   0x1680,  0x180E,  0x1885,  0x2000,  0x200B, 0x200C,
    0x200D, 0x2028, 0x2029, 0x203F,  0x2054,  0x2060,  0x2118,  0x212E,  0x2160,  0x2E2F,  0x3000, 0x3021,
    0x309B, 0x30A0, 0x4E00, 0xA015,  0xAC00,  0xD7FF,  0xE000,  0xFB01,  0xFDFA,  0xFE33,  0xFEFF, 0xFF10,
    0xFF41, 0xFFFD, 0xFFFF, 0x10000, 0x1D400, 0x1D7CE, 0x1F600, 0x2F800, 0xE0100, 0x10FFFF};

// What a lexer does with a text from one of its states on: an entry a step, and what it did at the end.
struct Trace {
  struct Entry {
    Symbol accepted = kNoSymbol;         // on arriving here
    Symbol accepted_at_end = kNoSymbol;  // here, were this the end: known of the last entry only
    bool goes_on = false;                // over the next character
    bool is_skipped = false;             // and that is no part of the token
  };
  std::vector<Entry> entries;
};

// Runs the compiled function over a text.
class Probe : TSLexer {
 public:
  explicit Probe(LexFunction lex) : TSLexer{}, lex_(lex) {
    advance = [](TSLexer* self, bool skip) { static_cast<Probe*>(self)->on_advance(skip); };
    mark_end = [](TSLexer* self) { static_cast<Probe*>(self)->on_mark_end(); };
    eof = [](const TSLexer* self) { return static_cast<const Probe*>(self)->is_at_end(); };
    get_column = [](TSLexer*) -> uint32_t { return 0; };
    is_at_included_range_start = [](const TSLexer*) { return false; };
    log = ignore_log;
  }

  const Trace& run(StateId state, const int32_t* text, size_t length) {
    text_ = text;
    length_ = length;
    at_ = 0;
    is_past_end_ = false;
    trace_.entries.assign(1, {});
    lookahead = length ? text[0] : 0;
    lex_(this, state);
    return trace_;
  }

 private:
  bool is_at_end() const { return at_ >= length_; }

  void on_advance(bool skip) {
    if (is_at_end()) {
      is_past_end_ = true;
      return;
    }
    trace_.entries.back().goes_on = true;
    trace_.entries.back().is_skipped = skip;
    trace_.entries.emplace_back();
    ++at_;
    lookahead = is_at_end() ? 0 : text_[at_];
  }

  void on_mark_end() {
    Trace::Entry& entry = trace_.entries.back();
    (is_past_end_ ? entry.accepted_at_end : entry.accepted) = result_symbol;
  }

  LexFunction lex_;
  const int32_t* text_ = nullptr;
  size_t length_ = 0;
  size_t at_ = 0;
  bool is_past_end_ = false;
  Trace trace_;
};

template <typename Is>
bool any_of(int32_t first, int32_t last, Is is) {
  for (int32_t character = first; character <= last; ++character)
    if (is(character)) return true;
  return false;
}

// Runs it over two characters and sums up what it did: the same for many characters, so it keeps no trace.
class QuickProbe : TSLexer {
 public:
  explicit QuickProbe(LexFunction lex) : TSLexer{}, lex_(lex) {
    advance = [](TSLexer* self, bool skip) { static_cast<QuickProbe*>(self)->on_advance(skip); };
    mark_end = [](TSLexer* self) {
      auto* probe = static_cast<QuickProbe*>(self);
      probe->add(static_cast<uint64_t>(probe->result_symbol) << 8 | probe->at_);
    };
    eof = [](const TSLexer* self) { return static_cast<const QuickProbe*>(self)->at_ >= 2; };
    get_column = [](TSLexer*) -> uint32_t { return 0; };
    is_at_included_range_start = [](const TSLexer*) { return false; };
    log = ignore_log;
  }

  // 0 where the first character does not lead on.
  uint64_t run(StateId state, int32_t first, int32_t second) {
    second_ = second;
    at_ = 0;
    sum_ = 0xCBF29CE484222325u;
    lookahead = first;
    lex_(this, state);
    return at_ == 0 ? 0 : sum_;
  }

 private:
  void on_advance(bool skip) {
    add(0xFFFF00 | skip);
    if (at_ < 3) ++at_;
    lookahead = at_ == 1 ? second_ : 0;
  }
  void add(uint64_t value) {
    sum_ = (sum_ ^ value) * 0x9E3779B97F4A7C15u;
    sum_ ^= sum_ >> 29;
  }

  LexFunction lex_;
  int32_t second_ = 0;
  uint32_t at_ = 0;
  uint64_t sum_ = 0;
};

// What the automaton does from its `from`th step on, as 64 bits: of some hundred behaviours no two share them.
uint64_t behaviour(const Trace& trace, size_t from) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (size_t i = from; i < trace.entries.size(); ++i) {
    const Trace::Entry& entry = trace.entries[i];
    const uint64_t packed = static_cast<uint64_t>(entry.accepted) << 32 |
                            static_cast<uint64_t>(entry.accepted_at_end) << 16 |
                            static_cast<uint64_t>(entry.goes_on) << 1 | entry.is_skipped;
    hash = (hash ^ packed) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

// Reads what was kept; what is not there throws.
class Kept {
 public:
  explicit Kept(std::span<const uint32_t> words) : words_(words) {}

  uint32_t next(uint32_t limit = 0xFFFFFFFF) {
    if (words_.empty() || words_.front() > limit) throw std::runtime_error("what was kept of the lexer is damaged");
    const uint32_t word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }
  // A number of things that follow, a word each at least.
  uint32_t count() { return next(static_cast<uint32_t>(words_.size())); }

 private:
  std::span<const uint32_t> words_;
};

}  // namespace

bool SymbolSet::insert_all(const SymbolSet& other) {
  bool is_larger = false;
  for (size_t word = 0; word < words_.size(); ++word) {
    is_larger |= (other.words_[word] & ~words_[word]) != 0;
    words_[word] |= other.words_[word];
  }
  return is_larger;
}

// The decision tree over the compiled function's states, and the transitions between its leaves.
class LexerTables::Recovery {
 public:
  explicit Recovery(LexFunction lex) : lex_(lex), probe_(lex) {
    for (int32_t character = 0; character < 128; ++character) alphabet_.push_back(character);
    alphabet_.insert(alphabet_.end(), std::begin(kWideSamples), std::end(kWideSamples));
    find_states();
    nodes_.emplace_back();
    for (uint32_t state = 0; state < n_states_; ++state) nodes_[0].members.push_back(state);
    leaf_of_.assign(n_states_, 0);
    separate_by_single_characters();
    find_targets();
    while (refine()) {
    }
    number_classes();
  }

  // From what `keep` gave; a few calls a state show that it is this function's.
  Recovery(LexFunction lex, Kept kept) : lex_(lex), probe_(lex) {
    std::vector<uint32_t> numbers(kept.count());
    for (uint32_t& number : numbers) number = kept.next(kMaxStates);
    n_states_ = numbers.size();
    nodes_.resize(kept.count());
    if (numbers.empty() || nodes_.empty()) throw std::runtime_error("what was kept of the lexer is damaged");
    const auto last_node = static_cast<uint32_t>(nodes_.size()) - 1;
    std::map<uint32_t, uint32_t> leaves;  // by number
    for (uint32_t node = 0; node < nodes_.size(); ++node) {
      nodes_[node].number = static_cast<LexState>(kept.next(kDead));
      nodes_[node].test.resize(kept.count());
      for (int32_t& character : nodes_[node].test) character = static_cast<int32_t>(kept.next(0x10FFFF));
      for (uint32_t n = kept.count(); n > 0; --n) {
        const uint64_t low = kept.next();
        const uint64_t key = low | static_cast<uint64_t>(kept.next()) << 32;
        const uint32_t child = kept.next(last_node);
        if (child <= node) throw std::runtime_error("what was kept of the lexer is damaged");
        nodes_[node].children.emplace(key, child);
      }
      if (nodes_[node].children.empty()) leaves.emplace(nodes_[node].number, node);
    }
    for (uint32_t state = 0; state < numbers.size(); ++state) {
      const auto leaf = leaves.find(numbers[state]);
      if (leaf == leaves.end() || find_own_leaf(state) != leaf->second)
        throw std::runtime_error("what was kept of the lexer is another one's");
      leaf_of_.push_back(leaf->second);
    }
    if (leaves.rbegin()->first + 1 != leaves.size()) throw std::runtime_error("what was kept of the lexer is damaged");
    representatives_.resize(leaves.size(), 0);
    for (uint32_t state = static_cast<uint32_t>(numbers.size()); state-- > 0;) representatives_[numbers[state]] = state;
    for (uint32_t n = kept.count(); n > 0; --n) {
      const uint32_t from = kept.next(static_cast<uint32_t>(representatives_.size()) - 1);
      const auto character = static_cast<int32_t>(kept.next(0x10FFFF));
      const uint32_t leaf = kept.next(last_node);
      if (!nodes_[leaf].children.empty()) throw std::runtime_error("what was kept of the lexer is damaged");
      transitions_.push_back({representatives_[from], character, leaf, kept.next(1) != 0});
    }
  }

  void keep(std::vector<uint32_t>& words) const {
    const auto count = [&](size_t n) { words.push_back(static_cast<uint32_t>(n)); };
    count(n_states_);
    for (uint32_t state = 0; state < n_states_; ++state) words.push_back(class_of(state));
    count(nodes_.size());
    for (const Node& node : nodes_) {
      words.push_back(node.number);
      count(node.test.size());
      for (int32_t character : node.test) words.push_back(static_cast<uint32_t>(character));
      count(node.children.size());
      for (const auto& [key, child] : node.children) {
        words.push_back(static_cast<uint32_t>(key));
        words.push_back(static_cast<uint32_t>(key >> 32));
        words.push_back(child);
      }
    }
    size_t n_steps = 0;
    for (const Transition& transition : transitions_) n_steps += is_representative(transition.state);
    count(n_steps);
    for (const Transition& transition : transitions_) {
      if (!is_representative(transition.state)) continue;
      words.push_back(class_of(transition.state));
      words.push_back(static_cast<uint32_t>(transition.character));
      words.push_back(transition.leaf);
      words.push_back(transition.is_skipped);
    }
  }

  LexFunction function() const { return lex_; }
  size_t n_states() const { return n_states_; }
  size_t n_classes() const { return representatives_.size(); }
  uint32_t representative(LexState state) const { return representatives_[state]; }
  LexState class_of(uint32_t state) const { return nodes_[leaf_of_[state]].number; }

  Trace::Entry first_entry(uint32_t state, const Text& text) {
    return probe_.run(static_cast<StateId>(state), text.data(), text.size()).entries.front();
  }

  // Each step that is known, by a character of the alphabet from a class.
  template <typename Visit>
  void for_each_step(Visit visit) const {
    for (const Transition& transition : transitions_)
      if (is_representative(transition.state))
        visit(class_of(transition.state), transition.character,
              Step{nodes_[transition.leaf].number, transition.is_skipped});
  }

  // Where a character leads from a state.
  Step target(uint32_t state, int32_t character) {
    const Trace::Entry entry = first_entry(state, {character});
    if (!entry.goes_on) return {kDead, false};
    return {nodes_[find_leaf(state, character, 0)].number, entry.is_skipped};
  }

 private:
  struct Node {
    Text test;  // of an inner node
    std::map<uint64_t, uint32_t> children;
    std::vector<uint32_t> members;  // of a leaf: states that no test tells apart yet
    LexState number = kDead;
    uint32_t parent = 0;
  };
  struct Transition {
    uint32_t state;
    int32_t character;
    uint32_t leaf;
    bool is_skipped;
  };

  bool is_representative(uint32_t state) const { return representative(class_of(state)) == state; }

  void find_states() {
    n_states_ = 0;
    for (size_t state = 0; state < kMaxStates && state < n_states_ + kUnusedInARow; ++state)
      if (is_used(static_cast<uint32_t>(state))) n_states_ = state + 1;
  }

  bool is_used(uint32_t state) {
    const Trace::Entry entry = first_entry(state, {});
    if (entry.accepted != kNoSymbol || entry.accepted_at_end != kNoSymbol) return true;
    return std::any_of(alphabet_.begin(), alphabet_.end(),
                       [&](int32_t character) { return first_entry(state, {character}).goes_on; });
  }

  void separate_by_single_characters() {
    std::vector<Text> tests{{}};
    for (int32_t character : alphabet_) tests.push_back({character});
    std::vector<uint32_t> open{0};
    while (!open.empty()) {
      const uint32_t leaf = open.back();
      open.pop_back();
      for (const Text& test : tests) {
        if (nodes_[leaf].members.size() < 2 || !split(leaf, test)) continue;
        for (const auto& [key, child] : nodes_[leaf].children) open.push_back(child);
        break;
      }
    }
  }

  void find_targets() {
    for (uint32_t state = 0; state < n_states_; ++state)
      for (int32_t character : alphabet_) {
        const Trace::Entry entry = first_entry(state, {character});
        if (entry.goes_on) transitions_.push_back({state, character, find_leaf(state, character, 0), entry.is_skipped});
      }
  }

  // One round of Moore's refinement. False where no leaf was split: then the leaves are the automaton's states.
  bool refine() {
    std::map<std::pair<uint32_t, int32_t>, uint32_t> seen;  // (leaf, character) → leaf of the target
    std::map<uint32_t, Text> to_split;
    for (const Transition& transition : transitions_) {
      const uint32_t leaf = leaf_of_[transition.state];
      const auto [at, is_new] = seen.try_emplace({leaf, transition.character}, transition.leaf);
      if (is_new || at->second == transition.leaf || to_split.contains(leaf)) continue;
      Text test{transition.character};
      const Text& after = separating_test(at->second, transition.leaf);
      test.insert(test.end(), after.begin(), after.end());
      to_split.emplace(leaf, std::move(test));
    }
    for (const auto& [leaf, test] : to_split)
      if (!split(leaf, test)) throw std::runtime_error("the grammar's lexer is not a deterministic automaton");
    for (Transition& transition : transitions_)
      if (to_split.contains(transition.leaf))
        transition.leaf = find_leaf(transition.state, transition.character, transition.leaf);
    return !to_split.empty();
  }

  // Turns a leaf into an inner node. False, and nothing changed, where the test tells none of its states apart.
  bool split(uint32_t leaf, const Text& test) {
    std::map<uint64_t, std::vector<uint32_t>> parts;
    for (uint32_t state : nodes_[leaf].members)
      parts[behaviour(probe_.run(static_cast<StateId>(state), test.data(), test.size()), 0)].push_back(state);
    if (parts.size() < 2) return false;
    nodes_[leaf].test = test;
    nodes_[leaf].members.clear();
    for (auto& [key, members] : parts) {
      const auto child = static_cast<uint32_t>(nodes_.size());
      for (uint32_t state : members) leaf_of_[state] = child;
      nodes_.push_back({{}, {}, std::move(members), kDead, leaf});
      nodes_[leaf].children.emplace(key, child);
    }
    return true;
  }

  // The leaf of the state that `character` leads to, looked for from `node` down.
  uint32_t find_leaf(uint32_t state, int32_t character, uint32_t node) {
    while (!nodes_[node].children.empty()) {
      text_.assign(1, character);
      text_.insert(text_.end(), nodes_[node].test.begin(), nodes_[node].test.end());
      const Trace& trace = probe_.run(static_cast<StateId>(state), text_.data(), text_.size());
      const auto child = nodes_[node].children.find(behaviour(trace, 1));
      if (child == nodes_[node].children.end())
        throw std::runtime_error("the grammar's lexer goes to a state that it has not");
      node = child->second;
    }
    return node;
  }

  // The leaf of the state itself; no node's number where it is in none.
  uint32_t find_own_leaf(uint32_t state) {
    uint32_t node = 0;
    while (!nodes_[node].children.empty()) {
      const Text& test = nodes_[node].test;
      const Trace& trace = probe_.run(static_cast<StateId>(state), test.data(), test.size());
      const auto child = nodes_[node].children.find(behaviour(trace, 0));
      if (child == nodes_[node].children.end()) return 0xFFFFFFFF;
      node = child->second;
    }
    return node;
  }

  // The test of the node where the ways to two leaves part.
  const Text& separating_test(uint32_t one, uint32_t other) const {
    std::vector<uint32_t> above;
    for (uint32_t node = one; node != 0; node = nodes_[node].parent) above.push_back(nodes_[node].parent);
    for (uint32_t node = other; node != 0; node = nodes_[node].parent)
      if (std::find(above.begin(), above.end(), nodes_[node].parent) != above.end())
        return nodes_[nodes_[node].parent].test;
    throw std::runtime_error("two states of the grammar's lexer are told apart by nothing");
  }

  void number_classes() {
    for (Node& node : nodes_) {
      if (node.members.empty()) continue;
      node.number = static_cast<LexState>(representatives_.size());
      representatives_.push_back(node.members.front());
    }
  }

  LexFunction lex_;
  Probe probe_;
  size_t n_states_ = 0;
  std::vector<int32_t> alphabet_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> leaf_of_;
  std::vector<Transition> transitions_;
  std::vector<uint32_t> representatives_;
  Text text_;  // find_leaf's own, kept so that it is allocated once
};

LexerTables::LexerTables(LexFunction lex, size_t n_symbols, std::span<const uint32_t> kept)
    : recovery_(kept.empty() ? std::make_unique<Recovery>(lex) : std::make_unique<Recovery>(lex, Kept(kept))) {
  Recovery& recovery = *recovery_;
  for (uint32_t state = 0; state < recovery.n_states(); ++state) class_of_.push_back(recovery.class_of(state));
  for (size_t number = 0; number < recovery.n_classes(); ++number) {
    const Trace::Entry entry = recovery.first_entry(recovery.representative(static_cast<LexState>(number)), {});
    State& state = states_.emplace_back();
    state.accepted = entry.accepted;
    state.accepted_at_end = entry.accepted_at_end;
    state.is_final = true;
    state.next.fill(kDead);
    state.reachable = SymbolSet(n_symbols);
    if (state.accepted != kNoSymbol) state.reachable.insert(state.accepted);
    if (state.accepted_at_end != kNoSymbol) state.reachable.insert(state.accepted_at_end);
  }
  std::vector<std::set<LexState>> successors(states_.size());
  recovery.for_each_step([&](LexState from, int32_t character, Step step) {
    states_[from].is_final = false;
    successors[from].insert(step.state);
    if (character >= 128) return;
    states_[from].next[character] = step.state;
    states_[from].skips[character] = step.is_skipped;
  });
  find_bound_to_accept();
  for (bool is_growing = true; is_growing;) {
    is_growing = false;
    for (size_t number = states_.size(); number-- > 0;)
      for (LexState successor : successors[number])
        is_growing |= states_[number].reachable.insert_all(states_[successor].reachable);
  }
}

// The largest set of states of which every character leads to another one of the set, or to a token's end. But for the
// NUL: generated lexers take it for a text's end and never go on over it, so after one there is no token at all.
void LexerTables::find_bound_to_accept() {
  const auto leads_on_from = [&](LexState state, int32_t character) {
    const LexState next = step(state, character).state;
    return next != kDead && (states_[next].is_bound_to_accept || states_[next].accepted != kNoSymbol);
  };
  std::vector<LexState> candidates;
  for (size_t number = 0; number < states_.size(); ++number) {
    State& state = states_[number];
    const bool goes_on =
        std::none_of(state.next.begin() + 1, state.next.end(), [](LexState next) { return next == kDead; });
    state.is_bound_to_accept = goes_on && state.accepted == kNoSymbol;
    if (state.is_bound_to_accept) candidates.push_back(static_cast<LexState>(number));
  }
  for (bool is_shrinking = true; is_shrinking;) {
    is_shrinking = false;
    for (LexState number : candidates) {
      if (!states_[number].is_bound_to_accept) continue;
      bool is_bound = true;
      for (int32_t character = 1; character < 128 && is_bound; ++character) is_bound = leads_on_from(number, character);
      for (int32_t character : kWideSamples) is_bound = is_bound && leads_on_from(number, character);
      is_bound = is_bound && leads_on_from(number, -1);
      if (!is_bound) {
        states_[number].is_bound_to_accept = false;
        is_shrinking = true;
      }
    }
  }
}

LexerTables::~LexerTables() = default;

bool LexerTables::leads_on(LexState state, int32_t first, int32_t last) const {
  if (leads_on([&](int32_t character) { return step(state, character).state != kDead; }, first, last)) return true;
  if (last - first >= kFew) return false;
  std::lock_guard lock(wide_mutex_);
  const auto number = static_cast<StateId>(recovery_->representative(state));
  QuickProbe probe(recovery_->function());
  return any_of(first, last, [&](int32_t character) { return probe.run(number, character, 'a') != 0; });
}

template <typename Leads>
bool LexerTables::leads_on(Leads leads, int32_t first, int32_t last) {
  return leads(first) || leads(first + (last - first) / 2) || leads(last) ||
         std::any_of(std::begin(kWideSamples), std::end(kWideSamples),
                     [&](int32_t sample) { return first <= sample && sample <= last && leads(sample); });
}

void LexerTables::outcomes(LexState state, std::span<const std::pair<int32_t, int32_t>> ranges,
                           std::span<const uint32_t> classes, std::span<uint64_t> found) const {
  std::lock_guard lock(wide_mutex_);
  const auto number = static_cast<StateId>(recovery_->representative(state));
  QuickProbe probe(recovery_->function());
  const auto leads = [&](int32_t character) { return probe.run(number, character, 'a') != 0; };
  const auto target = [&](int32_t character) {
    const Step step = recovery_->target(number, character);
    return static_cast<uint64_t>(step.state) << 1 | step.is_skipped;
  };
  std::map<std::pair<uint32_t, uint64_t>, std::vector<size_t>> alike;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const auto [first, last] = ranges[i];
    if (first != last) {
      found[i] = leads_on(leads, first, last) || (last - first < kFew && any_of(first, last, leads));
      continue;
    }
    found[i] = probe.run(number, first, 'a');
    if (found[i] == 0) continue;
    found[i] ^= probe.run(number, first, ' ') << 1;
    alike[{classes[i], found[i]}].push_back(i);
  }
  for (const auto& [what, members] : alike) {
    const uint64_t led_to = target(ranges[members.front()].first);
    bool are_alike = true;
    for (size_t n = kAlikeTried; n < members.size() && are_alike; n += kAlikeTried)
      are_alike = target(ranges[members[n]].first) == led_to;
    for (size_t n = 0; n < members.size() && !are_alike; ++n)
      found[members[n]] ^= (target(ranges[members[n]].first) + 1) * 0x9E3779B97F4A7C15u;
  }
}

std::vector<uint32_t> LexerTables::keep() const {
  std::vector<uint32_t> words;
  recovery_->keep(words);
  return words;
}

LexerTables::Step LexerTables::step_wide(LexState state, int32_t character) const {
  const uint64_t key = static_cast<uint64_t>(state) << 32 | static_cast<uint32_t>(character);
  std::lock_guard lock(wide_mutex_);
  const auto known = wide_.find(key);
  if (known != wide_.end()) return known->second;
  const Step step = recovery_->target(recovery_->representative(state), character);
  wide_.emplace(key, step);
  return step;
}

}  // namespace treefill::syntax
