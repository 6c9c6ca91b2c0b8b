// A grammar's external scanner: compiled C that is asked for the tokens that no automaton finds.
//
// It is a black box with a memory. The memory is a string that it writes and reads, kept here once for each value and
// known by a number. What it answers is final unless it looked at the end of a text that may go on: then nothing is
// known yet, and it is asked again when there is more.

#ifndef TREEFILL_SYNTAX_EXTERNAL_SCANNER_H_
#define TREEFILL_SYNTAX_EXTERNAL_SCANNER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syntax/language.h"

namespace treefill::syntax {

using ScannerState = uint32_t;

// One payload of the scanner, so one thread at a time.
class ExternalScanner {
 public:
  explicit ExternalScanner(const Language& language);
  ~ExternalScanner();
  ExternalScanner(const ExternalScanner&) = delete;
  ExternalScanner& operator=(const ExternalScanner&) = delete;

  static constexpr ScannerState kFresh = 0;

  struct Answer {
    bool is_undecided = false;  // it saw the end of the text
    bool is_overfull = false;   // its memory is larger than tree-sitter has room for
    bool found = false;
    Symbol symbol = kNoSymbol;
    uint32_t end = 0;
    ScannerState state = kFresh;
  };
  // Looks for a token at `position`. `is_whole`: nothing comes after `text`, so its end decides, too.
  Answer scan(uint16_t external_lex_state, ScannerState state, std::string_view text, uint32_t position, bool is_whole);

  struct Reply {
    bool is_undecided = false;
    bool found = false;
    uint8_t token = 0;   // place in the scanner's enum
    uint32_t end = 0;    // where the token ends, in bytes of `text`
    std::string memory;  // what the scanner wrote after it
  };
  // The same with any set of tokens and any memory.
  Reply ask(const bool* valid, std::string_view memory, std::string_view text, uint32_t position, bool is_whole);

  const std::string& memory(ScannerState state) const { return memories_[state]; }

 private:
  ScannerState intern(std::string memory);

  const Language& language_;
  void* payload_ = nullptr;
  std::vector<std::string> memories_;
  std::unordered_map<std::string, ScannerState> numbers_;
  std::vector<char> buffer_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_EXTERNAL_SCANNER_H_
