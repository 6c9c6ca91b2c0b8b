// What the models read a text through, and the answers they give.

#ifndef TREEFILL_SYNTAX_SCANNERS_READER_H_
#define TREEFILL_SYNTAX_SCANNERS_READER_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <cwctype>
#include <string>
#include <string_view>
#include <utility>

#include "syntax/scanner_model.h"
#include "syntax/utf8.h"

namespace treefill::syntax {

// A class of bytes: one flag each. Bytes of characters beyond ASCII are in it where any such character may be.
using ByteSet = std::array<bool, 256>;

constexpr ByteSet bytes_of(std::string_view members) {
  ByteSet set{};
  for (char member : members) set[static_cast<uint8_t>(member)] = true;
  return set;
}

// One character at a time, or all up to the next byte that matters. Where the text may go on, what comes after its end
// is unknown, and so is a character that it ends inside of: a model that stands there knows nothing yet.
class Reader {
 public:
  static constexpr int32_t kUnknown = -2;

  explicit Reader(const ScannerModel::Question& question)
      : text_(question.text),
        from_(question.position),
        at_(from_),
        is_whole_(question.is_whole),
        n_read_(question.n_read) {
    constexpr int32_t kByteOrderMark = 0xFEFF;  // left out where the text begins with it, as tree-sitter does
    look();
    if (at_ == 0 && next_ == kByteOrderMark) advance();
  }
  ~Reader() {
    if (n_read_) *n_read_ += at_ - from_;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // The character that comes next: -1 where the bytes are no UTF-8, 0 at the end of a whole text (or a NUL in it).
  int32_t next() const { return next_; }
  bool is_unknown() const { return next_ == kUnknown; }
  bool is_at_end() const { return at_ >= text_.size() && is_whole_; }
  uint32_t position() const { return at_; }

  void advance() {
    if (at_ >= text_.size() || is_unknown()) return;
    at_ += length_;
    look();
  }

  // Up to a byte of `stops`. True where there was something before it.
  bool skip_until(const ByteSet& stops) {
    return skip_until([&](uint8_t byte) { return stops[byte]; });
  }

  template <typename Stops>
  bool skip_until(Stops stops) {
    const uint32_t from = at_;
    while (at_ < text_.size() && !stops(static_cast<uint8_t>(text_[at_]))) ++at_;
    if (at_ == from) return false;
    look();
    return true;
  }

 private:
  void look() {
    next_ = is_whole_ ? 0 : kUnknown;
    length_ = 0;
    if (at_ >= text_.size()) return;
    const Utf8Character character = utf8_at(text_, at_);
    if (character.length == 0 && !is_whole_) return;
    next_ = character.code_point;
    length_ = std::max<uint8_t>(character.length, 1);
  }

  std::string_view text_;
  uint32_t from_;
  uint32_t at_;
  int32_t next_ = 0;
  uint8_t length_ = 0;
  bool is_whole_;
  uint64_t* n_read_;
};

// White space as the scanners see it, who ask the C library, and so does this beyond ASCII: what is there depends on
// the locale, and is the same for both in one process.
inline bool is_space(int32_t character) {
  if (character < 128) return character == ' ' || (character >= '\t' && character <= '\r');
  return std::iswspace(static_cast<wint_t>(character)) != 0;
}

inline bool is_letter(int32_t character) {
  if (character < 128) return (character | 0x20) >= 'a' && (character | 0x20) <= 'z';
  return std::iswalpha(static_cast<wint_t>(character)) != 0;
}

inline bool is_digit(int32_t character) { return character >= '0' && character <= '9'; }

inline void skip_space(Reader& reader) {
  while (is_space(reader.next())) reader.advance();
}

constexpr ExternalSet only(uint8_t token) { return ExternalSet{1} << token; }
constexpr ExternalSet only_if(bool condition, uint8_t token) { return condition ? only(token) : 0; }

// Of an undecided text, `before` stands for what is before `from`.
inline void tell_rest(const ScannerModel::Question& question, std::string_view before, uint32_t from) {
  if (!question.rest) return;
  question.rest->text = before;
  question.rest->text += question.text.substr(from);
}

inline ScannerModel::Answer undecided(ExternalSet possible, bool may_decline) {
  ScannerModel::Answer answer;
  answer.is_undecided = true;
  answer.possible = possible;
  answer.may_decline = may_decline;
  return answer;
}

inline ScannerModel::Answer declined() { return {}; }

inline ScannerModel::Answer refused() {
  ScannerModel::Answer answer;
  answer.is_refused = true;
  return answer;
}

inline ScannerModel::Answer found(uint8_t token, uint32_t end, std::string memory = {}) {
  ScannerModel::Answer answer;
  answer.found = true;
  answer.token = token;
  answer.end = end;
  answer.memory = std::move(memory);
  return answer;
}

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_SCANNERS_READER_H_
