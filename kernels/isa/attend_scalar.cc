// Attention and SwiGLU on any machine, in the order that every other file here must reproduce to the bit.

#include "isa/exp.h"
#include "isa/kernel.h"

namespace treefill {
namespace {

float exponential(float x) {
  x = x < kExpMin ? kExpMin : x;
  x = x > kExpMax ? kExpMax : x;
  const float n = __builtin_nearbyintf(x * kLog2E);
  float r = __builtin_fmaf(n, -kLn2High, x);
  r = __builtin_fmaf(n, -kLn2Low, r);
  float y = kExp0;
  y = __builtin_fmaf(y, r, kExp1);
  y = __builtin_fmaf(y, r, kExp2);
  y = __builtin_fmaf(y, r, kExp3);
  y = __builtin_fmaf(y, r, kExp4);
  y = __builtin_fmaf(y, r, kExp5);
  y = __builtin_fmaf(y, r * r, r) + 1.0f;
  const int32_t bits = (static_cast<int32_t>(n) + 127) << 23;
  float power;
  __builtin_memcpy(&power, &bits, sizeof power);
  return y * power;
}

float sum_lanes(const float* lanes) {
  const float even = (lanes[0] + lanes[4]) + (lanes[2] + lanes[6]);
  const float odd = (lanes[1] + lanes[5]) + (lanes[3] + lanes[7]);
  return even + odd;
}

float dot(const float* a, const float* b, int64_t n) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < n; ++i) lanes[i % kLanes] = __builtin_fmaf(a[i], b[i], lanes[i % kLanes]);
  return sum_lanes(lanes);
}

}  // namespace

void attend_scalar(const AttendPiece& p) {
  float largest = dot(p.query, p.keys, p.head_dim);
  for (int64_t i = 0; i < p.n_keys; ++i) {
    p.scores[i] = dot(p.query, p.keys + i * p.head_dim, p.head_dim);
    largest = p.scores[i] > largest ? p.scores[i] : largest;
  }
  float totals[kLanes] = {};
  for (int64_t i = 0; i < p.n_keys; ++i) {
    p.scores[i] = exponential(p.scores[i] - largest);
    totals[i % kLanes] += p.scores[i];
  }
  const float total = sum_lanes(totals);
  for (int64_t d = 0; d < p.head_dim; ++d) {
    float sum = 0.0f;
    for (int64_t i = 0; i < p.n_keys; ++i) sum = __builtin_fmaf(p.scores[i], p.values[i * p.head_dim + d], sum);
    p.out[d] = sum / total;
  }
}

void swiglu_scalar(float* gate, const float* up, int64_t n) {
  for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
}

}  // namespace treefill
