#include "model/int8_linear.h"

#include <algorithm>
#include <vector>

#include "isa/detect.h"

namespace treefill {
namespace {

// A piece is small enough that nobody waits long for the last one, and large enough to pay for being taken.
constexpr int64_t kPieceWork = int64_t{1} << 18;  // multiply-adds

// Some blocks of one product.
struct Part {
  LinearPiece whole;
  int64_t blocks_a_piece;
  int64_t first_piece;
};

constexpr int kMaxProducts = 4;

struct Job {
  LinearFn linear;
  Part parts[kMaxProducts];
  int n_parts;
};

void run_piece(const void* context, int64_t index) {
  const Job& job = *static_cast<const Job*>(context);
  int i = 0;
  while (i + 1 < job.n_parts && index >= job.parts[i + 1].first_piece) ++i;
  const Part& part = job.parts[i];
  LinearPiece piece = part.whole;
  piece.block_begin = (index - part.first_piece) * part.blocks_a_piece;
  piece.block_end = std::min(piece.block_begin + part.blocks_a_piece, part.whole.block_end);
  job.linear(piece);
}

}  // namespace

void int8_linear(const Int8Matrix& matrix, const float* x, int64_t n_rows, float* y, WorkPool& pool) {
  int8_linears({{&matrix, y}}, x, n_rows, pool);
}

void int8_linears(std::initializer_list<Product> products, const float* x, int64_t n_rows, WorkPool& pool) {
  const InstructionSet& isa = active_instruction_set();
  const int64_t n_inputs = products.begin()->matrix->n_inputs;
  const int64_t n_groups = products.begin()->matrix->n_groups();

  // Kept from call to call: a decode step makes some 170 products, all of a few sizes.
  thread_local std::vector<int8_t> q;
  thread_local std::vector<float> scale;
  q.resize(static_cast<size_t>(n_rows * n_groups * kGroup));
  scale.resize(static_cast<size_t>(n_rows * n_groups));
  for (int64_t row = 0; row < n_rows; ++row)
    isa.quantise(x + row * n_inputs, n_inputs, q.data() + row * n_groups * kGroup, scale.data() + row * n_groups);

  Job job{.linear = isa.linear, .parts = {}, .n_parts = 0};
  const int64_t work_a_block = std::max<int64_t>(n_rows, 1) * n_groups * kBlockBytes;
  int64_t n_pieces = 0;
  for (const Product& product : products) {
    const Int8Matrix& matrix = *product.matrix;
    Part& part = job.parts[job.n_parts++];
    part = {.whole = {.q = matrix.q,
                      .scale = matrix.scale,
                      .sum = matrix.sum,
                      .bias = matrix.bias,
                      .x = q.data(),
                      .x_scale = scale.data(),
                      .y = product.y,
                      .n_groups = n_groups,
                      .n_rows = n_rows,
                      .n_outputs = matrix.n_outputs,
                      .block_begin = 0,
                      .block_end = matrix.n_blocks()},
            .blocks_a_piece = std::max<int64_t>(1, kPieceWork / work_a_block),
            .first_piece = n_pieces};
    n_pieces += (matrix.n_blocks() + part.blocks_a_piece - 1) / part.blocks_a_piece;
  }
  pool.for_each_piece(n_pieces, run_piece, &job);
}

}  // namespace treefill
