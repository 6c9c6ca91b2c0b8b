#include "syntax/bind.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "syntax/acceptor.h"
#include "syntax/external_scanner.h"
#include "syntax/outline.h"
#include "syntax/scanner_model.h"
#include "syntax/situation.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace treefill::syntax {
namespace {

using Effort = MaskWalk::Effort;

constexpr size_t kLongText = 4096;  // bytes, from which on others may run meanwhile

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// The capsule keeps the wheel's library loaded, so it is kept as long as its tables are.
class BoundGrammar {
 public:
  BoundGrammar(nb::object capsule, const PolicyText& policy, const std::string& scanner_model, const nb::bytes& kept)
      : capsule_(std::move(capsule)) {
    auto* tables = static_cast<const TSLanguage*>(PyCapsule_GetPointer(capsule_.ptr(), "tree_sitter.Language"));
    if (!tables) throw nb::python_error();
    std::vector<uint32_t> words(kept.size() / sizeof(uint32_t));
    if (!words.empty()) std::memcpy(words.data(), kept.c_str(), words.size() * sizeof(uint32_t));
    nb::gil_scoped_release no_gil;
    pool_ = std::make_shared<ParserPool>(std::make_shared<const Grammar>(tables, policy, scanner_model, words));
  }

  const std::shared_ptr<const Grammar>& get() const { return pool_->grammar(); }
  const std::shared_ptr<ParserPool>& pool() const { return pool_; }
  // Looked for when they are first asked for, with the interpreter's lock.
  const Brackets& brackets() const {
    if (!brackets_) brackets_ = std::make_unique<const Brackets>(get()->language);
    return *brackets_;
  }

 private:
  nb::object capsule_;
  std::shared_ptr<ParserPool> pool_;
  mutable std::unique_ptr<const Brackets> brackets_;
};

struct BoundVocabulary {
  std::shared_ptr<const GrammarVocabulary> spelled;
};

using MaskWords = nb::ndarray<uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

class BoundAcceptor {
 public:
  explicit BoundAcceptor(const BoundGrammar& grammar) : grammar_(grammar), acceptor_(grammar.pool()) {}

  template <typename Call>
  bool with_text(const nb::bytes& text, Call call) {
    if (text.size() < kLongText) return call(acceptor_, view(text));
    nb::gil_scoped_release no_gil;
    return call(acceptor_, view(text));
  }

  Acceptor& get() { return acceptor_; }
  Situation situation() { return acceptor_.situation(grammar_.brackets()); }

 private:
  const BoundGrammar& grammar_;  // kept alive by `nb::keep_alive` of `__init__`
  Acceptor acceptor_;
};

void check_places(const nb::bytes& text, uint32_t begin, uint32_t at) {
  if (begin > at || at > text.size())
    throw std::invalid_argument("The places " + std::to_string(begin) + " and " + std::to_string(at) +
                                " are not in order in a text of " + std::to_string(text.size()) + " bytes.");
}

std::vector<std::string> names(const Grammar& grammar, const std::vector<Symbol>& symbols) {
  std::vector<std::string> names;
  for (Symbol symbol : symbols) names.emplace_back(grammar.language.symbol_name(symbol));
  return names;
}

// Names of what the keywords' automaton accepts.
std::vector<std::string> keywords(const BoundGrammar& grammar) {
  std::vector<Symbol> symbols;
  const auto note = [&](Symbol symbol) {
    symbols.push_back(symbol);
    return false;
  };
  if (const auto& tables = grammar.get()->keywords) tables->state(tables->start(0)).reachable.any_of(note);
  return names(*grammar.get(), symbols);
}

// What a scanner says: undecided, possible, may decline, refused, found, token, end, memory.
using Said = std::tuple<bool, ExternalSet, bool, bool, bool, uint8_t, uint32_t, nb::bytes>;

constexpr size_t kMaxTokens = 64;

Said scan_with_model(const std::string& name, const std::vector<bool>& valid, const nb::bytes& memory,
                     const nb::bytes& text, uint32_t position, bool is_whole, bool is_strict, bool is_statement_start,
                     bool is_outside_brackets) {
  const ScannerModel* model = scanner_model(name);
  if (!model) throw std::invalid_argument("No scanner is called " + name + ".");
  check_places(text, position, static_cast<uint32_t>(text.size()));
  bool flags[kMaxTokens] = {};
  std::copy_n(valid.begin(), std::min(valid.size(), kMaxTokens), flags);
  const ScannerModel::Answer answer = model->scan(
      {flags, view(memory), view(text), position, is_whole, is_strict, is_statement_start, is_outside_brackets});
  return {
      answer.is_undecided, answer.possible, answer.may_decline, answer.is_refused,
      answer.found,        answer.token,    answer.end,         nb::bytes(answer.memory.data(), answer.memory.size())};
}

Said scan_with_grammar(const BoundGrammar& grammar, const std::vector<bool>& valid, const nb::bytes& memory,
                       const nb::bytes& text, uint32_t position, bool is_whole) {
  check_places(text, position, static_cast<uint32_t>(text.size()));
  const Language& language = grammar.get()->language;
  if (!language.has_scanner() || valid.size() != language.external_token_count())
    throw std::invalid_argument("The grammar's scanner has " + std::to_string(language.external_token_count()) +
                                " tokens, not " + std::to_string(valid.size()) + ".");
  bool flags[kMaxTokens] = {};
  std::copy_n(valid.begin(), std::min(valid.size(), kMaxTokens), flags);
  ExternalScanner scanner(grammar.get()->language);
  const auto reply = scanner.ask(flags, view(memory), view(text), position, is_whole);
  return {reply.is_undecided, 0,           false,     false,
          reply.found,        reply.token, reply.end, nb::bytes(reply.memory.data(), reply.memory.size())};
}

// The sets of external tokens that the grammar asks its scanner for.
std::vector<std::vector<bool>> external_states(const BoundGrammar& grammar) {
  const Language& language = grammar.get()->language;
  uint16_t n_states = 0;
  for (uint32_t state = 0; state < language.state_count(); ++state)
    n_states = std::max<uint16_t>(n_states, language.lex_mode(static_cast<StateId>(state)).external_lex_state + 1);
  std::vector<std::vector<bool>> states;
  for (uint16_t state = 0; state < n_states; ++state) {
    const bool* valid = language.valid_external_tokens(state);
    states.emplace_back(valid, valid + language.external_token_count());
  }
  return states;
}

nb::bytes to_bytes(const Hash128& hash) {
  std::string bytes;  // as `xxhash` writes it: the highest byte first
  for (uint64_t half : {hash.high, hash.low})
    for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(half >> shift));
  return nb::bytes(bytes.data(), bytes.size());
}

// For what may take long under the dictionary's lock, or has to wait for it: others have the interpreter meanwhile.
template <typename Call>
auto without_gil(Call call) {
  nb::gil_scoped_release no_gil;
  return call();
}

void bind_dictionary(nb::module_& m) {
  nb::class_<MaskDictionary>(m, "MaskDictionary")
      .def(
          "__init__",
          [](MaskDictionary* self, const nb::bytes& environment, size_t max_bytes, size_t n_words) {
            new (self) MaskDictionary(std::string(view(environment)), max_bytes, n_words);
          },
          "environment"_a, "max_bytes"_a, "n_words"_a)
      .def(
          "hash", [](const MaskDictionary& self, const nb::bytes& key) { return to_bytes(self.hash(view(key))); },
          "key"_a)
      .def(
          "evict",
          [](MaskDictionary& self, const nb::bytes& key) {
            const std::string_view bytes = view(key);
            nb::gil_scoped_release no_gil;
            return self.evict(self.hash(bytes));
          },
          "key"_a)
      .def(
          "dump",
          [](const MaskDictionary& self, size_t limit) {
            std::string file;
            {
              nb::gil_scoped_release no_gil;
              file = self.dump(limit);
            }
            return nb::bytes(file.data(), file.size());
          },
          "limit"_a)
      .def("open_file", &MaskDictionary::open_file, "path"_a, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("hashes",
                   [](const MaskDictionary& self) {
                     nb::list hashes;
                     for (const Hash128& hash : without_gil([&] { return self.hashes(); }))
                       hashes.append(to_bytes(hash));
                     return hashes;
                   })
      .def_prop_ro("counts", [](const MaskDictionary& self) {
        const auto counts = without_gil([&] { return self.counts(); });
        nb::dict all;
        all["n_nearest"] = counts.n_nearest;
        all["n_found"] = counts.n_found;
        all["n_read"] = counts.n_read;
        all["n_missed"] = counts.n_missed;
        all["n_dropped"] = counts.n_dropped;
        all["n_evicted"] = counts.n_evicted;
        all["n_collisions"] = counts.n_collisions;
        all["n_damaged"] = counts.n_damaged;
        all["n_too_long"] = counts.n_too_long;
        all["n_new"] = counts.n_new;
        all["n_entries"] = counts.n_entries;
        all["n_masks"] = counts.n_masks;
        all["n_bytes"] = counts.n_bytes;
        all["n_in_file"] = counts.n_in_file;
        return all;
      });
}

}  // namespace

void bind(nb::module_& m) {
  nb::class_<PolicyText>(m, "Policy")
      .def(nb::init<>())
      .def_rw("refused_pairs", &PolicyText::refused_pairs)
      .def_rw("needed_parts", &PolicyText::needed_parts)
      .def_rw("needs_enclosing", &PolicyText::needs_enclosing)
      .def_rw("json_numbers", &PolicyText::json_numbers)
      .def_rw("is_strict", &PolicyText::is_strict);
  nb::class_<LexicalRules>(m, "LexicalRules")
      .def(nb::init<>())
      .def_rw("line_comments", &LexicalRules::line_comments)
      .def_rw("block_comments", &LexicalRules::block_comments)
      .def_rw("quotes", &LexicalRules::quotes)
      .def_rw("long_quotes", &LexicalRules::long_quotes)
      .def_prop_rw(
          "escape", [](const LexicalRules& self) { return std::string(self.escape ? 1 : 0, self.escape); },
          [](LexicalRules& self, const std::string& escape) { self.escape = escape.empty() ? 0 : escape[0]; })
      .def_prop_rw(
          "separator", [](const LexicalRules& self) { return std::string(1, self.separator); },
          [](LexicalRules& self, const std::string& separator) { self.separator = separator.at(0); })
      .def_rw("has_raw_strings", &LexicalRules::has_raw_strings)
      .def_rw("has_templates", &LexicalRules::has_templates)
      .def_rw("has_regexes", &LexicalRules::has_regexes)
      .def_rw("has_dollar_quotes", &LexicalRules::has_dollar_quotes)
      .def_rw("has_directives", &LexicalRules::has_directives)
      .def_rw("has_commands", &LexicalRules::has_commands)
      .def_rw("has_blocks", &LexicalRules::has_blocks);
  nb::class_<LayoutWords>(m, "LayoutWords")
      .def(nb::init<>())
      .def_rw("continuations", &LayoutWords::continuations)
      .def_rw("prefixes", &LayoutWords::prefixes)
      .def_rw("resets", &LayoutWords::resets);
  nb::class_<Scope>(m, "Scope")
      .def_prop_ro("opener", [](const Scope& self) { return std::string(self.opener ? 1 : 0, self.opener); })
      .def_ro("opened_at", &Scope::opened_at)
      .def_ro("body", &Scope::body)
      .def_ro("starts", &Scope::starts);
  nb::class_<LogicalLine>(m, "LogicalLine")
      .def_ro("start", &LogicalLine::start)
      .def_ro("code", &LogicalLine::code)
      .def_ro("end", &LogicalLine::end)
      .def_ro("has_block", &LogicalLine::has_block);
  nb::class_<Layout>(m, "Layout").def_ro("levels", &Layout::levels).def_ro("current", &Layout::current);
  m.def(
      "outline",
      [](const nb::bytes& text, uint32_t begin, uint32_t at, const LexicalRules& rules) {
        check_places(text, begin, at);
        return outline(view(text), begin, at, rules);
      },
      "text"_a, "begin"_a, "at"_a, "rules"_a);
  m.def(
      "statement_end",
      [](const nb::bytes& text, uint32_t start, uint32_t at, uint32_t n_scopes, const LexicalRules& rules) {
        check_places(text, start, at);
        return statement_end(view(text), start, at, n_scopes, rules);
      },
      "text"_a, "start"_a, "at"_a, "n_scopes"_a, "rules"_a);
  m.def(
      "n_closed_scopes",
      [](const nb::bytes& text, uint32_t start, const LexicalRules& rules, const std::string& openers) {
        return n_closed_scopes(view(text), start, rules, openers);
      },
      "text"_a, "start"_a, "rules"_a, "openers"_a);
  m.def(
      "logical_line_end",
      [](const nb::bytes& text, uint32_t at, const LexicalRules& rules, const LayoutWords& words) {
        check_places(text, at, at);
        return logical_line_end(view(text), at, rules, words);
      },
      "text"_a, "at"_a, "rules"_a, "words"_a);
  m.def(
      "layout",
      [](const nb::bytes& text, uint32_t begin, uint32_t at, const LexicalRules& rules, const LayoutWords& words) {
        check_places(text, begin, at);
        return layout(view(text), begin, at, rules, words);
      },
      "text"_a, "begin"_a, "at"_a, "rules"_a, "words"_a);
  nb::class_<BoundGrammar>(m, "Grammar")
      .def(nb::init<nb::object, const PolicyText&, const std::string&, const nb::bytes&>(), "capsule"_a,
           "policy"_a = PolicyText{}, "scanner_model"_a = "", "kept"_a = nb::bytes("", 0))
      .def("keep",
           [](const BoundGrammar& self) {
             const std::vector<uint32_t> words = self.get()->keep();
             return nb::bytes(words.data(), words.size() * sizeof(uint32_t));
           })
      .def("forget", [](const BoundGrammar& self) { self.pool()->forget(); })
      .def_prop_ro("abi_version", [](const BoundGrammar& self) { return self.get()->language.abi_version(); })
      .def_prop_ro("n_lexer_states", [](const BoundGrammar& self) { return self.get()->lexer.n_states(); })
      .def_prop_ro(
          "n_keyword_states",
          [](const BoundGrammar& self) { return self.get()->keywords ? self.get()->keywords->n_states() : size_t{0}; })
      .def_prop_ro("external_states", external_states)
      .def_prop_ro("keywords", keywords)
      .def_prop_ro("word", [](const BoundGrammar& self) {
        const Symbol word = self.get()->language.keyword_capture_token();
        return std::string(word == kEnd ? "" : self.get()->language.symbol_name(word));
      });
  m.def("scan_with_model", scan_with_model, "name"_a, "valid"_a, "memory"_a, "text"_a, "position"_a, "is_whole"_a,
        "is_strict"_a = false, "is_statement_start"_a = false, "is_outside_brackets"_a = false);
  m.def("scan_with_grammar", scan_with_grammar, "grammar"_a, "valid"_a, "memory"_a, "text"_a, "position"_a,
        "is_whole"_a);
  nb::class_<Vocabulary>(m, "Vocabulary")
      .def(
          "__init__",
          [](Vocabulary* self, const nb::list& tokens, size_t n_logits) {
            std::vector<std::string> bytes;
            bytes.reserve(tokens.size());
            for (nb::handle token : tokens) {
              if (!nb::isinstance<nb::bytes>(token)) throw nb::type_error("The tokens of a vocabulary are bytes.");
              const auto each = nb::cast<nb::bytes>(token);
              bytes.emplace_back(each.c_str(), each.size());
            }
            new (self) Vocabulary(std::move(bytes), n_logits);
          },
          "tokens"_a, "n_logits"_a)
      .def_ro("n_logits", &Vocabulary::n_logits)
      .def_prop_ro("n_words", &Vocabulary::n_words);
  nb::class_<BoundVocabulary>(m, "GrammarVocabulary")
      .def(
          "__init__",
          [](BoundVocabulary* self, const BoundGrammar& grammar, const Vocabulary& vocabulary) {
            // A copy, so that it outlives the Python object; a megabyte, made once a grammar.
            auto tokens = std::make_shared<const Vocabulary>(vocabulary);
            nb::gil_scoped_release no_gil;
            new (self) BoundVocabulary{std::make_shared<const GrammarVocabulary>(grammar.get(), std::move(tokens))};
          },
          "grammar"_a, "vocabulary"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("n_letters", [](const BoundVocabulary& self) { return self.spelled->letters().n_letters(); })
      .def_prop_ro("n_nodes", [](const BoundVocabulary& self) {
        return self.spelled->without_line_feed().nodes.size() + self.spelled->with_line_feed().nodes.size() - 2;
      });
  nb::enum_<MaskWalk::Outcome>(m, "MaskOutcome")
      .value("DECIDED", MaskWalk::Outcome::kDecided)
      .value("UNKNOWN", MaskWalk::Outcome::kUnknown)
      .value("GAVE_UP", MaskWalk::Outcome::kGaveUp);
  bind_dictionary(m);
  nb::class_<BoundAcceptor>(m, "Acceptor")
      .def(
          "__init__", [](BoundAcceptor* self, const BoundGrammar& grammar) { new (self) BoundAcceptor(grammar); },
          "grammar"_a, nb::keep_alive<1, 2>())
      .def(
          "allows",
          [](BoundAcceptor& self, const nb::bytes& more, size_t n_back) {
            return self.with_text(more,
                                  [n_back](Acceptor& acceptor, auto text) { return acceptor.allows(text, n_back); });
          },
          "more"_a, "n_back"_a = 0)
      .def(
          "accept",
          [](BoundAcceptor& self, const nb::bytes& more) {
            return self.with_text(more, [](Acceptor& acceptor, auto text) { return acceptor.accept(text); });
          },
          "more"_a)
      .def(
          "accepts_whole",
          [](BoundAcceptor& self, const nb::bytes& rest, size_t n_back) {
            return self.with_text(
                rest, [n_back](Acceptor& acceptor, auto text) { return acceptor.accepts_whole(text, n_back); });
          },
          "rest"_a, "n_back"_a = 0)
      .def(
          "rollback", [](BoundAcceptor& self, size_t n) { self.get().rollback(n); }, "n"_a)
      .def(
          "forced",
          [](BoundAcceptor& self, size_t limit) {
            const std::string forced = self.get().forced(limit);
            return nb::bytes(forced.data(), forced.size());
          },
          "limit"_a)
      .def(
          "fill_mask",
          [](BoundAcceptor& self, const BoundVocabulary& vocabulary, const MaskWords& words, MaskDictionary* dictionary,
             bool is_walked) {
            if (words.size() != vocabulary.spelled->vocabulary().n_words())
              throw std::invalid_argument("The mask has " + std::to_string(words.size()) + " words, not " +
                                          std::to_string(vocabulary.spelled->vocabulary().n_words()) + ".");
            const std::span<uint32_t> bits(words.data(), words.size());
            std::fill(bits.begin(), bits.end(), 0);
            // A look-up takes microseconds; whoever lets the interpreter's lock go for them may wait milliseconds for
            // it.
            std::optional<nb::gil_scoped_release> no_gil;
            if (is_walked) no_gil.emplace();
            return self.get().fill_mask(vocabulary.spelled, bits, dictionary,
                                        is_walked ? Effort::kWalk : Effort::kLookUp);
          },
          "vocabulary"_a, "words"_a.noconvert(),  // a converted copy would be written in vain
          "dictionary"_a.none() = nullptr, "is_walked"_a = true)
      .def_prop_ro("mask_keys",
                   [](BoundAcceptor& self) {
                     nb::list keys;
                     for (const std::string& key : self.get().mask_keys())
                       keys.append(nb::bytes(key.data(), key.size()));
                     return keys;
                   })
      .def_prop_ro("mask_counts",
                   [](BoundAcceptor& self) {
                     const auto counts = self.get().mask_counts();
                     return std::tuple(counts.n_nodes, counts.n_steps, counts.n_parsed, counts.n_raw, counts.n_configs,
                                       counts.n_rechecked);
                   })
      .def_prop_ro("text",
                   [](BoundAcceptor& self) { return nb::bytes(self.get().text().data(), self.get().text().size()); })
      .def_prop_ro("is_alive", [](BoundAcceptor& self) { return self.get().is_alive(); })
      .def_prop_ro("n_accepted", [](BoundAcceptor& self) { return self.get().n_accepted(); })
      .def_prop_ro("n_versions", [](BoundAcceptor& self) { return self.get().n_versions(); })
      .def_prop_ro("refused_at", [](BoundAcceptor& self) { return self.get().refused_at(); })
      .def_prop_ro("gave_up", [](BoundAcceptor& self) { return self.get().gave_up(); })
      .def("expected", [](BoundAcceptor& self) { return names(self.get().grammar(), self.get().expected()); })
      .def("situation", [](BoundAcceptor& self) {
        const Situation found = self.situation();
        const std::string bracket(found.bracket ? 1 : 0, found.bracket);
        return std::tuple(found.is_layout, bracket, names(self.get().grammar(), found.symbols));
      });
}

}  // namespace treefill::syntax
