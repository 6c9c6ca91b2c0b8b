// Products with int8 weights and activations, both in groups of 64 along the input.
//
// A row's result does not depend on the other rows, on the thread count or on the instruction set, to the bit.

#ifndef TREEFILL_MODEL_INT8_LINEAR_H_
#define TREEFILL_MODEL_INT8_LINEAR_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

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

// Rows of activations, quantised once for all products that take them.
class Int8Rows {
 public:
  // Room for n_rows rows of n_inputs numbers; what was there is lost.
  void reshape(int64_t n_rows, int64_t n_inputs);

  void quantise_row(int64_t row, const float* x);
  // The `group`-th 64 numbers of a row (fewer in the last group).
  void quantise_group(int64_t row, int64_t group, const float* x);

  int64_t n_rows() const { return n_rows_; }
  int64_t n_inputs() const { return n_inputs_; }
  const int8_t* q() const { return q_.data(); }
  const float* scale() const { return scale_.data(); }

 private:
  int64_t n_rows_ = 0, n_inputs_ = 0, n_groups_ = 0;
  std::vector<int8_t> q_;     // [n_rows][n_groups * 64]
  std::vector<float> scale_;  // [n_rows][n_groups]
};

// A matrix and where its product goes, [n_rows, n_outputs]; `add` adds it to what is there.
struct Product {
  const Int8Matrix* matrix;
  float* y;
  bool add = false;
};

constexpr int kMaxProducts = 3;

// y = x W^T + b of up to kMaxProducts matrices, whose inputs are the rows'. Nobody waits between them.
void int8_linear(std::initializer_list<Product> products, const Int8Rows& x, WorkPool& pool);

// The same of float32 rows, [n_rows, n_inputs].
void int8_linear(const Int8Matrix& matrix, const float* x, int64_t n_rows, float* y, WorkPool& pool);

// SwiGLU's first half, quantised for its second: out = silu(x gate^T) * (x up^T). The two matrices have one shape
// without bias or with; `gated` and `lifted` are scratch, [n_rows, n_outputs] each.
void int8_swiglu(const Int8Matrix& gate, const Int8Matrix& up, const Int8Rows& x, float* gated, float* lifted,
                 Int8Rows& out, WorkPool& pool);

}  // namespace treefill

#endif  // TREEFILL_MODEL_INT8_LINEAR_H_
