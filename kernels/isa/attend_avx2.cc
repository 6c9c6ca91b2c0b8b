// Attention and SwiGLU with AVX2 and FMA: eight lanes at once.

#include <immintrin.h>

#include "isa/exp_avx2.h"
#include "isa/kernel.h"

namespace treefill {
namespace {

inline float sum_lanes(__m256 lanes) {
  const __m128 halves = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));  // i + (i + 4)
  const __m128 pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));                            // even, odd
  return _mm_cvtss_f32(pairs) + _mm_cvtss_f32(_mm_shuffle_ps(pairs, pairs, 1));
}

// The last up to seven of n numbers, the others as `rest` has them.
inline __m256 load_tail(const float* x, int64_t n, float rest) {
  float lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = i < n ? x[i] : rest;
  return _mm256_loadu_ps(lanes);
}

inline void store_tail(float* x, int64_t n, __m256 value) {
  float lanes[kLanes];
  _mm256_storeu_ps(lanes, value);
  for (int64_t i = 0; i < n; ++i) x[i] = lanes[i];
}

// kRows × kVectors sums at once: each load of b serves all rows, each of a all vectors. Twelve sums fill the registers;
// GCC keeps them there only where their loops are unrolled from the start and the bounds are local.
template <int kRows, int kVectors>
inline void weigh_tile(const WeighPiece& p, int64_t row, int64_t vector) {
  const float* a = p.a + row * p.a_stride;
  const float* b = p.b + vector * p.b_vector;
  float* y = p.y + row * p.y_stride + vector * kLanes;
  const int64_t a_stride = p.a_stride, b_term = p.b_term, b_vector = p.b_vector, y_stride = p.y_stride;
  const int64_t n_terms = p.n_terms;
  __m256 acc[kRows * kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i)
    acc[i] = p.add ? _mm256_loadu_ps(y + i / kVectors * y_stride + i % kVectors * kLanes) : _mm256_setzero_ps();
  for (int64_t term = 0; term < n_terms; ++term) {
    __m256 columns[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) columns[v] = _mm256_loadu_ps(b + term * b_term + v * b_vector);
#pragma GCC unroll 16
    for (int i = 0; i < kRows * kVectors; ++i)
      acc[i] = _mm256_fmadd_ps(_mm256_broadcast_ss(a + i / kVectors * a_stride + term), columns[i % kVectors], acc[i]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kVectors; ++i)
    _mm256_storeu_ps(y + i / kVectors * y_stride + i % kVectors * kLanes, acc[i]);
}

template <int kRows>
inline void weigh_rows(const WeighPiece& p, int64_t row) {
  int64_t vector = 0;
  for (; vector + 4 <= p.n_vectors; vector += 4) weigh_tile<kRows, 4>(p, row, vector);
  for (; vector < p.n_vectors; ++vector) weigh_tile<kRows, 1>(p, row, vector);
}

}  // namespace

void weigh_avx2(const WeighPiece& p) {
  int64_t row = 0;
  for (; row + 3 <= p.n_rows; row += 3) weigh_rows<3>(p, row);
  for (; row + 2 <= p.n_rows; row += 2) weigh_rows<2>(p, row);
  for (; row < p.n_rows; ++row) weigh_rows<1>(p, row);
}

float softmax_avx2(float* scores, int64_t n) {
  float largest = scores[0];
  int64_t i = 0;
  if (n >= kLanes) {
    // The order matters: max_ps gives its second operand, `most`, where one is not a number, as the scalar kernel does.
    __m256 most = _mm256_set1_ps(largest);
    for (; i + kLanes <= n; i += kLanes) most = _mm256_max_ps(_mm256_loadu_ps(scores + i), most);
    float lanes[kLanes];
    _mm256_storeu_ps(lanes, most);
    for (float lane : lanes) largest = lane > largest ? lane : largest;
  }
  for (; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;

  const __m256 top = _mm256_set1_ps(largest);
  __m256 totals = _mm256_setzero_ps();
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const __m256 p = exponential(_mm256_sub_ps(_mm256_loadu_ps(scores + i), top));
    _mm256_storeu_ps(scores + i, p);
    totals = _mm256_add_ps(totals, p);
  }
  if (i < n) {
    const __m256 p = exponential(_mm256_sub_ps(load_tail(scores + i, n - i, largest), top));
    store_tail(scores + i, n - i, p);
    float lanes[kLanes];
    _mm256_storeu_ps(lanes, totals);
    for (int64_t lane = 0; lane < n - i; ++lane) lanes[lane] += scores[i + lane];
    totals = _mm256_loadu_ps(lanes);
  }
  return sum_lanes(totals);
}

void swiglu_avx2(float* gate, const float* up, int64_t n) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 sign = _mm256_set1_ps(-0.0f);
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256 g = _mm256_loadu_ps(gate + i);
    const __m256 swish = _mm256_div_ps(g, _mm256_add_ps(one, exponential(_mm256_xor_ps(g, sign))));
    _mm256_storeu_ps(gate + i, _mm256_mul_ps(swish, _mm256_loadu_ps(up + i)));
  }
  if (i < n) {
    const __m256 g = load_tail(gate + i, n - i, 0.0f);
    const __m256 swish = _mm256_div_ps(g, _mm256_add_ps(one, exponential(_mm256_xor_ps(g, sign))));
    store_tail(gate + i, n - i, _mm256_mul_ps(swish, load_tail(up + i, n - i, 0.0f)));
  }
}

}  // namespace treefill
