#include "model/int8_linear.h"

#include <algorithm>
#include <stdexcept>

#include "isa/detect.h"

namespace treefill {
namespace {

// A piece is small enough that nobody waits long for the last one, and large enough to pay for being taken.
constexpr int64_t kPieceWork = int64_t{1} << 18;  // multiply-adds

LinearPiece whole_product(const Product& product, const Int8Rows& x) {
  const Int8Matrix& matrix = *product.matrix;
  return {.q = matrix.q,
          .scale = matrix.scale,
          .sum = matrix.sum,
          .bias = matrix.bias,
          .x = x.q(),
          .x_scale = x.scale(),
          .y = product.y,
          .add = product.add,
          .n_groups = matrix.n_groups(),
          .n_rows = x.n_rows(),
          .n_outputs = matrix.n_outputs,
          .block_begin = 0,
          .block_end = matrix.n_blocks()};
}

// How many blocks of 16 outputs make a piece.
int64_t blocks_a_piece(const Int8Matrix& matrix, int64_t n_rows) {
  const int64_t work_a_block = std::max<int64_t>(n_rows, 1) * matrix.n_groups() * kBlockBytes;
  return std::max<int64_t>(1, kPieceWork / work_a_block);
}

LinearPiece blocks_of(const LinearPiece& whole, int64_t begin, int64_t end) {
  LinearPiece piece = whole;
  piece.block_begin = begin;
  piece.block_end = std::min(end, whole.block_end);
  return piece;
}

// Some blocks of one product.
struct Part {
  LinearPiece whole;
  int64_t blocks_a_piece;
  int64_t first_piece;
};

struct LinearJob {
  LinearFn linear;
  Part parts[kMaxProducts];
  int n_parts;
};

void run_linear(const void* context, int64_t index) {
  const LinearJob& job = *static_cast<const LinearJob*>(context);
  int i = 0;
  while (i + 1 < job.n_parts && index >= job.parts[i + 1].first_piece) ++i;
  const Part& part = job.parts[i];
  const int64_t begin = (index - part.first_piece) * part.blocks_a_piece;
  job.linear(blocks_of(part.whole, begin, begin + part.blocks_a_piece));
}

constexpr int64_t kBlocksAGroup = kGroup / kBlock;

struct SwigluJob {
  const InstructionSet* isa;
  LinearPiece gate, up;
  Int8Rows* out;
  int64_t groups_a_piece;
};

// Whole groups of outputs, so that they can be quantised at once.
void run_swiglu(const void* context, int64_t index) {
  const SwigluJob& job = *static_cast<const SwigluJob*>(context);
  const int64_t begin = index * job.groups_a_piece;
  const int64_t end = std::min(begin + job.groups_a_piece, (job.gate.n_outputs + kGroup - 1) / kGroup);
  job.isa->linear(blocks_of(job.gate, begin * kBlocksAGroup, end * kBlocksAGroup));
  job.isa->linear(blocks_of(job.up, begin * kBlocksAGroup, end * kBlocksAGroup));
  for (int64_t row = 0; row < job.gate.n_rows; ++row) {
    const int64_t first = begin * kGroup, n = std::min(end * kGroup, job.gate.n_outputs) - first;
    float* gated = job.gate.y + row * job.gate.n_outputs + first;
    job.isa->swiglu(gated, job.up.y + row * job.up.n_outputs + first, n);
    for (int64_t group = begin; group < end; ++group)
      job.out->quantise_group(row, group, gated + (group - begin) * kGroup);
  }
}

}  // namespace

void Int8Rows::reshape(int64_t n_rows, int64_t n_inputs) {
  n_rows_ = n_rows;
  n_inputs_ = n_inputs;
  n_groups_ = (n_inputs + kGroup - 1) / kGroup;
  q_.resize(static_cast<size_t>(n_rows * n_groups_ * kGroup));
  scale_.resize(static_cast<size_t>(n_rows * n_groups_));
}

void Int8Rows::quantise_row(int64_t row, const float* x) {
  active_instruction_set().quantise(x, n_inputs_, q_.data() + row * n_groups_ * kGroup,
                                    scale_.data() + row * n_groups_);
}

void Int8Rows::quantise_group(int64_t row, int64_t group, const float* x) {
  active_instruction_set().quantise(x, std::min(kGroup, n_inputs_ - group * kGroup),
                                    q_.data() + (row * n_groups_ + group) * kGroup,
                                    scale_.data() + row * n_groups_ + group);
}

void int8_linear(std::initializer_list<Product> products, const Int8Rows& x, WorkPool& pool) {
  if (products.size() > kMaxProducts) throw std::logic_error("more products than int8_linear takes at once");
  LinearJob job{.linear = active_instruction_set().linear, .parts = {}, .n_parts = 0};
  int64_t n_pieces = 0;
  for (const Product& product : products) {
    const int64_t n_blocks = blocks_a_piece(*product.matrix, x.n_rows());
    job.parts[job.n_parts++] = {whole_product(product, x), n_blocks, n_pieces};
    n_pieces += (product.matrix->n_blocks() + n_blocks - 1) / n_blocks;
  }
  pool.for_each_piece(n_pieces, run_linear, &job);
}

void int8_linear(const Int8Matrix& matrix, const float* x, int64_t n_rows, float* y, WorkPool& pool) {
  thread_local Int8Rows rows;  // kept from call to call
  rows.reshape(n_rows, matrix.n_inputs);
  for (int64_t row = 0; row < n_rows; ++row) rows.quantise_row(row, x + row * matrix.n_inputs);
  int8_linear({{&matrix, y}}, rows, pool);
}

void int8_swiglu(const Int8Matrix& gate, const Int8Matrix& up, const Int8Rows& x, float* gated, float* lifted,
                 Int8Rows& out, WorkPool& pool) {
  out.reshape(x.n_rows(), gate.n_outputs);
  const SwigluJob job{.isa = &active_instruction_set(),
                      .gate = whole_product({&gate, gated}, x),
                      .up = whole_product({&up, lifted}, x),
                      .out = &out,
                      .groups_a_piece = std::max<int64_t>(1, blocks_a_piece(gate, x.n_rows()) / 2 / kBlocksAGroup)};
  const int64_t n_groups = (gate.n_outputs + kGroup - 1) / kGroup;
  pool.for_each_piece((n_groups + job.groups_a_piece - 1) / job.groups_a_piece, run_swiglu, &job);
}

}  // namespace treefill
