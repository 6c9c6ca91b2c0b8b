#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "isa/detect.h"

namespace treefill {
namespace {

// Rows of a prompt whose attention is one piece of work: they read each key once together.
constexpr int64_t kAttendRows = 4;

float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * (1.0f / 16777216.0f);  // subnormal: mantissa * 2^-24
    return sign ? -magnitude : magnitude;
  }
  const uint32_t bits = sign | ((exponent == 31 ? 255 : exponent + 112) << 23) | (mantissa << 13);
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Four sums, so that one addition need not wait for the other.
void rms_norm(const float* x, const float* weight, int64_t n, float epsilon, float* y) {
  double squares[4] = {};
  for (int64_t i = 0; i < n; ++i) squares[i % 4] += static_cast<double>(x[i]) * x[i];
  const double sum = (squares[0] + squares[1]) + (squares[2] + squares[3]);
  const float scale = static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(n) + epsilon));
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

struct NormJob {
  const float* x;  // [n_rows][n]
  const float* weight;
  int64_t n;
  float epsilon;
  float* normed;  // scratch, as x
  Int8Rows* out;
};

void norm_piece(const void* context, int64_t row) {
  const NormJob& job = *static_cast<const NormJob*>(context);
  rms_norm(job.x + row * job.n, job.weight, job.n, job.epsilon, job.normed + row * job.n);
  job.out->quantise_row(row, job.normed + row * job.n);
}

struct QuantiseJob {
  const float* x;  // [n_rows][n]
  int64_t n;
  Int8Rows* out;
};

void quantise_piece(const void* context, int64_t row) {
  const QuantiseJob& job = *static_cast<const QuantiseJob*>(context);
  job.out->quantise_row(row, job.x + row * job.n);
}

struct AttendJob {
  const AttentionLayer* layer;
  const AttentionTask* tasks;
};

void attend_piece(const void* context, int64_t index) {
  const AttendJob& job = *static_cast<const AttendJob*>(context);
  attend(*job.layer, job.tasks[index]);
}

std::vector<float> in_groups(const float* table, int64_t n_context, int64_t half) {
  const int64_t n_groups = (n_context + kKvRun - 1) / kKvRun * (kKvRun / kLanes);
  std::vector<float> groups(static_cast<size_t>(n_groups * half * kLanes));
  for (int64_t position = 0; position < n_context; ++position)
    for (int64_t i = 0; i < half; ++i)
      groups[static_cast<size_t>((position / kLanes * half + i) * kLanes + position % kLanes)] =
          table[position * half + i];
  return groups;
}

// The same sequences, with only those rows whose logits are wanted.
std::vector<Appended> wanted_of(std::vector<Appended> sequences) {
  for (Appended& sequence : sequences) {
    sequence.n_before += sequence.n_rows - sequence.n_logits;
    sequence.n_rows = sequence.n_logits;
  }
  return sequences;
}

bool is_set(const uint8_t* flag) { return __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

size_t size(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns); }

}  // namespace

Decoder::Decoder(const DecoderShape& shape, DecoderWeights weights, KvBlocks& cache)
    : shape_(shape), weights_(std::move(weights)), cache_(cache) {
  if (cache.shape().type == KvType::kInt8) {
    cos_in_groups_ = in_groups(weights_.cos, shape.n_context, shape.head_dim / 2);
    sin_in_groups_ = in_groups(weights_.sin, shape.n_context, shape.head_dim / 2);
  }
  hidden_.resize(size(kMaxRows, shape.n_hidden));
  normed_.resize(size(kMaxRows, shape.n_hidden));
  query_.resize(size(kMaxRows, shape.n_heads * shape.head_dim));
  key_.resize(size(kMaxRows, shape.n_kv_heads * shape.head_dim));
  value_.resize(size(kMaxRows, shape.n_kv_heads * shape.head_dim));
  gate_.resize(size(kMaxRows, shape.n_ffn));
  up_.resize(size(kMaxRows, shape.n_ffn));
}

bool Decoder::evaluate(const std::vector<Appended>& sequences, const int32_t* ids, const uint8_t* cancel, float* logits,
                       WorkPool& pool) {
  active_instruction_set();  // throws here if at all: a piece of work must not
  const int64_t n = shape_.n_hidden;
  place_rows(sequences);
  const int64_t n_rows = static_cast<int64_t>(rows_.size());
  for (int64_t row = 0; row < n_rows; ++row) {
    const uint16_t* embedding = weights_.embedding + int64_t{ids[row]} * n;
    for (int64_t i = 0; i < n; ++i) hidden_[size(row, n) + static_cast<size_t>(i)] = half_to_float(embedding[i]);
  }
  const std::vector<Appended> wanted = wanted_of(sequences);
  for (int64_t index = 0; index < shape_.n_layers; ++index) {
    if (is_set(cancel)) return false;
    const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
    norm_rows(layer.input_norm, pool);
    const Product query{&layer.query, query_.data()}, key{&layer.key, key_.data()}, value{&layer.value, value_.data()};
    if (index + 1 < shape_.n_layers) {
      int8_linear({query, key, value}, input_, pool);
      write_keys_and_values(layer, index);
    } else {
      // After the last keys and values, only rows whose logits are wanted matter.
      int8_linear({key, value}, input_, pool);
      write_keys_and_values(layer, index);
      keep_rows(sequences, wanted);
      if (rows_.empty()) return true;
      norm_rows(layer.input_norm, pool);
      int8_linear({query}, input_, pool);
    }
    attend(layer, index, pool);
    feed_forward(layer, pool);
  }
  norm_rows(weights_.norm, pool);
  int8_linear({{&weights_.head, logits}}, input_, pool);
  return true;
}

void Decoder::keep_rows(const std::vector<Appended>& sequences, const std::vector<Appended>& wanted) {
  const int64_t n = shape_.n_hidden;
  int64_t n_kept = 0, end = 0;
  for (size_t i = 0; i < sequences.size(); ++i) {
    end += sequences[i].n_rows;
    std::copy_n(hidden_.begin() + (end - wanted[i].n_rows) * n, wanted[i].n_rows * n, hidden_.begin() + n_kept * n);
    n_kept += wanted[i].n_rows;
  }
  place_rows(wanted);
}

void Decoder::place_rows(const std::vector<Appended>& sequences) {
  rows_.clear();
  tasks_.clear();
  const int64_t n_shared = shape_.n_heads / shape_.n_kv_heads;  // query heads of a key/value head
  for (const Appended& sequence : sequences) {
    const int64_t first = static_cast<int64_t>(rows_.size());
    for (int64_t row = 0; row < sequence.n_rows; ++row) rows_.push_back({sequence.blocks, sequence.n_before + row});
    // A single row would otherwise leave all but n_kv_heads threads idle.
    const int64_t heads_a_task = sequence.n_rows < kAttendRows ? (n_shared + 1) / 2 : n_shared;
    for (int64_t row = 0; row < sequence.n_rows; row += kAttendRows)
      for (int64_t kv_head = 0; kv_head < shape_.n_kv_heads; ++kv_head)
        for (int64_t head = 0; head < n_shared; head += heads_a_task)
          tasks_.push_back({.blocks = sequence.blocks,
                            .position = sequence.n_before + row,
                            .row = first + row,
                            .n_rows = std::min(kAttendRows, sequence.n_rows - row),
                            .kv_head = kv_head,
                            .head = kv_head * n_shared + head,
                            .n_heads = std::min(heads_a_task, n_shared - head)});
  }
}

void Decoder::attend(const DecoderLayer& layer, int64_t layer_index, WorkPool& pool) {
  const int64_t n_rows = static_cast<int64_t>(rows_.size());
  const bool is_int8 = cache_.shape().type == KvType::kInt8;
  const AttentionLayer attention{.isa = &active_instruction_set(),
                                 .cache = &cache_,
                                 .layer = layer_index,
                                 .n_heads = shape_.n_heads,
                                 .query = query_.data(),
                                 .cos = weights_.cos,
                                 .sin = weights_.sin,
                                 .key_bias = is_int8 ? layer.key.bias : nullptr,
                                 .cos_in_groups = cos_in_groups_.data(),
                                 .sin_in_groups = sin_in_groups_.data()};
  const AttendJob attend_job{&attention, tasks_.data()};
  pool.for_each_piece(static_cast<int64_t>(tasks_.size()), attend_piece, &attend_job);

  const int64_t n_query = shape_.n_heads * shape_.head_dim;
  input_.reshape(n_rows, n_query);
  const QuantiseJob quantise_job{query_.data(), n_query, &input_};
  pool.for_each_piece(n_rows, quantise_piece, &quantise_job);
  int8_linear({{&layer.output, hidden_.data(), true}}, input_, pool);
}

void Decoder::write_keys_and_values(const DecoderLayer& layer, int64_t layer_index) {
  const int64_t dim = shape_.head_dim, half = dim / 2, block_tokens = cache_.shape().block_tokens;
  const bool leaves_bias_out = cache_.shape().type == KvType::kInt8 && layer.key.bias;
  std::vector<float> bias(leaves_bias_out ? size(1, dim) : 0);
  for (int64_t row = 0; row < static_cast<int64_t>(rows_.size()); ++row) {
    const Row& place = rows_[static_cast<size_t>(row)];
    const float* cos = weights_.cos + place.position * half;
    const float* sin = weights_.sin + place.position * half;
    const int64_t block = place.blocks[place.position / block_tokens], slot = place.position % block_tokens;
    for (int64_t head = 0; head < shape_.n_kv_heads; ++head) {
      const int64_t at = (row * shape_.n_kv_heads + head) * dim;
      rotate(key_.data() + at, cos, sin, half);
      if (leaves_bias_out) {
        std::copy_n(layer.key.bias + head * dim, dim, bias.data());
        rotate(bias.data(), cos, sin, half);
      }
      cache_.write(block, layer_index, head, slot, key_.data() + at, leaves_bias_out ? bias.data() : nullptr,
                   value_.data() + at);
    }
  }
}

void Decoder::feed_forward(const DecoderLayer& layer, WorkPool& pool) {
  norm_rows(layer.post_norm, pool);
  int8_swiglu(layer.gate, layer.up, input_, gate_.data(), up_.data(), wide_, pool);
  int8_linear({{&layer.down, hidden_.data(), true}}, wide_, pool);
}

void Decoder::norm_rows(const float* weight, WorkPool& pool) {
  const int64_t n_rows = static_cast<int64_t>(rows_.size());
  input_.reshape(n_rows, shape_.n_hidden);
  const NormJob job{hidden_.data(), weight, shape_.n_hidden, shape_.norm_epsilon, normed_.data(), &input_};
  pool.for_each_piece(n_rows, norm_piece, &job);
}

}  // namespace treefill
