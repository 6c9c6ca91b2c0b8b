// Logits under a token mask with AVX2: a word of the mask and its 32 logits, in four registers of eight, at once.
//
// The word is in every lane of a register, and each lane shifts it by so much that its own token's bit becomes the
// sign, which is what a blend looks at.

#include <immintrin.h>

#include "isa/exp_avx2.h"
#include "isa/kernel.h"
#include "isa/masked_words.h"

namespace treefill {
namespace {

constexpr int kQuarters = 4;  // registers that hold a word's logits, or a stretch's words

// A word's bits as the signs of the lanes of its `quarter`.
inline __m256 signs(__m256i word, int quarter) {
  const __m256i to_sign =
      _mm256_sub_epi32(_mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24), _mm256_set1_epi32(8 * quarter));
  return _mm256_castsi256_ps(_mm256_sllv_epi32(word, to_sign));
}

inline __m256i in_every_lane(uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }

inline uint32_t that_allow(const uint32_t* words) {
  uint32_t empty = 0;
  for (int i = 0; i < kQuarters; ++i) {
    const __m256i eight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i * kLanes));
    const __m256 are_zero = _mm256_castsi256_ps(_mm256_cmpeq_epi32(eight, _mm256_setzero_si256()));
    empty |= static_cast<uint32_t>(_mm256_movemask_ps(are_zero)) << (i * kLanes);
  }
  return ~empty;
}

// Which of 32 logits compare so with `bound`, as a word has them.
template <int kComparison>
inline uint32_t compared(const float* logits, __m256 bound) {
  uint32_t bits = 0;
  for (int i = 0; i < kQuarters; ++i) {
    const __m256 is = _mm256_cmp_ps(_mm256_loadu_ps(logits + i * kLanes), bound, kComparison);
    bits |= static_cast<uint32_t>(_mm256_movemask_ps(is)) << (i * kLanes);
  }
  return bits;
}

inline float highest_lane(__m256 lanes) {
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_shuffle_ps(four, four, 1)));
}

inline double sum_lanes(__m256d low, __m256d high) {
  const __m256d halves = _mm256_add_pd(low, high);                                                     // i + (i + 4)
  const __m128d pairs = _mm_add_pd(_mm256_castpd256_pd128(halves), _mm256_extractf128_pd(halves, 1));  // even, odd
  return _mm_cvtsd_f64(pairs) + _mm_cvtsd_f64(_mm_unpackhi_pd(pairs, pairs));
}

// The highest allowed logit of the stretch from `begin` on, by lanes.
inline __m256 highest(const MaskedPiece& p, int64_t begin) {
  const __m256 none = _mm256_set1_ps(-__builtin_inff());
  __m256 most[kQuarters] = {none, none, none, none};
  for_each_word(p, begin, that_allow, [&](int64_t word) {
    const __m256i bits = in_every_lane(p.mask[word]);
    const float* logits = p.logits + word * kMaskTokens;
#pragma GCC unroll 4
    for (int i = 0; i < kQuarters; ++i) {
      const __m256 allowed = _mm256_blendv_ps(none, _mm256_loadu_ps(logits + i * kLanes), signs(bits, i));
      most[i] = _mm256_max_ps(allowed, most[i]);  // the second, where the first is not a number
    }
  });
  return _mm256_max_ps(_mm256_max_ps(most[0], most[1]), _mm256_max_ps(most[2], most[3]));
}

}  // namespace

// The highest logit is found first, and with it the stretch that it is in; then its place in that.
int64_t masked_argmax_avx2(const MaskedPiece& p) {
  __m256 top = _mm256_set1_ps(-__builtin_inff());
  int64_t stretch = -1;
  for (int64_t begin = 0; begin < p.n_words; begin += kStretchWords) {
    const __m256 most = highest(p, begin);
    if (_mm256_movemask_ps(_mm256_cmp_ps(most, top, _CMP_GT_OQ)) == 0) continue;
    top = _mm256_set1_ps(highest_lane(most));
    stretch = begin;
  }
  if (stretch < 0) return -1;
  for (int64_t word = stretch;; ++word) {
    const uint32_t equal = p.mask[word] & compared<_CMP_EQ_OQ>(p.logits + word * kMaskTokens, top);
    if (equal) return word * kMaskTokens + __builtin_ctz(equal);
  }
}

int64_t masked_above_avx2(const MaskedPiece& p, float bound, int32_t* places) {
  const __m256 bounds = _mm256_set1_ps(bound);
  int64_t n = 0;
  for_each_word(p, that_allow, [&](int64_t word) {
    uint32_t above = p.mask[word] & compared<_CMP_GT_OQ>(p.logits + word * kMaskTokens, bounds);
    for (; above; above &= above - 1) places[n++] = static_cast<int32_t>(word * kMaskTokens + __builtin_ctz(above));
  });
  return n;
}

double masked_sum_exp_avx2(const MaskedPiece& p, float top) {
  const __m256 tops = _mm256_set1_ps(top);
  __m256d low = _mm256_setzero_pd(), high = low;
  for_each_word(p, that_allow, [&](int64_t word) {
    const __m256i bits = in_every_lane(p.mask[word]);
    const float* logits = p.logits + word * kMaskTokens;
    __m256 e[kQuarters];
#pragma GCC unroll 4
    for (int i = 0; i < kQuarters; ++i) {
      const __m256 x = exponential(_mm256_sub_ps(_mm256_loadu_ps(logits + i * kLanes), tops));
      e[i] = _mm256_blendv_ps(_mm256_setzero_ps(), x, signs(bits, i));
    }
    const __m256 sums = _mm256_add_ps(_mm256_add_ps(e[0], e[2]), _mm256_add_ps(e[1], e[3]));
    low = _mm256_add_pd(low, _mm256_cvtps_pd(_mm256_castps256_ps128(sums)));
    high = _mm256_add_pd(high, _mm256_cvtps_pd(_mm256_extractf128_ps(sums, 1)));
  });
  return sum_lanes(low, high);
}

}  // namespace treefill
