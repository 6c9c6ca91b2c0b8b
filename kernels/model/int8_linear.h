// y = x W^T + b with int8 weights and activations, both in groups of 64 along the input.

#ifndef TREEFILL_MODEL_INT8_LINEAR_H_
#define TREEFILL_MODEL_INT8_LINEAR_H_

#include <cstdint>
#include <initializer_list>

#include "isa/kernel.h"
#include "model/work_pool.h"

namespace treefill {

// A matrix as it lies in the weight file; it owns nothing. Shapes as in LinearPiece.
struct Int8Matrix {
  const int8_t* q;
  const uint16_t* scale;
  const int16_t* sum;
  const float* bias;  // or null
  int64_t n_inputs;
  int64_t n_outputs;

  int64_t n_groups() const { return (n_inputs + kGroup - 1) / kGroup; }
  int64_t n_blocks() const { return (n_outputs + kBlock - 1) / kBlock; }
};

// x [n_rows, n_inputs] float32 → y [n_rows, n_outputs] float32, on the instruction set in use.
// A row's result does not depend on the other rows, on the thread count or on the instruction set, to the bit.
void int8_linear(const Int8Matrix& matrix, const float* x, int64_t n_rows, float* y, WorkPool& pool);

// A matrix and where its product goes, [n_rows, n_outputs].
struct Product {
  const Int8Matrix* matrix;
  float* y;
};

// Several products of the same x at once: it is quantised once, and nobody waits between them.
void int8_linears(std::initializer_list<Product> products, const float* x, int64_t n_rows, WorkPool& pool);

}  // namespace treefill

#endif  // TREEFILL_MODEL_INT8_LINEAR_H_
