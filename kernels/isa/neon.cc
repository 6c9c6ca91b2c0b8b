// AArch64 with the dot product instructions (Armv8.2 onward: Apple silicon, Neoverse, Cortex-A76).
//
// sdot adds four signed products to an int32, sixteen of them an instruction, exactly; and it takes its activations
// from any quarter of a register, so one load of 16 activations serves four quads of inputs.

#include <arm_neon.h>

#include "isa/kernel.h"

namespace treefill {
namespace {

constexpr int kQuarters = 4;  // a block's outputs, four to a register

// float16 to float32; subnormals too are converted exactly.
inline float32x4_t four_scales(const uint16_t* scale) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(scale))); }

// A quad of inputs: of its four, quarter after quarter of the outputs.
template <int kRows, int kQuad>
inline void add_quad(int32x4_t (&dot)[kRows][kQuarters], const int8_t* q, const int8x16_t (&x)[kRows]) {
#pragma GCC unroll 4
  for (int i = 0; i < kQuarters; ++i) {
    const int8x16_t w = vld1q_s8(q + kQuad * 64 + i * 16);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) dot[r][i] = vdotq_laneq_s32(dot[r][i], w, x[r], kQuad);
  }
}

// kRows rows at once, so that a weight is loaded once for all of them.
template <int kRows>
inline void block_rows(const LinearPiece& p, int64_t block, int64_t row) {
  const int8_t* q = p.q + block * p.n_groups * kBlockBytes;
  const uint16_t* scale = p.scale + block * p.n_groups * kBlock;
  float32x4_t acc[kRows][kQuarters];
  for (int r = 0; r < kRows; ++r)
    for (int i = 0; i < kQuarters; ++i) acc[r][i] = vdupq_n_f32(0.0f);
  for (int64_t group = 0; group < p.n_groups; ++group, q += kBlockBytes, scale += kBlock) {
    int32x4_t dot[kRows][kQuarters];
    for (int r = 0; r < kRows; ++r)
      for (int i = 0; i < kQuarters; ++i) dot[r][i] = vdupq_n_s32(0);
    for (int64_t input = 0; input < kGroup; input += 16) {
      int8x16_t x[kRows];
      for (int r = 0; r < kRows; ++r) x[r] = vld1q_s8(p.x + ((row + r) * p.n_groups + group) * kGroup + input);
      const int8_t* quads = q + input * kBlock;
      add_quad<kRows, 0>(dot, quads, x);
      add_quad<kRows, 1>(dot, quads, x);
      add_quad<kRows, 2>(dot, quads, x);
      add_quad<kRows, 3>(dot, quads, x);
    }
    for (int i = 0; i < kQuarters; ++i) {
      const float32x4_t w_scale = four_scales(scale + 4 * i);
      for (int r = 0; r < kRows; ++r) {
        const float32x4_t both = vmulq_n_f32(w_scale, p.x_scale[(row + r) * p.n_groups + group]);
        acc[r][i] = vfmaq_f32(acc[r][i], vcvtq_f32_s32(dot[r][i]), both);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float out[kBlock];
    for (int i = 0; i < kQuarters; ++i) vst1q_f32(out + 4 * i, acc[r][i]);
    float* y = p.y + (row + r) * p.n_outputs;
    for (int64_t n = block * kBlock; n < (block + 1) * kBlock && n < p.n_outputs; ++n) {
      const float one = p.bias ? out[n - block * kBlock] + p.bias[n] : out[n - block * kBlock];
      y[n] = p.add ? y[n] + one : one;
    }
  }
}

// To the nearest, halves to even; zero where the scalar kernel has it: beyond ±127, and for what is not a number.
inline int32x4_t rounded(float32x4_t x, float inverse) {
  const float32x4_t scaled = vmulq_n_f32(x, inverse);
  const uint32x4_t in_range = vcaltq_f32(scaled, vdupq_n_f32(127.5f));
  return vandq_s32(vcvtnq_s32_f32(scaled), vreinterpretq_s32_u32(in_range));
}

inline int16x8_t narrowed(int32x4_t low, int32x4_t high) { return vcombine_s16(vmovn_s32(low), vmovn_s32(high)); }

}  // namespace

void linear_neon(const LinearPiece& p) {
  for (int64_t block = p.block_begin; block < p.block_end; ++block) {
    int64_t row = 0;
    for (; row + 4 <= p.n_rows; row += 4) block_rows<4>(p, block, row);
    for (; row + 2 <= p.n_rows; row += 2) block_rows<2>(p, block, row);
    for (; row < p.n_rows; ++row) block_rows<1>(p, block, row);
  }
}

void quantise_neon(const float* x, int64_t n_inputs, int8_t* q, float* scale) {
  const int64_t whole = n_inputs / kGroup * kGroup;
  for (int64_t begin = 0; begin < whole; begin += kGroup) {
    float32x4_t v[16];
    float32x4_t largest = vdupq_n_f32(0.0f);
    for (int i = 0; i < 16; ++i) {
      v[i] = vld1q_f32(x + begin + 4 * i);
      largest = vmaxnmq_f32(largest, vabsq_f32(v[i]));  // the other one, where one is not a number
    }
    const float absmax = vmaxnmvq_f32(largest);
    scale[begin / kGroup] = absmax / 127.0f;
    const float inverse = absmax > 0.0f ? 127.0f / absmax : 0.0f;
    for (int i = 0; i < 16; i += 4) {
      const int16x8_t low = narrowed(rounded(v[i], inverse), rounded(v[i + 1], inverse));
      const int16x8_t high = narrowed(rounded(v[i + 2], inverse), rounded(v[i + 3], inverse));
      vst1q_s8(q + begin + 4 * i, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
    }
  }
  if (whole < n_inputs) quantise_scalar(x + whole, n_inputs - whole, q + whole, scale + whole / kGroup);
}

}  // namespace treefill
