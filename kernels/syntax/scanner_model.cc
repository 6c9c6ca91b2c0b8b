#include "syntax/scanner_model.h"

#include "syntax/scanners/scanners.h"

namespace treefill::syntax {

const ScannerModel* scanner_model(std::string_view name) {
  if (name == "python") return &python_scanner();
  if (name == "javascript") return &javascript_scanner();
  if (name == "typescript") return &typescript_scanner();
  if (name == "cpp") return &cpp_scanner();
  if (name == "sql") return &sql_scanner();
  if (name == "postgres") return &postgres_scanner();
  return nullptr;
}

}  // namespace treefill::syntax
