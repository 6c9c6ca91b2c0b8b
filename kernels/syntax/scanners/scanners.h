// The models, each made once, where scanner_model.cc looks for them.

#ifndef TREEFILL_SYNTAX_SCANNERS_SCANNERS_H_
#define TREEFILL_SYNTAX_SCANNERS_SCANNERS_H_

#include "syntax/scanner_model.h"

namespace treefill::syntax {

const ScannerModel& python_scanner();
const ScannerModel& javascript_scanner();
const ScannerModel& typescript_scanner();
const ScannerModel& cpp_scanner();
const ScannerModel& sql_scanner();
const ScannerModel& postgres_scanner();

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_SCANNERS_SCANNERS_H_
