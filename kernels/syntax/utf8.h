// One character of UTF-8 at a time.

#ifndef TREEFILL_SYNTAX_UTF8_H_
#define TREEFILL_SYNTAX_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace treefill::syntax {

struct Utf8Character {
  int32_t code_point;  // -1 where the bytes are no UTF-8
  uint8_t length;      // in bytes; 0 where the text ends inside the character
};

// Bytes of the character that begins with `lead`; 0 where none does.
constexpr uint8_t utf8_length(uint8_t lead) {
  return lead < 0x80 ? 1 : lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
}

// The character at `at`, which is before the text's end.
inline Utf8Character utf8_at(std::string_view text, size_t at) {
  const auto lead = static_cast<uint8_t>(text[at]);
  if (lead < 0x80) return {lead, 1};
  const uint8_t length = utf8_length(lead);
  if (length == 0) return {-1, 1};
  int32_t code_point = lead & (0x7F >> length);
  for (uint8_t i = 1; i < length; ++i) {
    if (at + i >= text.size()) return {-1, 0};
    const auto byte = static_cast<uint8_t>(text[at + i]);
    if ((byte & 0xC0) != 0x80) return {-1, 1};
    code_point = code_point << 6 | (byte & 0x3F);
  }
  constexpr int32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kLeast[length] || code_point > 0x10FFFF || is_surrogate) return {-1, 1};
  return {code_point, length};
}

// Does the text end inside a character?
inline bool ends_inside_character(std::string_view text) {
  size_t last = text.size();
  while (last > 0 && (static_cast<uint8_t>(text[last - 1]) & 0xC0) == 0x80) --last;
  return last > 0 && utf8_at(text, last - 1).length == 0;
}

struct CodePoints {
  int32_t first;
  int32_t last;
};

// What the character at `at`, of which the text has only the first bytes, may become.
inline CodePoints unfinished_at(std::string_view text, size_t at) {
  const uint8_t length = utf8_length(static_cast<uint8_t>(text[at]));
  int32_t known = static_cast<uint8_t>(text[at]) & (0x7F >> length);
  size_t n_known = 1;
  for (; at + n_known < text.size(); ++n_known) known = known << 6 | (static_cast<uint8_t>(text[at + n_known]) & 0x3F);
  const auto n_bits = static_cast<int32_t>(6 * (length - n_known));
  return {known << n_bits, (known << n_bits) | ((1 << n_bits) - 1)};
}

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_UTF8_H_
