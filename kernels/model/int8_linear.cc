#include "model/int8_linear.h"

#include <algorithm>
#include <vector>

#include "isa/detect.h"

namespace treefill {
namespace {

// A piece is small enough that nobody waits long for the last one, and large enough to pay for being taken.
constexpr int64_t kPieceWork = int64_t{1} << 18;  // multiply-adds

struct Job {
  LinearPiece whole;
  LinearFn linear;
  int64_t blocks_a_piece;
};

void run_piece(const void* context, int64_t index) {
  const Job& job = *static_cast<const Job*>(context);
  LinearPiece piece = job.whole;
  piece.block_begin = index * job.blocks_a_piece;
  piece.block_end = std::min(piece.block_begin + job.blocks_a_piece, job.whole.block_end);
  job.linear(piece);
}

}  // namespace

void int8_linear(const Int8Matrix& matrix, const float* x, int64_t n_rows, float* y, WorkPool& pool) {
  const InstructionSet& isa = active_instruction_set();
  const int64_t n_groups = matrix.n_groups();

  // Kept from call to call: a decode step makes some 170 products, all of a few sizes.
  thread_local std::vector<int8_t> q;
  thread_local std::vector<float> scale;
  q.resize(static_cast<size_t>(n_rows * n_groups * kGroup));
  scale.resize(static_cast<size_t>(n_rows * n_groups));
  for (int64_t row = 0; row < n_rows; ++row)
    isa.quantise(x + row * matrix.n_inputs, matrix.n_inputs, q.data() + row * n_groups * kGroup,
                 scale.data() + row * n_groups);

  const int64_t work_a_block = std::max<int64_t>(n_rows, 1) * n_groups * kBlockBytes;
  const Job job{
      .whole = {.q = matrix.q,
                .scale = matrix.scale,
                .sum = matrix.sum,
                .bias = matrix.bias,
                .x = q.data(),
                .x_scale = scale.data(),
                .y = y,
                .n_groups = n_groups,
                .n_rows = n_rows,
                .n_outputs = matrix.n_outputs,
                .block_begin = 0,
                .block_end = matrix.n_blocks()},
      .linear = isa.linear,
      .blocks_a_piece = std::max<int64_t>(1, kPieceWork / work_a_block),
  };
  const int64_t n_pieces = (matrix.n_blocks() + job.blocks_a_piece - 1) / job.blocks_a_piece;
  pool.for_each_piece(n_pieces, run_piece, &job);
}

}  // namespace treefill
