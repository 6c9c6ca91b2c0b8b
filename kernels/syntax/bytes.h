// Values as the bytes that they are in memory: keys, and files that this machine reads again.

#ifndef TREEFILL_SYNTAX_BYTES_H_
#define TREEFILL_SYNTAX_BYTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace treefill::syntax {

template <typename T>
void append(std::string& bytes, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// With its length before it, so that what follows is not taken for more of it.
inline void append_text(std::string& bytes, std::string_view text) {
  append(bytes, static_cast<uint32_t>(text.size()));
  bytes += text;
}

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_BYTES_H_
