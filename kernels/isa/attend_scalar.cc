// Attention and SwiGLU on any machine, in the order that every other file here must reproduce to the bit.

#include "isa/exp_scalar.h"
#include "isa/kernel.h"

namespace treefill {
namespace {

float sum_lanes(const float* lanes) {
  const float even = (lanes[0] + lanes[4]) + (lanes[2] + lanes[6]);
  const float odd = (lanes[1] + lanes[5]) + (lanes[3] + lanes[7]);
  return even + odd;
}

}  // namespace

void weigh_scalar(const WeighPiece& p) {
  for (int64_t row = 0; row < p.n_rows; ++row) {
    for (int64_t column = 0; column < p.n_vectors * kLanes; ++column) {
      const float* b = p.b + column / kLanes * p.b_vector + column % kLanes;
      float& y = p.y[row * p.y_stride + column];
      float acc = p.add ? y : 0.0f;
      for (int64_t term = 0; term < p.n_terms; ++term)
        acc = __builtin_fmaf(p.a[row * p.a_stride + term], b[term * p.b_term], acc);
      y = acc;
    }
  }
}

float softmax_scalar(float* scores, int64_t n) {
  float largest = scores[0];
  for (int64_t i = 1; i < n; ++i) largest = scores[i] > largest ? scores[i] : largest;
  float totals[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) {
    scores[i] = exponential(scores[i] - largest);
    totals[i % kLanes] += scores[i];
  }
  return sum_lanes(totals);
}

void swiglu_scalar(float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
}

}  // namespace treefill
