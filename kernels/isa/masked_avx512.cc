// Logits under a token mask with AVX-512: the mask's words are what its instructions take.

#include <immintrin.h>

#include "isa/exp.h"
#include "isa/kernel.h"
#include "isa/masked_words.h"

namespace treefill {
namespace {

constexpr int64_t kHalf = 16;  // lanes of a register: half of a word's logits, or of a stretch's words

inline __mmask16 low_half(uint32_t word) { return static_cast<__mmask16>(word); }
inline __mmask16 high_half(uint32_t word) { return static_cast<__mmask16>(word >> kHalf); }

inline uint32_t that_allow(const uint32_t* words) {
  const __m512i low = _mm512_loadu_si512(words), high = _mm512_loadu_si512(words + kHalf);
  return static_cast<uint32_t>(_mm512_test_epi32_mask(low, low)) |
         static_cast<uint32_t>(_mm512_test_epi32_mask(high, high)) << kHalf;
}

// Which of 32 logits compare so with `bound`, as a word has them.
template <int kComparison>
inline uint32_t compared(const float* logits, __m512 bound) {
  const __mmask16 low = _mm512_cmp_ps_mask(_mm512_loadu_ps(logits), bound, kComparison);
  const __mmask16 high = _mm512_cmp_ps_mask(_mm512_loadu_ps(logits + kHalf), bound, kComparison);
  return static_cast<uint32_t>(low) | static_cast<uint32_t>(high) << kHalf;
}

inline float highest_lane(__m512 lanes) {
  float each[kHalf];
  _mm512_storeu_ps(each, lanes);
  float highest = each[0];
  for (float lane : each) highest = lane > highest ? lane : highest;
  return highest;
}

inline double sum_lanes(__m512d lanes) {
  double each[kLanes];
  _mm512_storeu_pd(each, lanes);
  const double even = (each[0] + each[4]) + (each[2] + each[6]);
  const double odd = (each[1] + each[5]) + (each[3] + each[7]);
  return even + odd;
}

// As isa/exp.h has it, sixteen at once.
inline __m512 exponential(__m512 x) {
  x = _mm512_max_ps(x, _mm512_set1_ps(kExpMin));  // the bound, where x is not a number
  x = _mm512_min_ps(x, _mm512_set1_ps(kExpMax));
  const __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(kLog2E)), _MM_FROUND_TO_NEAREST_INT);
  __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2High), x);
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(-kLn2Low), r);
  __m512 y = _mm512_set1_ps(kExp0);
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExp1));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExp2));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExp3));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExp4));
  y = _mm512_fmadd_ps(y, r, _mm512_set1_ps(kExp5));
  y = _mm512_add_ps(_mm512_fmadd_ps(y, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
  const __m512i bits = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
  return _mm512_mul_ps(y, _mm512_castsi512_ps(bits));
}

// The highest allowed logit of the stretch from `begin` on, by lanes.
inline __m512 highest(const MaskedPiece& p, int64_t begin) {
  __m512 low = _mm512_set1_ps(-__builtin_inff()), high = low;
  for_each_word(p, begin, that_allow, [&](int64_t word) {
    const uint32_t bits = p.mask[word];
    const float* logits = p.logits + word * kMaskTokens;
    // The order matters: max_ps gives its second operand where one is not a number.
    low = _mm512_mask_max_ps(low, low_half(bits), _mm512_loadu_ps(logits), low);
    high = _mm512_mask_max_ps(high, high_half(bits), _mm512_loadu_ps(logits + kHalf), high);
  });
  return _mm512_max_ps(low, high);
}

}  // namespace

// The highest logit is found first, and with it the stretch that it is in; then its place in that.
int64_t masked_argmax_avx512(const MaskedPiece& p) {
  __m512 top = _mm512_set1_ps(-__builtin_inff());
  int64_t stretch = -1;
  for (int64_t begin = 0; begin < p.n_words; begin += kStretchWords) {
    const __m512 most = highest(p, begin);
    if (_mm512_cmp_ps_mask(most, top, _CMP_GT_OQ) == 0) continue;
    top = _mm512_set1_ps(highest_lane(most));
    stretch = begin;
  }
  if (stretch < 0) return -1;
  for (int64_t word = stretch;; ++word) {
    const uint32_t equal = p.mask[word] & compared<_CMP_EQ_OQ>(p.logits + word * kMaskTokens, top);
    if (equal) return word * kMaskTokens + __builtin_ctz(equal);
  }
}

int64_t masked_above_avx512(const MaskedPiece& p, float bound, int32_t* places) {
  const __m512 bounds = _mm512_set1_ps(bound);
  int64_t n = 0;
  for_each_word(p, that_allow, [&](int64_t word) {
    uint32_t above = p.mask[word] & compared<_CMP_GT_OQ>(p.logits + word * kMaskTokens, bounds);
    for (; above; above &= above - 1) places[n++] = static_cast<int32_t>(word * kMaskTokens + __builtin_ctz(above));
  });
  return n;
}

double masked_sum_exp_avx512(const MaskedPiece& p, float top) {
  const __m512 tops = _mm512_set1_ps(top);
  __m512d totals = _mm512_setzero_pd();
  for_each_word(p, that_allow, [&](int64_t word) {
    const uint32_t bits = p.mask[word];
    const float* logits = p.logits + word * kMaskTokens;
    const __m512 low = exponential(_mm512_sub_ps(_mm512_loadu_ps(logits), tops));
    const __m512 high = exponential(_mm512_sub_ps(_mm512_loadu_ps(logits + kHalf), tops));
    const __m512 both =
        _mm512_add_ps(_mm512_maskz_mov_ps(low_half(bits), low), _mm512_maskz_mov_ps(high_half(bits), high));
    const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(both), 1));
    totals = _mm512_add_pd(totals, _mm512_cvtps_pd(_mm256_add_ps(_mm512_castps512_ps256(both), upper)));
  });
  return sum_lanes(totals);
}

}  // namespace treefill
