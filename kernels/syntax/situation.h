// What a place in a text is about: which tokens may come or are begun there, and which bracket it is in.
//
// Masks take their time at places; here is what tells them apart for whoever reads such times. All of it is read from
// the parses that are alive, nothing from the text. It takes far longer than a look-up of a mask: not for completions.

#ifndef TREEFILL_SYNTAX_SITUATION_H_
#define TREEFILL_SYNTAX_SITUATION_H_

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syntax/language.h"
#include "syntax/parser.h"

namespace treefill::syntax {

struct Situation {
  bool is_layout = false;       // a line feed was read, and a scanner's token of layout may come of it
  char bracket = 0;             // the innermost that is open: one of ( [ { <; 0: none. A `<` if one parse says so.
  std::vector<Symbol> symbols;  // terminals that the open lexeme may become, or that may come where none is begun
};

// The brackets of one grammar, found in its table. Safe to use from many threads.
class Brackets {
 public:
  explicit Brackets(const Language& language);

  // The innermost that is open in a stack; 0: none.
  char innermost(const StackPool& stacks, Stack stack) const;

 private:
  struct Edge {
    char opener;
    bool closes;
  };
  std::unordered_map<StateId, Edge> edges_;  // states right after a bracket
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_SITUATION_H_
