// Attention and SwiGLU with AVX2 and FMA: eight lanes at once.

#include <immintrin.h>

#include "isa/exp.h"
#include "isa/kernel.h"

namespace treefill {
namespace {

inline __m256 exponential(__m256 x) {
  x = _mm256_max_ps(_mm256_set1_ps(kExpMin), x);
  x = _mm256_min_ps(_mm256_set1_ps(kExpMax), x);
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

inline float sum_lanes(__m256 lanes) {
  const __m128 halves = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));  // i + (i + 4)
  const __m128 pairs = _mm_add_ps(halves, _mm_movehl_ps(halves, halves));                            // even, odd
  return _mm_cvtss_f32(pairs) + _mm_cvtss_f32(_mm_shuffle_ps(pairs, pairs, 1));
}

inline float dot(const float* a, const float* b, int64_t n) {
  __m256 sum = _mm256_setzero_ps();
  for (int64_t i = 0; i < n; i += kLanes) sum = _mm256_fmadd_ps(_mm256_loadu_ps(a + i), _mm256_loadu_ps(b + i), sum);
  return sum_lanes(sum);
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

// Scores become probabilities; returns what they add up to.
inline float softmax(float* scores, int64_t n, float largest) {
  const __m256 top = _mm256_set1_ps(largest);
  __m256 totals = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
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

// kWide vectors of a head's output at once, so that a probability is loaded once for all of them.
template <int kWide>
inline void weigh(const AttendPiece& p, int64_t first, float total) {
  __m256 sum[kWide];
  for (int w = 0; w < kWide; ++w) sum[w] = _mm256_setzero_ps();
  for (int64_t i = 0; i < p.n_keys; ++i) {
    const __m256 weight = _mm256_set1_ps(p.scores[i]);
    const float* value = p.values + i * p.head_dim + first;
    for (int w = 0; w < kWide; ++w) sum[w] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(value + w * kLanes), sum[w]);
  }
  for (int w = 0; w < kWide; ++w)
    _mm256_storeu_ps(p.out + first + w * kLanes, _mm256_div_ps(sum[w], _mm256_set1_ps(total)));
}

}  // namespace

void attend_avx2(const AttendPiece& p) {
  float largest = dot(p.query, p.keys, p.head_dim);
  for (int64_t i = 0; i < p.n_keys; ++i) {
    p.scores[i] = dot(p.query, p.keys + i * p.head_dim, p.head_dim);
    largest = p.scores[i] > largest ? p.scores[i] : largest;
  }
  const float total = softmax(p.scores, p.n_keys, largest);
  int64_t d = 0;
  for (; d + 8 * kLanes <= p.head_dim; d += 8 * kLanes) weigh<8>(p, d, total);
  for (; d < p.head_dim; d += kLanes) weigh<1>(p, d, total);
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
