// Any machine: one weight at a time, in the order that every other file here must reproduce to the bit.

#include "isa/kernel.h"

namespace treefill {
namespace {

// The float16 numbers that a scale can be: finite and not negative.
float half_to_float(uint16_t half) {
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) return static_cast<float>(mantissa) * (1.0f / 16777216.0f);  // subnormal: mantissa * 2^-24
  const uint32_t bits = ((exponent + 112) << 23) | (mantissa << 13);
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

int32_t dot_group(const int8_t* block, int64_t output, const int8_t* x) {
  int32_t dot = 0;
  for (int64_t input = 0; input < kGroup; ++input)
    dot += int32_t{block[(input / 4) * kBlock * 4 + output * 4 + input % 4]} * x[input];
  return dot;
}

}  // namespace

void linear_scalar(const LinearPiece& p) {
  for (int64_t block = p.block_begin; block < p.block_end; ++block) {
    const int8_t* q = p.q + block * p.n_groups * kBlockBytes;
    const uint16_t* scale = p.scale + block * p.n_groups * kBlock;
    for (int64_t row = 0; row < p.n_rows; ++row) {
      const int8_t* x = p.x + row * p.n_groups * kGroup;
      const float* x_scale = p.x_scale + row * p.n_groups;
      for (int64_t output = 0; output < kBlock && block * kBlock + output < p.n_outputs; ++output) {
        float acc = 0.0f;
        for (int64_t group = 0; group < p.n_groups; ++group) {
          const int32_t dot = dot_group(q + group * kBlockBytes, output, x + group * kGroup);
          const float both = half_to_float(scale[group * kBlock + output]) * x_scale[group];
          acc = __builtin_fmaf(static_cast<float>(dot), both, acc);
        }
        const int64_t n = block * kBlock + output;
        const float out = p.bias ? acc + p.bias[n] : acc;
        float& y = p.y[row * p.n_outputs + n];
        y = p.add ? y + out : out;
      }
    }
  }
}

void quantise_scalar(const float* x, int64_t n_inputs, int8_t* q, float* scale) {
  for (int64_t begin = 0; begin < n_inputs; begin += kGroup) {
    const int64_t n = n_inputs - begin < kGroup ? n_inputs - begin : kGroup;
    float absmax = 0.0f;
    for (int64_t i = 0; i < n; ++i) {
      const float magnitude = __builtin_fabsf(x[begin + i]);
      absmax = magnitude > absmax ? magnitude : absmax;
    }
    const float inverse = absmax > 0.0f ? 127.0f / absmax : 0.0f;
    scale[begin / kGroup] = absmax / 127.0f;
    for (int64_t i = 0; i < kGroup; ++i) {
      // Under the default rounding mode nearbyint rounds halves to even, as the vector instructions do.
      const float rounded = i < n ? __builtin_nearbyintf(x[begin + i] * inverse) : 0.0f;
      const bool in_range = rounded >= -127.0f && rounded <= 127.0f;  // false for what is not a number
      q[begin + i] = in_range ? static_cast<int8_t>(rounded) : int8_t{0};
    }
  }
}

}  // namespace treefill
