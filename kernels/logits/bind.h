// The module's part about logits.

#ifndef TREEFILL_LOGITS_BIND_H_
#define TREEFILL_LOGITS_BIND_H_

#include <nanobind/nanobind.h>

namespace treefill::logits {

void bind(nanobind::module_& m);

}  // namespace treefill::logits

#endif  // TREEFILL_LOGITS_BIND_H_
