// The exponential function of eight numbers, with AVX2 and FMA (isa/exp.h). A copy in each file, as exp_scalar.h says.

#ifndef TREEFILL_ISA_EXP_AVX2_H_
#define TREEFILL_ISA_EXP_AVX2_H_

#include <immintrin.h>

#include "isa/exp.h"

namespace treefill {
namespace {

inline __m256 exponential(__m256 x) {
  x = _mm256_max_ps(x, _mm256_set1_ps(kExpMin));  // the bound, where x is not a number
  x = _mm256_min_ps(x, _mm256_set1_ps(kExpMax));
  const __m256 n =
      _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(kLog2E)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2High), x);
  r = _mm256_fmadd_ps(n, _mm256_set1_ps(-kLn2Low), r);
  __m256 y = _mm256_set1_ps(kExp0);
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(kExp1));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(kExp2));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(kExp3));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(kExp4));
  y = _mm256_fmadd_ps(y, r, _mm256_set1_ps(kExp5));
  y = _mm256_add_ps(_mm256_fmadd_ps(y, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  const __m256i bits = _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(y, _mm256_castsi256_ps(bits));
}

}  // namespace
}  // namespace treefill

#endif  // TREEFILL_ISA_EXP_AVX2_H_
