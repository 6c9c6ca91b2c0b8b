// Attention and SwiGLU on AArch64: eight lanes, in two registers of four.

#include <arm_neon.h>

#include "isa/exp_neon.h"
#include "isa/kernel.h"

namespace treefill {
namespace {

constexpr int kHalf = 4;  // lanes of a register

inline float sum_lanes(float32x4_t low, float32x4_t high) {
  const float32x4_t halves = vaddq_f32(low, high);                                  // i + (i + 4)
  const float32x2_t pairs = vadd_f32(vget_low_f32(halves), vget_high_f32(halves));  // even, odd
  return vget_lane_f32(pairs, 0) + vget_lane_f32(pairs, 1);
}

inline float32x4_t swish(float32x4_t gate) {
  return vdivq_f32(gate, vaddq_f32(vdupq_n_f32(1.0f), exponential(vnegq_f32(gate))));
}

// The last up to seven of n numbers, the others as `rest` has them.
inline void load_tail(const float* x, int64_t n, float rest, float* lanes) {
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = i < n ? x[i] : rest;
}

// kRows × kVectors sums at once: each load of b serves all rows, each of a all vectors. Sixteen registers of sums are
// enough for two fused multiply-adds a cycle, and leave room for b.
template <int kRows, int kVectors>
inline void weigh_tile(const WeighPiece& p, int64_t row, int64_t vector) {
  constexpr int kHalves = 2 * kVectors;
  const float* a = p.a + row * p.a_stride;
  const float* b = p.b + vector * p.b_vector;
  float* y = p.y + row * p.y_stride + vector * kLanes;
  const int64_t a_stride = p.a_stride, b_term = p.b_term, b_vector = p.b_vector, y_stride = p.y_stride;
  const int64_t n_terms = p.n_terms;
  float32x4_t acc[kRows * kHalves];
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kHalves; ++i)
    acc[i] = p.add ? vld1q_f32(y + i / kHalves * y_stride + i % kHalves * kHalf) : vdupq_n_f32(0.0f);
  for (int64_t term = 0; term < n_terms; ++term) {
    float32x4_t columns[kHalves];
#pragma GCC unroll 16
    for (int i = 0; i < kHalves; ++i) columns[i] = vld1q_f32(b + term * b_term + i / 2 * b_vector + i % 2 * kHalf);
#pragma GCC unroll 16
    for (int i = 0; i < kRows * kHalves; ++i)
      acc[i] = vfmaq_n_f32(acc[i], columns[i % kHalves], a[i / kHalves * a_stride + term]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows * kHalves; ++i) vst1q_f32(y + i / kHalves * y_stride + i % kHalves * kHalf, acc[i]);
}

template <int kRows>
inline void weigh_rows(const WeighPiece& p, int64_t row) {
  int64_t vector = 0;
  for (; vector + 2 <= p.n_vectors; vector += 2) weigh_tile<kRows, 2>(p, row, vector);
  for (; vector < p.n_vectors; ++vector) weigh_tile<kRows, 1>(p, row, vector);
}

}  // namespace

void weigh_neon(const WeighPiece& p) {
  int64_t row = 0;
  for (; row + 4 <= p.n_rows; row += 4) weigh_rows<4>(p, row);
  for (; row + 3 <= p.n_rows; row += 3) weigh_rows<3>(p, row);
  for (; row + 2 <= p.n_rows; row += 2) weigh_rows<2>(p, row);
  for (; row < p.n_rows; ++row) weigh_rows<1>(p, row);
}

float softmax_neon(float* scores, int64_t n) {
  float32x4_t most = vdupq_n_f32(scores[0]);
  int64_t i = 0;
  for (; i + kHalf <= n; i += kHalf) {
    const float32x4_t x = vld1q_f32(scores + i);
    most = vbslq_f32(vcgtq_f32(x, most), x, most);  // keeps `most` where x is not a number, as the scalar kernel does
  }
  float lanes[kLanes];
  vst1q_f32(lanes, most);
  float largest = lanes[0];
  for (int lane = 1; lane < kHalf; ++lane) largest = lanes[lane] > largest ? lanes[lane] : largest;
  for (; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;

  const float32x4_t top = vdupq_n_f32(largest);
  float32x4_t low = vdupq_n_f32(0.0f), high = low;
  for (i = 0; i + kLanes <= n; i += kLanes) {
    const float32x4_t p_low = exponential(vsubq_f32(vld1q_f32(scores + i), top));
    const float32x4_t p_high = exponential(vsubq_f32(vld1q_f32(scores + i + kHalf), top));
    vst1q_f32(scores + i, p_low);
    vst1q_f32(scores + i + kHalf, p_high);
    low = vaddq_f32(low, p_low);
    high = vaddq_f32(high, p_high);
  }
  if (i < n) {
    load_tail(scores + i, n - i, largest, lanes);
    float tail[kLanes];
    vst1q_f32(tail, exponential(vsubq_f32(vld1q_f32(lanes), top)));
    vst1q_f32(tail + kHalf, exponential(vsubq_f32(vld1q_f32(lanes + kHalf), top)));
    vst1q_f32(lanes, low);
    vst1q_f32(lanes + kHalf, high);
    for (int64_t lane = 0; lane < n - i; ++lane) {
      scores[i + lane] = tail[lane];
      lanes[lane] += tail[lane];
    }
    low = vld1q_f32(lanes);
    high = vld1q_f32(lanes + kHalf);
  }
  return sum_lanes(low, high);
}

void swiglu_neon(float* gate, const float* up, int64_t n) {
  int64_t i = 0;
  for (; i + kHalf <= n; i += kHalf) vst1q_f32(gate + i, vmulq_f32(swish(vld1q_f32(gate + i)), vld1q_f32(up + i)));
  if (i < n) {
    float gates[kLanes], ups[kLanes];
    load_tail(gate + i, n - i, 0.0f, gates);
    load_tail(up + i, n - i, 0.0f, ups);
    vst1q_f32(gates, vmulq_f32(swish(vld1q_f32(gates)), vld1q_f32(ups)));
    for (int64_t lane = 0; lane < n - i; ++lane) gate[i + lane] = gates[lane];
  }
}

}  // namespace treefill
