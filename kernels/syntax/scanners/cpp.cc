// C++: raw strings. `R"x(` has its delimiter `x` remembered until `)x"`.

#include <cstring>

#include "syntax/scanners/reader.h"
#include "syntax/scanners/scanners.h"

namespace treefill::syntax {
namespace {

enum Token : uint8_t { kDelimiter, kContent };

constexpr size_t kMaxDelimiter = 16;  // characters
constexpr ByteSet kClosing = bytes_of(")");

// The delimiter as the scanner writes it: a `wchar_t` for each character.
class Delimiter {
 public:
  explicit Delimiter(std::string_view memory) : bytes_(memory) {}

  size_t size() const { return bytes_.size() / sizeof(wchar_t); }
  int32_t operator[](size_t i) const {
    wchar_t character;
    std::memcpy(&character, bytes_.data() + i * sizeof(wchar_t), sizeof(wchar_t));
    return static_cast<int32_t>(character);
  }

 private:
  std::string_view bytes_;
};

class CppScanner : public ScannerModel {
 public:
  Answer scan(const Question& question) const override {
    const bool is_recovering = question.valid[kDelimiter] && question.valid[kContent];
    if (is_recovering) return declined();
    Reader reader(question);
    if (question.valid[kDelimiter])
      return question.memory.empty() ? opening(reader) : closing(reader, Delimiter(question.memory));
    if (question.valid[kContent]) return content(reader, question);
    return declined();
  }

 private:
  static Answer opening(Reader& reader) {
    std::string memory;
    for (size_t length = 0; length < kMaxDelimiter; ++length) {
      if (reader.is_unknown()) return undecided(only(kDelimiter), true);
      if (reader.next() == '(' && length > 0) return found(kDelimiter, reader.position(), std::move(memory));
      if (reader.next() == '(' || reader.next() == '\\' || is_space(reader.next()) || reader.is_at_end())
        return declined();
      const auto character = static_cast<wchar_t>(reader.next());
      memory.append(reinterpret_cast<const char*>(&character), sizeof character);
      reader.advance();
    }
    return declined();
  }

  static Answer closing(Reader& reader, const Delimiter& delimiter) {
    for (size_t i = 0; i < delimiter.size(); ++i) {
      if (reader.is_unknown()) return undecided(only(kDelimiter), true);
      if (reader.next() != delimiter[i]) return declined();
      reader.advance();
    }
    return found(kDelimiter, reader.position());
  }

  // All up to `)`, the delimiter and a quote; or to the end of the text.
  static Answer content(Reader& reader, const Question& question) {
    const std::string_view memory = question.memory;
    const Delimiter delimiter(memory);
    uint32_t end = reader.position();
    bool is_closing = false;
    size_t n_matched = 0;  // of the delimiter, after a `)`
    for (;;) {
      if (!is_closing) reader.skip_until(kClosing);
      if (reader.is_unknown()) {
        tell_rest(question, "a", is_closing ? end : reader.position());
        return undecided(only(kContent), false);
      }
      if (reader.is_at_end()) return found(kContent, reader.position(), std::string(memory));
      if (is_closing && n_matched == delimiter.size()) {
        if (reader.next() == '"') return found(kContent, end, std::string(memory));
        is_closing = false;
      } else if (is_closing) {
        is_closing = reader.next() == delimiter[n_matched++];
      }
      if (!is_closing && reader.next() == ')') {
        end = reader.position();
        is_closing = true;
        n_matched = 0;
      }
      reader.advance();
    }
  }
};

}  // namespace

const ScannerModel& cpp_scanner() {
  static const CppScanner scanner;
  return scanner;
}

}  // namespace treefill::syntax
