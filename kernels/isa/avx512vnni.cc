// x86-64 with AVX-512 and VNNI (Cascade Lake and Zen 4 onward).
//
// vpdpbusd multiplies unsigned by signed bytes: the activations are shifted up by 128 (an exclusive or with the sign
// bit), and 128 times the group's weight sum is taken off, which is why the sums are stored beside the weights.

#include <immintrin.h>

#include "isa/kernel.h"

namespace treefill {
namespace {

template <int kRows>
inline void block_rows(const LinearPiece& p, int64_t block, int64_t row) {
  const int8_t* q = p.q + block * p.n_groups * kBlockBytes;
  const uint16_t* scale = p.scale + block * p.n_groups * kBlock;
  const int16_t* sum = p.sum + block * p.n_groups * kBlock;
  __m512 acc[kRows];
  for (int r = 0; r < kRows; ++r) acc[r] = _mm512_setzero_ps();
  for (int64_t group = 0; group < p.n_groups; ++group, q += kBlockBytes, scale += kBlock, sum += kBlock) {
    const __m512i sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(sum)));
    const __m512i offset = _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sums, 7));
    __m512i dot[kRows];
    for (int r = 0; r < kRows; ++r) dot[r] = offset;
    for (int quad = 0; quad < kGroup / 4; ++quad) {
      const __m512i w = _mm512_loadu_si512(q + quad * 64);
      for (int r = 0; r < kRows; ++r) {
        uint32_t four;
        __builtin_memcpy(&four, p.x + ((row + r) * p.n_groups + group) * kGroup + quad * 4, sizeof four);
        dot[r] = _mm512_dpbusd_epi32(dot[r], _mm512_set1_epi32(static_cast<int32_t>(four ^ 0x80808080u)), w);
      }
    }
    const __m512 w_scale = _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(scale)));
    for (int r = 0; r < kRows; ++r) {
      const __m512 both = _mm512_mul_ps(w_scale, _mm512_set1_ps(p.x_scale[(row + r) * p.n_groups + group]));
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot[r]), both, acc[r]);
    }
  }
  const int64_t n = block * kBlock;
  const int64_t n_left = p.n_outputs - n;
  const __mmask16 mask = n_left >= kBlock ? __mmask16{0xffff} : static_cast<__mmask16>((1u << n_left) - 1);
  for (int r = 0; r < kRows; ++r) {
    const __m512 out = p.bias ? _mm512_add_ps(acc[r], _mm512_maskz_loadu_ps(mask, p.bias + n)) : acc[r];
    float* y = p.y + (row + r) * p.n_outputs + n;
    _mm512_mask_storeu_ps(y, mask, p.add ? _mm512_add_ps(_mm512_maskz_loadu_ps(mask, y), out) : out);
  }
}

}  // namespace

void linear_avx512vnni(const LinearPiece& p) {
  for (int64_t block = p.block_begin; block < p.block_end; ++block) {
    int64_t row = 0;
    for (; row + 8 <= p.n_rows; row += 8) block_rows<8>(p, block, row);
    for (; row + 2 <= p.n_rows; row += 2) block_rows<2>(p, block, row);
    for (; row < p.n_rows; ++row) block_rows<1>(p, block, row);
  }
}

}  // namespace treefill
