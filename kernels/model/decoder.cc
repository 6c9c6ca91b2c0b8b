#include "model/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "isa/detect.h"

namespace treefill {
namespace {

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

void rms_norm(const float* x, const float* weight, int64_t n, float epsilon, float* y) {
  double squares = 0.0;
  for (int64_t i = 0; i < n; ++i) squares += static_cast<double>(x[i]) * x[i];
  const float scale = static_cast<float>(1.0 / std::sqrt(squares / static_cast<double>(n) + epsilon));
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * weight[i];
}

void norm_rows(const float* x, const float* weight, int64_t n_rows, int64_t n, float epsilon, float* y) {
  for (int64_t row = 0; row < n_rows; ++row) rms_norm(x + row * n, weight, n, epsilon, y + row * n);
}

void add(float* x, const float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] += y[i];
}

// Turns the pairs (x[i], x[i + half]) by the position's angles.
void rotate(float* x, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float low = x[i], high = x[i + half];
    x[i] = low * cos[i] - high * sin[i];
    x[i + half] = high * cos[i] + low * sin[i];
  }
}

struct AttendJob {
  AttendFn attend;
  const float* query;   // [n_rows][n_heads][head_dim]
  const float* keys;    // [n_kv_heads][n_context][head_dim]
  const float* values;  // the same
  float* scores;        // [n_rows * n_heads][n_keys]
  float* out;           // as query
  int64_t n_heads, n_kv_heads, n_context, head_dim, n_before, n_keys;
};

void attend_piece(const void* context, int64_t index) {
  const AttendJob& job = *static_cast<const AttendJob*>(context);
  const int64_t row = index / job.n_heads, head = index % job.n_heads;
  const int64_t kv_head = head / (job.n_heads / job.n_kv_heads);
  const int64_t cache = kv_head * job.n_context * job.head_dim;
  job.attend({.query = job.query + index * job.head_dim,
              .keys = job.keys + cache,
              .values = job.values + cache,
              .scores = job.scores + index * job.n_keys,
              .out = job.out + index * job.head_dim,
              .n_keys = job.n_before + row + 1,
              .head_dim = job.head_dim});
}

struct SwigluJob {
  SwigluFn swiglu;
  float* gate;
  const float* up;
  int64_t n;
};

void swiglu_piece(const void* context, int64_t row) {
  const SwigluJob& job = *static_cast<const SwigluJob*>(context);
  job.swiglu(job.gate + row * job.n, job.up + row * job.n, job.n);
}

size_t size(int64_t rows, int64_t columns) { return static_cast<size_t>(rows * columns); }

}  // namespace

Decoder::Decoder(const DecoderShape& shape, DecoderWeights weights) : shape_(shape), weights_(std::move(weights)) {
  const int64_t n_cached = shape.n_layers * shape.n_kv_heads * shape.n_context * shape.head_dim;
  keys_.reset(new float[static_cast<size_t>(n_cached)]);
  values_.reset(new float[static_cast<size_t>(n_cached)]);
  hidden_.resize(size(kMaxRows, shape.n_hidden));
  normed_.resize(size(kMaxRows, shape.n_hidden));
  query_.resize(size(kMaxRows, shape.n_heads * shape.head_dim));
  key_.resize(size(kMaxRows, shape.n_kv_heads * shape.head_dim));
  value_.resize(size(kMaxRows, shape.n_kv_heads * shape.head_dim));
  attended_.resize(size(kMaxRows, shape.n_heads * shape.head_dim));
  gate_.resize(size(kMaxRows, shape.n_ffn));
  up_.resize(size(kMaxRows, shape.n_ffn));
}

bool Decoder::evaluate(const int32_t* ids, int64_t n_rows, const volatile uint8_t* cancel, float* logits,
                       WorkPool& pool) {
  const int64_t n = shape_.n_hidden;
  for (int64_t row = 0; row < n_rows; ++row) {
    const uint16_t* embedding = weights_.embedding + int64_t{ids[row]} * n;
    for (int64_t i = 0; i < n; ++i) hidden_[row * n + i] = half_to_float(embedding[i]);
  }
  for (int64_t index = 0; index < shape_.n_layers; ++index) {
    if (*cancel) return false;
    const DecoderLayer& layer = weights_.layers[static_cast<size_t>(index)];
    attend(layer, index, n_rows, pool);
    feed_forward(layer, n_rows, pool);
  }
  length_ += n_rows;
  const float* last = hidden_.data() + (n_rows - 1) * n;
  rms_norm(last, weights_.norm, n, shape_.norm_epsilon, normed_.data());
  int8_linear(weights_.head, normed_.data(), 1, logits, pool);
  return true;
}

void Decoder::attend(const DecoderLayer& layer, int64_t layer_index, int64_t n_rows, WorkPool& pool) {
  const int64_t n = shape_.n_hidden, dim = shape_.head_dim, half = dim / 2;
  norm_rows(hidden_.data(), layer.input_norm, n_rows, n, shape_.norm_epsilon, normed_.data());
  int8_linears({{&layer.query, query_.data()}, {&layer.key, key_.data()}, {&layer.value, value_.data()}},
               normed_.data(), n_rows, pool);

  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  for (int64_t row = 0; row < n_rows; ++row) {
    const int64_t position = length_ + row;
    const float* cos = weights_.cos + position * half;
    const float* sin = weights_.sin + position * half;
    float* query = query_.data() + row * shape_.n_heads * dim;
    for (int64_t head = 0; head < shape_.n_heads; ++head) rotate(query + head * dim, cos, sin, half);
    for (int64_t i = 0; i < shape_.n_heads * dim; ++i) query[i] *= scale;
    for (int64_t head = 0; head < shape_.n_kv_heads; ++head) {
      float* key = key_.data() + (row * shape_.n_kv_heads + head) * dim;
      rotate(key, cos, sin, half);
      std::memcpy(keys_of(layer_index, head) + position * dim, key, size(1, dim) * sizeof(float));
      std::memcpy(values_of(layer_index, head) + position * dim, value_.data() + (row * shape_.n_kv_heads + head) * dim,
                  size(1, dim) * sizeof(float));
    }
  }

  // Room for what is asked now, and for twice that next time.
  const int64_t n_keys = length_ + n_rows;
  const size_t n_scores = size(n_rows * shape_.n_heads, n_keys);
  if (scores_.size() < n_scores) scores_.resize(2 * n_scores);
  const AttendJob job{.attend = active_instruction_set().attend,
                      .query = query_.data(),
                      .keys = keys_of(layer_index, 0),
                      .values = values_of(layer_index, 0),
                      .scores = scores_.data(),
                      .out = attended_.data(),
                      .n_heads = shape_.n_heads,
                      .n_kv_heads = shape_.n_kv_heads,
                      .n_context = shape_.n_context,
                      .head_dim = dim,
                      .n_before = length_,
                      .n_keys = n_keys};
  pool.for_each_piece(n_rows * shape_.n_heads, attend_piece, &job);

  int8_linear(layer.output, attended_.data(), n_rows, normed_.data(), pool);
  add(hidden_.data(), normed_.data(), n_rows * n);
}

void Decoder::feed_forward(const DecoderLayer& layer, int64_t n_rows, WorkPool& pool) {
  const int64_t n = shape_.n_hidden;
  norm_rows(hidden_.data(), layer.post_norm, n_rows, n, shape_.norm_epsilon, normed_.data());
  int8_linears({{&layer.gate, gate_.data()}, {&layer.up, up_.data()}}, normed_.data(), n_rows, pool);
  const SwigluJob job{active_instruction_set().swiglu, gate_.data(), up_.data(), shape_.n_ffn};
  pool.for_each_piece(n_rows, swiglu_piece, &job);
  int8_linear(layer.down, gate_.data(), n_rows, normed_.data(), pool);
  add(hidden_.data(), normed_.data(), n_rows * n);
}

void Decoder::crop(int64_t n_tokens) { length_ = std::min(length_, n_tokens); }

float* Decoder::keys_of(int64_t layer, int64_t kv_head) const {
  return keys_.get() + (layer * shape_.n_kv_heads + kv_head) * shape_.n_context * shape_.head_dim;
}

float* Decoder::values_of(int64_t layer, int64_t kv_head) const {
  return values_.get() + (layer * shape_.n_kv_heads + kv_head) * shape_.n_context * shape_.head_dim;
}

}  // namespace treefill
