#include "syntax/scanner_model.h"

namespace treefill::syntax {

const ScannerModel* scanner_model(std::string_view) { return nullptr; }

}  // namespace treefill::syntax
