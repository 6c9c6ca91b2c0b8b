// Walking over the words of a token mask that allow anything. A copy in each file, as exp_scalar.h says.
//
// They are looked at in stretches, and which of a stretch's words allow anything is a word in itself. Taking that bit
// by bit leaves the processor nothing to guess where about every other word is empty; one comparison a word does.

#ifndef TREEFILL_ISA_MASKED_WORDS_H_
#define TREEFILL_ISA_MASKED_WORDS_H_

#include "isa/kernel.h"

namespace treefill {
namespace {

constexpr int64_t kStretchWords = 32;

// Calls each(word) for those from `begin` on, of one stretch, that allow anything, in order. that_allow(words) tells of
// the words of a whole stretch which do, a bit each.
template <typename ThatAllow, typename Each>
inline void for_each_word(const MaskedPiece& p, int64_t begin, ThatAllow that_allow, Each each) {
  const uint32_t* words = p.mask + begin;
  const int64_t n_left = p.n_words - begin;
  uint32_t bits = 0;
  if (n_left >= kStretchWords)
    bits = that_allow(words);
  else
    for (int64_t i = 0; i < n_left; ++i) bits |= static_cast<uint32_t>(words[i] != 0) << i;
  for (; bits; bits &= bits - 1) each(begin + __builtin_ctz(bits));
}

// The same for all stretches.
template <typename ThatAllow, typename Each>
inline void for_each_word(const MaskedPiece& p, ThatAllow that_allow, Each each) {
  for (int64_t begin = 0; begin < p.n_words; begin += kStretchWords) for_each_word(p, begin, that_allow, each);
}

}  // namespace
}  // namespace treefill

#endif  // TREEFILL_ISA_MASKED_WORDS_H_
