// What a bundled grammar's external scanner does, as code of our own.
//
// A model gives the same answers as the scanner that it stands for, reads and writes the same memory, and knows two
// things more: what an undecided text may yet become, and what the language refuses where the scanner is lenient
// (`is_strict`). It is const and has no payload, so it leaks nothing and serves any thread. That its answers are the
// scanner's own is tested by feeding both the same texts (tests/syntax/test_scanner_models.py).

#ifndef TREEFILL_SYNTAX_SCANNER_MODEL_H_
#define TREEFILL_SYNTAX_SCANNER_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "syntax/language.h"

namespace treefill::syntax {

// A set of external tokens, by their place in the scanner's `enum TokenType`, which is that in the grammar's
// `externals`.
using ExternalSet = uint64_t;

class ScannerModel {
 public:
  virtual ~ScannerModel() = default;

  // What nothing that follows tells from the text from `position` on.
  struct Rest {
    std::string text;
    bool is_never_lexed = false;  // where the scanner finds nothing in it, nothing will come of what the lexer does
  };

  struct Question {
    const bool* valid;        // [n external tokens]
    std::string_view memory;  // as the scanner's `serialize` wrote it; empty for a fresh one that wrote nothing
    std::string_view text;
    uint32_t position;
    bool is_whole;                     // nothing comes after `text`: its end decides, too
    bool is_strict;                    // refuse what the language does, even where the scanner takes it
    bool is_statement_start;           // the token before, comments left out, was a layout token, or there is none
    bool is_outside_brackets = false;  // known to the parser alone: without it, no line end is refused as a stray one
    uint64_t* n_read = nullptr;        // grows by the bytes that are looked at
    Rest* rest = nullptr;              // is told what of an undecided text is enough
  };

  struct Answer {
    bool is_undecided = false;  // the text may go on in ways that matter; then the rest but for the next two is unset
    ExternalSet possible = 0;   // where undecided: the tokens that it may yet be the beginning of
    bool may_decline = false;   // where undecided: the scanner may also find nothing, and the lexer is asked
    bool is_refused = false;    // the language allows nothing of the kind here; only where `is_strict`
    bool found = false;
    uint8_t token = 0;   // place in the scanner's enum
    uint32_t end = 0;    // where the token ends, in bytes of `text`
    std::string memory;  // what the scanner would write after it
  };
  virtual Answer scan(const Question& question) const = 0;

  // What of a text matters for places behind it, where `scan` looks at text before its position: as another text. Empty
  // for a model that does not.
  virtual std::string past(std::string_view) const { return {}; }
  // Does the memory have nothing that a user wrote, but how it is laid out?
  virtual bool remembers_layout_only() const { return false; }
};

// By the name that a language's folder gives: "python", "javascript", "typescript", "cpp", "sql", "postgres". Null for
// any other.
const ScannerModel* scanner_model(std::string_view name);

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_SCANNER_MODEL_H_
