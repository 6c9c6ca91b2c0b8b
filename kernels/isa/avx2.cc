// x86-64 with AVX2, FMA and F16C (Haswell and Zen onward).
//
// The 8-bit multiply-add (vpmaddubsw) adds pairs of unsigned × signed products in saturating 16 bits. Feeding it
// |w| and sign(w)·x keeps it exact, because both factors lie within ±127: 2 · 127 · 127 = 32,258 < 32,767.
// That is half the instructions of widening both factors to 16 bits first, for the same integers.

#include <immintrin.h>

#include "isa/kernel.h"

namespace treefill {
namespace {

// As a type of its own: GCC keeps sums of __m256i in registers only where no conversion stands between two rounds.
using Int32x8 = int32_t __attribute__((vector_size(32)));

struct Acc {
  __m256 low, high;  // outputs 0–7 and 8–15 of a block
};

inline Int32x8 dot_quad(__m256i w, __m256i w_abs, __m256i x) {
  const __m256i pairs = _mm256_maddubs_epi16(w_abs, _mm256_sign_epi8(x, w));
  return reinterpret_cast<Int32x8>(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

inline __m256 as_floats(Int32x8 integers) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(integers)); }

// kRows rows at once, so that a weight is loaded once for all of them.
template <int kRows>
inline void block_rows(const LinearPiece& p, int64_t block, int64_t row) {
  const int8_t* q = p.q + block * p.n_groups * kBlockBytes;
  const uint16_t* scale = p.scale + block * p.n_groups * kBlock;
  const int8_t* x[kRows];
  Acc acc[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = p.x + (row + r) * p.n_groups * kGroup;
    acc[r] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  for (int64_t group = 0; group < p.n_groups; ++group, q += kBlockBytes, scale += kBlock) {
    // A decode step is as quick as memory: ask for the next group's weights now, also across the end of a page, where
    // the processor's own prefetching stops.
    if constexpr (kRows <= 2)
      for (int64_t line = 0; line < kBlockBytes; line += 64)
        _mm_prefetch(reinterpret_cast<const char*>(q + kBlockBytes + line), _MM_HINT_T0);
    Int32x8 low[kRows], high[kRows];
    for (int r = 0; r < kRows; ++r) low[r] = high[r] = Int32x8{};
    for (int quad = 0; quad < kGroup / 4; ++quad) {
      const __m256i w_low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + quad * 64));
      const __m256i w_high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + quad * 64 + 32));
      const __m256i abs_low = _mm256_abs_epi8(w_low), abs_high = _mm256_abs_epi8(w_high);
      for (int r = 0; r < kRows; ++r) {
        int32_t four;
        __builtin_memcpy(&four, x[r] + group * kGroup + quad * 4, sizeof four);
        const __m256i xs = _mm256_set1_epi32(four);
        low[r] += dot_quad(w_low, abs_low, xs);
        high[r] += dot_quad(w_high, abs_high, xs);
      }
    }
    const __m256 scale_low = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scale)));
    const __m256 scale_high = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scale + 8)));
    for (int r = 0; r < kRows; ++r) {
      const __m256 x_scale = _mm256_set1_ps(p.x_scale[(row + r) * p.n_groups + group]);
      acc[r].low = _mm256_fmadd_ps(as_floats(low[r]), _mm256_mul_ps(scale_low, x_scale), acc[r].low);
      acc[r].high = _mm256_fmadd_ps(as_floats(high[r]), _mm256_mul_ps(scale_high, x_scale), acc[r].high);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float out[kBlock];
    _mm256_storeu_ps(out, acc[r].low);
    _mm256_storeu_ps(out + 8, acc[r].high);
    float* y = p.y + (row + r) * p.n_outputs;
    for (int64_t n = block * kBlock; n < (block + 1) * kBlock && n < p.n_outputs; ++n) {
      const float one = p.bias ? out[n - block * kBlock] + p.bias[n] : out[n - block * kBlock];
      y[n] = p.add ? y[n] + one : one;
    }
  }
}

}  // namespace

void linear_avx2(const LinearPiece& p) {
  for (int64_t block = p.block_begin; block < p.block_end; ++block) {
    int64_t row = 0;
    for (; row + 4 <= p.n_rows; row += 4) block_rows<4>(p, block, row);
    for (; row + 2 <= p.n_rows; row += 2) block_rows<2>(p, block, row);
    for (; row < p.n_rows; ++row) block_rows<1>(p, block, row);
  }
}

void quantise_avx2(const float* x, int64_t n_inputs, int8_t* q, float* scale) {
  const __m256 sign_bit = _mm256_set1_ps(-0.0f);
  const int64_t whole = n_inputs / kGroup * kGroup;
  for (int64_t begin = 0; begin < whole; begin += kGroup) {
    __m256 v[8];
    __m256 largest = _mm256_setzero_ps();
    for (int i = 0; i < 8; ++i) {
      v[i] = _mm256_loadu_ps(x + begin + 8 * i);
      largest = _mm256_max_ps(_mm256_andnot_ps(sign_bit, v[i]), largest);
    }
    float lanes[8];
    _mm256_storeu_ps(lanes, largest);
    float absmax = lanes[0];
    for (int i = 1; i < 8; ++i) absmax = lanes[i] > absmax ? lanes[i] : absmax;
    scale[begin / kGroup] = absmax / 127.0f;
    const __m256 inverse = _mm256_set1_ps(absmax > 0.0f ? 127.0f / absmax : 0.0f);
    for (int half = 0; half < 2; ++half) {
      __m256i i32[4];
      for (int i = 0; i < 4; ++i) {
        const __m256 scaled = _mm256_mul_ps(v[4 * half + i], inverse);
        const __m256 magnitude = _mm256_andnot_ps(sign_bit, scaled);
        // The comparison is false for what is not a number, which becomes zero as in the scalar kernel.
        const __m256 in_range = _mm256_cmp_ps(magnitude, _mm256_set1_ps(127.5f), _CMP_LT_OQ);
        i32[i] = _mm256_cvtps_epi32(_mm256_and_ps(scaled, in_range));
      }
      const __m256i i16_low = _mm256_packs_epi32(i32[0], i32[1]);
      const __m256i i16_high = _mm256_packs_epi32(i32[2], i32[3]);
      const __m256i mixed = _mm256_packs_epi16(i16_low, i16_high);  // packs within 128-bit lanes: put quads in order
      const __m256i ordered = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + begin + 32 * half), ordered);
    }
  }
  if (whole < n_inputs) quantise_scalar(x + whole, n_inputs - whole, q + whole, scale + whole / kGroup);
}

}  // namespace treefill
