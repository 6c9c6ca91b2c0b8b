// The module without the model: what the syntax package needs of it, under sanitizers.

#include <nanobind/nanobind.h>

#include "syntax/bind.h"

NB_MODULE(_kernels, m) { treefill::syntax::bind(m); }
