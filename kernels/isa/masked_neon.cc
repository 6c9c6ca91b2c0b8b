// Logits under a token mask on AArch64: a word of the mask and its 32 logits, in eight registers of four.

#include <arm_neon.h>

#include "isa/exp_neon.h"
#include "isa/kernel.h"
#include "isa/masked_words.h"

namespace treefill {
namespace {

constexpr int kFour = 4;     // lanes of a register
constexpr int kEighths = 8;  // registers that hold a word's logits, or a stretch's words

// The bits of a register's tokens in the word that they belong to, the register being its `eighth`.
inline uint32x4_t bits_of(int eighth) {
  const uint32x4_t first = {1, 2, 4, 8};
  return vshlq_u32(first, vdupq_n_s32(kFour * eighth));
}

// All ones in the lanes whose token the word allows, of its `eighth`.
inline uint32x4_t allowed(uint32x4_t word, int eighth) { return vtstq_u32(word, bits_of(eighth)); }

inline uint32_t that_allow(const uint32_t* words) {
  uint32x4_t bits = vdupq_n_u32(0);
#pragma GCC unroll 8
  for (int i = 0; i < kEighths; ++i) {
    const uint32x4_t four = vld1q_u32(words + i * kFour);
    bits = vorrq_u32(bits, vandq_u32(vtstq_u32(four, four), bits_of(i)));
  }
  return vaddvq_u32(bits);
}

// Which of a word's logits are above `bound`, or equal to it, as a word has them.
template <bool kEqual>
inline uint32_t compared(const float* logits, float32x4_t bound) {
  uint32x4_t bits = vdupq_n_u32(0);
#pragma GCC unroll 8
  for (int i = 0; i < kEighths; ++i) {
    const float32x4_t x = vld1q_f32(logits + i * kFour);
    bits = vorrq_u32(bits, vandq_u32(kEqual ? vceqq_f32(x, bound) : vcgtq_f32(x, bound), bits_of(i)));
  }
  return vaddvq_u32(bits);
}

inline float32x4_t higher(float32x4_t a, float32x4_t b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }

inline double sum_lanes(float64x2_t a, float64x2_t b, float64x2_t c, float64x2_t d) {
  const float64x2_t pairs = vaddq_f64(vaddq_f64(a, c), vaddq_f64(b, d));  // i + (i + 4); even, odd
  return vgetq_lane_f64(pairs, 0) + vgetq_lane_f64(pairs, 1);
}

// The highest allowed logit of the stretch from `begin` on, by lanes.
inline float32x4_t highest(const MaskedPiece& p, int64_t begin) {
  const float32x4_t none = vdupq_n_f32(-__builtin_inff());
  float32x4_t most[kFour] = {none, none, none, none};
  for_each_word(p, begin, that_allow, [&](int64_t word) {
    const uint32x4_t bits = vdupq_n_u32(p.mask[word]);
#pragma GCC unroll 8
    for (int i = 0; i < kEighths; ++i) {
      const float32x4_t x = vld1q_f32(p.logits + word * kMaskTokens + i * kFour);
      float32x4_t& so_far = most[i % kFour];
      so_far = vbslq_f32(vandq_u32(allowed(bits, i), vcgtq_f32(x, so_far)), x, so_far);
    }
  });
  return higher(higher(most[0], most[1]), higher(most[2], most[3]));
}

}  // namespace

// The highest logit is found first, and with it the stretch that it is in; then its place in that.
int64_t masked_argmax_neon(const MaskedPiece& p) {
  float top = -__builtin_inff();
  int64_t stretch = -1;
  for (int64_t begin = 0; begin < p.n_words; begin += kStretchWords) {
    const float most = vmaxvq_f32(highest(p, begin));
    if (!(most > top)) continue;
    top = most;
    stretch = begin;
  }
  if (stretch < 0) return -1;
  for (int64_t word = stretch;; ++word) {
    const uint32_t equal = p.mask[word] & compared<true>(p.logits + word * kMaskTokens, vdupq_n_f32(top));
    if (equal) return word * kMaskTokens + __builtin_ctz(equal);
  }
}

int64_t masked_above_neon(const MaskedPiece& p, float bound, int32_t* places) {
  const float32x4_t bounds = vdupq_n_f32(bound);
  int64_t n = 0;
  for_each_word(p, that_allow, [&](int64_t word) {
    uint32_t above = p.mask[word] & compared<false>(p.logits + word * kMaskTokens, bounds);
    for (; above; above &= above - 1) places[n++] = static_cast<int32_t>(word * kMaskTokens + __builtin_ctz(above));
  });
  return n;
}

double masked_sum_exp_neon(const MaskedPiece& p, float top) {
  const float32x4_t tops = vdupq_n_f32(top);
  float64x2_t totals[kFour] = {vdupq_n_f64(0), vdupq_n_f64(0), vdupq_n_f64(0), vdupq_n_f64(0)};
  for_each_word(p, that_allow, [&](int64_t word) {
    const uint32x4_t bits = vdupq_n_u32(p.mask[word]);
    float32x4_t e[kEighths];
#pragma GCC unroll 8
    for (int i = 0; i < kEighths; ++i) {
      const float32x4_t x = exponential(vsubq_f32(vld1q_f32(p.logits + word * kMaskTokens + i * kFour), tops));
      e[i] = vreinterpretq_f32_u32(vandq_u32(allowed(bits, i), vreinterpretq_u32_f32(x)));
    }
    for (int i = 0; i < 2; ++i) {  // lanes 4 i to 4 i + 3
      const float32x4_t sums = vaddq_f32(vaddq_f32(e[i], e[i + 4]), vaddq_f32(e[i + 2], e[i + 6]));
      totals[2 * i] = vaddq_f64(totals[2 * i], vcvt_f64_f32(vget_low_f32(sums)));
      totals[2 * i + 1] = vaddq_f64(totals[2 * i + 1], vcvt_high_f64_f32(sums));
    }
  });
  return sum_lanes(totals[0], totals[1], totals[2], totals[3]);
}

}  // namespace treefill
