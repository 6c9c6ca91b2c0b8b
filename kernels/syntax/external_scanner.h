// A grammar's external scanner: compiled C that is asked for the tokens that no automaton finds.
//
// The compiled one, or the model of it where there is one. It is a black box with a memory. The memory is a string that
// it writes and reads, kept here once for each value and known by a number. What it answers is final unless it looked
// at the end of a text that may go on: then nothing is known yet, and it is asked again when there is more.

#ifndef TREEFILL_SYNTAX_EXTERNAL_SCANNER_H_
#define TREEFILL_SYNTAX_EXTERNAL_SCANNER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "syntax/language.h"
#include "syntax/scanner_model.h"

namespace treefill::syntax {

using ScannerState = uint32_t;

// One payload of the scanner, so one thread at a time.
class ExternalScanner {
 public:
  explicit ExternalScanner(const Language& language, const ScannerModel* model = nullptr);
  ~ExternalScanner();
  ExternalScanner(const ExternalScanner&) = delete;
  ExternalScanner& operator=(const ExternalScanner&) = delete;

  static constexpr ScannerState kFresh = 0;

  struct Question {
    uint16_t external_lex_state;
    ScannerState state;
    uint32_t position;
    bool is_whole;  // nothing comes after the text, so its end decides, too
    bool is_strict = false;
    bool is_statement_start = false;
    bool is_outside_brackets = false;
  };
  struct Answer {
    bool is_undecided = false;  // it saw the end of a text that may go on; then the next two are set
    ExternalSet possible = 0;
    bool may_decline = false;
    bool is_refused = false;   // by the model alone
    bool is_overfull = false;  // its memory is larger than tree-sitter has room for
    bool found = false;
    Symbol symbol = kNoSymbol;
    uint32_t end = 0;
    ScannerState state = kFresh;
    uint64_t n_read = 0;  // bytes that were looked at
  };
  Answer scan(const Question& question, std::string_view text);

  // What of an undecided text is enough to go on with: nothing that follows tells it from the text from the question's
  // position on. All of it where there is no model.
  ScannerModel::Rest rest(const Question& question, std::string_view text) const;
  // What the scanner remembers there, as it wrote it.
  std::string_view memory(ScannerState state) const {
    return state < memories_.size() ? std::string_view(memories_[state]) : std::string_view();
  }
  // Has the scanner ever asked how far into its line it is? Then what is before it on the line matters.
  bool asks_for_column() const { return asks_for_column_; }

  struct Reply {
    bool is_undecided = false;
    bool found = false;
    uint8_t token = 0;   // place in the scanner's enum
    uint32_t end = 0;    // where the token ends, in bytes of `text`
    std::string memory;  // what the scanner wrote after it
    uint64_t n_read = 0;
  };
  // The same with any set of tokens and any memory.
  Reply ask(const bool* valid, std::string_view memory, std::string_view text, uint32_t position, bool is_whole);

 private:
  Answer with_token(Answer answer, const Question& question, bool found, uint8_t token, uint32_t end,
                    const std::string& memory);
  ScannerModel::Question model_question(const Question& question, std::string_view text) const;
  ScannerState intern(std::string memory);

  const Language& language_;
  const ScannerModel* model_;
  void* payload_ = nullptr;
  std::vector<std::string> memories_;
  std::unordered_map<std::string, ScannerState> numbers_;
  std::vector<char> buffer_;
  bool asks_for_column_ = false;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_EXTERNAL_SCANNER_H_
