// SQL: strings between `$tag$` and `$tag$`, as one token or, where what is between is read as SQL, as a token for
// either tag with the tag remembered meanwhile. The scanner (0.3.13) loses a kilobyte whenever it meets the remembered
// tag where it is asked for a string alone; its model has nothing to lose.

#include <optional>

#include "syntax/scanners/reader.h"
#include "syntax/scanners/scanners.h"

namespace treefill::syntax {
namespace {

enum Token : uint8_t { kStartTag, kEndTag, kString };

constexpr size_t kMaxMemory = 1023;  // bytes; a longer tag is forgotten
constexpr ByteSet kDollar = bytes_of("$");

// The scanner keeps a byte of each character, in a C string: what comes after a zero is not compared.
std::string_view c_string(std::string_view bytes) { return bytes.substr(0, bytes.find('\0')); }

// Reads `$...$` without white space in it; none where there is no such thing, or what comes is unknown.
std::optional<std::string> read_tag(Reader& reader, std::string& so_far) {
  so_far.clear();
  if (reader.next() != '$') return std::nullopt;
  do {
    so_far.push_back(static_cast<char>(reader.next()));
    reader.advance();
    if (reader.is_unknown() || is_space(reader.next()) || reader.is_at_end()) return std::nullopt;
  } while (reader.next() != '$');
  so_far.push_back('$');
  reader.advance();
  return std::string(c_string(so_far));
}

class SqlScanner : public ScannerModel {
 public:
  Answer scan(const Question& question) const override {
    const std::string_view tag = c_string(question.memory);
    Reader reader(question);
    if (question.valid[kStartTag] && tag.empty()) return start_tag(reader);
    if (question.valid[kEndTag] && !tag.empty()) return end_tag(reader, tag);
    if (question.valid[kString]) return string(reader, tag, question);
    return declined();
  }

 private:
  static Answer start_tag(Reader& reader) {
    std::string so_far;
    skip_space(reader);
    if (const auto tag = read_tag(reader, so_far)) return found(kStartTag, reader.position(), remember(*tag));
    return reader.is_unknown() ? undecided(only(kStartTag), true) : declined();
  }

  static Answer end_tag(Reader& reader, std::string_view tag) {
    std::string so_far;
    skip_space(reader);
    if (const auto other = read_tag(reader, so_far))
      return *other == tag ? found(kEndTag, reader.position()) : declined();
    const bool is_its_beginning = tag.starts_with(c_string(so_far));
    return reader.is_unknown() && is_its_beginning ? undecided(only(kEndTag), true) : declined();
  }

  static Answer string(Reader& reader, std::string_view remembered, const Question& question) {
    const Answer unknown = undecided(only(kString), true);
    std::string so_far;
    skip_space(reader);
    const auto tag = read_tag(reader, so_far);
    if (!tag) return reader.is_unknown() ? unknown : declined();
    if (*tag == remembered) return declined();
    for (uint32_t dollar = reader.position();;) {
      if (reader.skip_until(kDollar)) dollar = reader.position();
      if (reader.is_unknown()) {
        tell_rest(question, *tag, dollar);
        if (question.rest) question.rest->is_never_lexed = true;
        return unknown;
      }
      if (reader.is_at_end()) return declined();
      dollar = reader.position();
      const auto other = read_tag(reader, so_far);
      if (other && *other == *tag) return found(kString, reader.position(), remember(remembered));
      if (!other) reader.advance();
    }
  }

  static std::string remember(std::string_view tag) {
    if (tag.empty() || tag.size() + 1 > kMaxMemory) return {};
    return std::string(tag) + '\0';
  }
};

}  // namespace

const ScannerModel& sql_scanner() {
  static const SqlScanner scanner;
  return scanner;
}

}  // namespace treefill::syntax
