// PostgreSQL: strings between `$tag$` and `$tag$`, each one token.

#include "syntax/scanners/reader.h"
#include "syntax/scanners/scanners.h"

namespace treefill::syntax {
namespace {

enum Token : uint8_t { kString };

constexpr size_t kMaxTag = 63;  // characters
constexpr ByteSet kDollar = bytes_of(std::string_view("$\0", 2));

bool may_begin_tag(int32_t character) {
  return character >= 0x80 || character == '_' || (character < 128 && is_letter(character));
}

class PostgresScanner : public ScannerModel {
 public:
  Answer scan(const Question& question) const override {
    if (!question.valid[kString]) return declined();
    const Answer unknown = undecided(only(kString), true);
    Reader reader(question);
    while (reader.next() == ' ' || reader.next() == '\t' || reader.next() == '\n' || reader.next() == '\r')
      reader.advance();
    if (reader.is_unknown()) return unknown;
    if (reader.next() != '$') return declined();
    reader.advance();

    std::string tag;  // the scanner keeps a byte of each character, and one beyond 0xFF equals none
    while (may_begin_tag(reader.next()) || (!tag.empty() && is_digit(reader.next()))) {
      if (tag.size() == kMaxTag) return declined();
      tag.push_back(static_cast<char>(reader.next()));
      reader.advance();
    }
    if (reader.is_unknown()) return unknown;
    if (reader.next() != '$') return declined();
    reader.advance();
    return body(reader, tag, question);
  }

 private:
  static Answer body(Reader& reader, std::string_view tag, const Question& question) {
    const std::string opening = '$' + std::string(tag) + '$';
    for (uint32_t dollar = reader.position();;) {
      if (reader.skip_until(kDollar)) dollar = reader.position();
      if (reader.is_unknown()) {
        tell_rest(question, opening, dollar);
        if (question.rest) question.rest->is_never_lexed = true;
        return undecided(only(kString), true);
      }
      dollar = reader.position();
      if (reader.next() == 0) return declined();
      reader.advance();
      size_t n_matched = 0;
      for (; n_matched < tag.size() && reader.next() == static_cast<uint8_t>(tag[n_matched]); ++n_matched)
        reader.advance();
      if (n_matched < tag.size() || reader.next() != '$') continue;
      reader.advance();
      return found(kString, reader.position());
    }
  }
};

}  // namespace

const ScannerModel& postgres_scanner() {
  static const PostgresScanner scanner;
  return scanner;
}

}  // namespace treefill::syntax
