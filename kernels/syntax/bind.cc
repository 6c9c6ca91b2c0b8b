#include "syntax/bind.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/acceptor.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace treefill::syntax {
namespace {

constexpr size_t kLongText = 4096;  // bytes, from which on others may run meanwhile

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// The capsule keeps the wheel's library loaded, so it is kept as long as its tables are.
class BoundGrammar {
 public:
  explicit BoundGrammar(nb::object capsule) : capsule_(std::move(capsule)) {
    auto* tables = static_cast<const TSLanguage*>(PyCapsule_GetPointer(capsule_.ptr(), "tree_sitter.Language"));
    if (!tables) throw nb::python_error();
    nb::gil_scoped_release no_gil;
    grammar_ = std::make_shared<const Grammar>(tables);
  }

  const std::shared_ptr<const Grammar>& get() const { return grammar_; }

 private:
  nb::object capsule_;
  std::shared_ptr<const Grammar> grammar_;
};

class BoundAcceptor {
 public:
  explicit BoundAcceptor(const BoundGrammar& grammar) : acceptor_(grammar.get()) {}

  template <typename Call>
  bool with_text(const nb::bytes& text, Call call) {
    if (text.size() < kLongText) return call(acceptor_, view(text));
    nb::gil_scoped_release no_gil;
    return call(acceptor_, view(text));
  }

  Acceptor& get() { return acceptor_; }

 private:
  Acceptor acceptor_;
};

std::vector<std::string> names(const Grammar& grammar, const std::vector<Symbol>& symbols) {
  std::vector<std::string> names;
  for (Symbol symbol : symbols) names.emplace_back(grammar.language.symbol_name(symbol));
  return names;
}

}  // namespace

void bind(nb::module_& m) {
  nb::class_<BoundGrammar>(m, "Grammar")
      .def(nb::init<nb::object>(), "capsule"_a)
      .def_prop_ro("abi_version", [](const BoundGrammar& self) { return self.get()->language.abi_version(); })
      .def_prop_ro("n_lexer_states", [](const BoundGrammar& self) { return self.get()->lexer.n_states(); })
      .def_prop_ro("n_keyword_states", [](const BoundGrammar& self) {
        return self.get()->keywords ? self.get()->keywords->n_states() : size_t{0};
      });
  nb::class_<BoundAcceptor>(m, "Acceptor")
      .def(
          "__init__", [](BoundAcceptor* self, const BoundGrammar& grammar) { new (self) BoundAcceptor(grammar); },
          "grammar"_a, nb::keep_alive<1, 2>())
      .def(
          "allows",
          [](BoundAcceptor& self, const nb::bytes& more) {
            return self.with_text(more, [](Acceptor& acceptor, auto text) { return acceptor.allows(text); });
          },
          "more"_a)
      .def(
          "accept",
          [](BoundAcceptor& self, const nb::bytes& more) {
            return self.with_text(more, [](Acceptor& acceptor, auto text) { return acceptor.accept(text); });
          },
          "more"_a)
      .def(
          "accepts_whole",
          [](BoundAcceptor& self, const nb::bytes& rest) {
            return self.with_text(rest, [](Acceptor& acceptor, auto text) { return acceptor.accepts_whole(text); });
          },
          "rest"_a)
      .def(
          "rollback", [](BoundAcceptor& self, size_t n) { self.get().rollback(n); }, "n"_a)
      .def_prop_ro("is_alive", [](BoundAcceptor& self) { return self.get().is_alive(); })
      .def_prop_ro("n_accepted", [](BoundAcceptor& self) { return self.get().n_accepted(); })
      .def_prop_ro("n_versions", [](BoundAcceptor& self) { return self.get().n_versions(); })
      .def_prop_ro("refused_at", [](BoundAcceptor& self) { return self.get().refused_at(); })
      .def_prop_ro("gave_up", [](BoundAcceptor& self) { return self.get().gave_up(); })
      .def("expected", [](BoundAcceptor& self) { return names(self.get().grammar(), self.get().expected()); });
}

}  // namespace treefill::syntax
