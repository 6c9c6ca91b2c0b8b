// The module's part about syntax.

#ifndef TREEFILL_SYNTAX_BIND_H_
#define TREEFILL_SYNTAX_BIND_H_

#include <nanobind/nanobind.h>

namespace treefill::syntax {

void bind(nanobind::module_& m);

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_BIND_H_
