// x86-64 with AVX2 and VNNI in its 256-bit form (Alder Lake and Zen 5 onward): for the many that have no AVX-512.
//
// vpdpbusd multiplies unsigned by signed bytes. As in avx512vnni.cc, the activations are shifted up by 128, once for
// both halves of a block, and 128 times the group's weight sum is taken off. AVX2's way around the signs, |w| and
// sign(w)·x, would take an instruction for each half.

#include <immintrin.h>

#include "isa/kernel.h"

namespace treefill {
namespace {

// As a type of its own: GCC keeps arrays of __m256i in memory between two rounds of the loop.
using Int32x8 = int32_t __attribute__((vector_size(32)));

struct Acc {
  __m256 low, high;  // outputs 0–7 and 8–15 of a block
};

inline Int32x8 add_quad(Int32x8 dot, __m256i x, __m256i w) {
  return reinterpret_cast<Int32x8>(_mm256_dpbusd_avx_epi32(reinterpret_cast<__m256i>(dot), x, w));
}

inline __m256 as_floats(Int32x8 integers) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(integers)); }

// What the shift by 128 has added to eight outputs' dot products, negated.
inline Int32x8 offset(const int16_t* sum) {
  const __m256i sums = _mm256_cvtepi16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(sum)));
  return reinterpret_cast<Int32x8>(_mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sums, 7)));
}

// kRows rows at once, so that a weight is loaded once for all of them.
template <int kRows>
inline void block_rows(const LinearPiece& p, int64_t block, int64_t row) {
  const int8_t* q = p.q + block * p.n_groups * kBlockBytes;
  const uint16_t* scale = p.scale + block * p.n_groups * kBlock;
  const int16_t* sum = p.sum + block * p.n_groups * kBlock;
  const __m256i sign_bits = _mm256_set1_epi8(-128);
  const int8_t* x[kRows];
  Acc acc[kRows];
  for (int r = 0; r < kRows; ++r) {
    x[r] = p.x + (row + r) * p.n_groups * kGroup;
    acc[r] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
  }
  for (int64_t group = 0; group < p.n_groups; ++group, q += kBlockBytes, scale += kBlock, sum += kBlock) {
    Int32x8 low[kRows], high[kRows];
    for (int r = 0; r < kRows; ++r) {
      low[r] = offset(sum);
      high[r] = offset(sum + 8);
    }
    for (int quad = 0; quad < kGroup / 4; ++quad) {
      const __m256i w_low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + quad * 64));
      const __m256i w_high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + quad * 64 + 32));
      for (int r = 0; r < kRows; ++r) {
        int32_t four;
        __builtin_memcpy(&four, x[r] + group * kGroup + quad * 4, sizeof four);
        const __m256i shifted = _mm256_xor_si256(_mm256_set1_epi32(four), sign_bits);
        low[r] = add_quad(low[r], shifted, w_low);
        high[r] = add_quad(high[r], shifted, w_high);
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

void linear_avxvnni(const LinearPiece& p) {
  for (int64_t block = p.block_begin; block < p.block_end; ++block) {
    int64_t row = 0;
    for (; row + 4 <= p.n_rows; row += 4) block_rows<4>(p, block, row);
    for (; row + 2 <= p.n_rows; row += 2) block_rows<2>(p, block, row);
    for (; row < p.n_rows; ++row) block_rows<1>(p, block, row);
  }
}

}  // namespace treefill
