// The border between the dispatcher and the instruction sets: plain structs and function pointers.
//
// Files in isa/ are compiled with the flags of one instruction set each. They include this header and
// the compiler's intrinsics and nothing else: an inline library function compiled there could be the copy
// that the linker keeps for the whole module, and then crash on a machine without those instructions.

#ifndef TREEFILL_ISA_KERNEL_H_
#define TREEFILL_ISA_KERNEL_H_

#include <stdint.h>

namespace treefill {

// Inputs are quantised in groups of 64, outputs are stored in blocks of 16.
constexpr int64_t kGroup = 64;
constexpr int64_t kBlock = 16;
constexpr int64_t kBlockBytes = kGroup * kBlock;

// Rows [0, n_rows) times blocks [block_begin, block_end) of one int8 matrix.
struct LinearPiece {
  const int8_t* q;        // [N/16][K/64][16][16][4]: blocks, groups, input quads, outputs, inputs
  const uint16_t* scale;  // [N/16][K/64][16], float16 bits
  const int16_t* sum;     // [N/16][K/64][16], the sum of a group's 64 weights
  const float* bias;      // [n_outputs], or null
  const int8_t* x;        // [n_rows][n_groups * 64]
  const float* x_scale;   // [n_rows][n_groups]
  float* y;               // [n_rows][n_outputs]
  bool add;               // to what y holds, instead of overwriting it
  int64_t n_groups;
  int64_t n_rows;
  int64_t n_outputs;  // the true count; the last block may be partly padding
  int64_t block_begin;
  int64_t block_end;
};

// y = x W^T + bias for one piece. The arithmetic is the same in every instruction set, to the bit:
//   acc = 0;  for each group in order:  acc = fma(float(dot), w_scale * x_scale, acc);  y = acc + bias, or y += that
// where dot is the exact int32 product of a group's 64 weights and activations.
using LinearFn = void (*)(const LinearPiece&);

// Quantises one row of n_inputs floats: scale = absmax / 127 a group, q = round-half-even(x * (127 / absmax)).
// The last group is padded with zeros; q has n_groups * 64 entries, all within [-127, 127].
using QuantiseFn = void (*)(const float* x, int64_t n_inputs, int8_t* q, float* scale);

// Lanes that sums run in: element i of a sum is added to lane i % 8, and the lanes are added up as `sum_lanes` does.
constexpr int64_t kLanes = 8;

// A few rows times a few vectors of kLanes columns, in float32: what attention consists of, both times.
struct WeighPiece {
  const float* a;  // [n_rows][n_terms], a_stride from row to row
  int64_t a_stride;
  const float* b;    // element (term, column) at term * b_term + (column / kLanes) * b_vector + column % kLanes
  int64_t b_term;    // floats from a term to the next
  int64_t b_vector;  // floats from kLanes columns to the next
  float* y;          // [n_rows][n_vectors * kLanes], y_stride from row to row
  int64_t y_stride;
  int64_t n_rows;
  int64_t n_terms;
  int64_t n_vectors;
  bool add;  // go on from what y holds, instead of from zero
};

// y = a b. The arithmetic is the same in every instruction set, to the bit: acc = fma(a, b, acc) in order of the terms.
using WeighFn = void (*)(const WeighPiece&);

// scores[i] = exp(scores[i] - max), in place; returns their sum, in lanes. n is at least 1. The same to the bit in
// every instruction set.
using SoftmaxFn = float (*)(float* scores, int64_t n);

// gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i], the same to the bit in every instruction set.
using SwigluFn = void (*)(float* gate, const float* up, int64_t n);

// A word of a token mask has the bits of 32 tokens, the first in the lowest; a bit that is set allows its token.
constexpr int64_t kMaskTokens = 32;

// Logits and the mask over them, whole words of it.
struct MaskedPiece {
  const float* logits;   // [n_words * 32]
  const uint32_t* mask;  // [n_words]
  int64_t n_words;
};

// Where the highest allowed logit is, of equals the first; -1 where none is above minus infinity. What is not a number
// is above nothing.
using MaskedArgmaxFn = int64_t (*)(const MaskedPiece& piece);

// Writes where allowed logits above `bound` are, ascending, to `places`, which has room for all; returns how many.
using MaskedAboveFn = int64_t (*)(const MaskedPiece& piece, float bound, int32_t* places);

// The sum of exp(logit - top) of the allowed, none of which is above `top`, a finite number; what is not a number is as
// little as can be. The same to the bit in every instruction set. Of the 32 exponentials of a word, those four that are
// i in kLanes are added as (e[i] + e[i + 16]) + (e[i + 8] + e[i + 24]), 0 for what is not allowed; these go to lane i
// in double precision, word by word, and the lanes are added up as `sum_lanes` does.
using MaskedSumExpFn = double (*)(const MaskedPiece& piece, float top);

void linear_scalar(const LinearPiece& piece);
void linear_avx2(const LinearPiece& piece);
void linear_avxvnni(const LinearPiece& piece);
void linear_avx512vnni(const LinearPiece& piece);
void linear_amx(const LinearPiece& piece);
void linear_neon(const LinearPiece& piece);

void weigh_scalar(const WeighPiece& piece);
void weigh_avx2(const WeighPiece& piece);
void weigh_neon(const WeighPiece& piece);

float softmax_scalar(float* scores, int64_t n);
float softmax_avx2(float* scores, int64_t n);
float softmax_neon(float* scores, int64_t n);

void swiglu_scalar(float* gate, const float* up, int64_t n);
void swiglu_avx2(float* gate, const float* up, int64_t n);
void swiglu_neon(float* gate, const float* up, int64_t n);

void quantise_scalar(const float* x, int64_t n_inputs, int8_t* q, float* scale);
void quantise_avx2(const float* x, int64_t n_inputs, int8_t* q, float* scale);
void quantise_neon(const float* x, int64_t n_inputs, int8_t* q, float* scale);

int64_t masked_argmax_scalar(const MaskedPiece& piece);
int64_t masked_argmax_avx2(const MaskedPiece& piece);
int64_t masked_argmax_avx512(const MaskedPiece& piece);
int64_t masked_argmax_neon(const MaskedPiece& piece);

int64_t masked_above_scalar(const MaskedPiece& piece, float bound, int32_t* places);
int64_t masked_above_avx2(const MaskedPiece& piece, float bound, int32_t* places);
int64_t masked_above_avx512(const MaskedPiece& piece, float bound, int32_t* places);
int64_t masked_above_neon(const MaskedPiece& piece, float bound, int32_t* places);

double masked_sum_exp_scalar(const MaskedPiece& piece, float top);
double masked_sum_exp_avx2(const MaskedPiece& piece, float top);
double masked_sum_exp_avx512(const MaskedPiece& piece, float top);
double masked_sum_exp_neon(const MaskedPiece& piece, float top);

}  // namespace treefill

#endif  // TREEFILL_ISA_KERNEL_H_
