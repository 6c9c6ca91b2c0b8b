#include "model/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

namespace treefill {
namespace {

// One thread's memory, kept from call to call.
struct Scratch {
  std::vector<float> query;   // [n_queries][head_dim]
  std::vector<float> scores;  // [n_queries][n_keys, rounded up to whole runs]
  std::vector<float> out;     // [n_queries][head_dim]
  std::vector<float> run;     // [kKvRun][head_dim], of a cache that isn't float32

  void fit(int64_t n_queries, int64_t n_keys, int64_t dim) {
    grow(query, n_queries * dim);
    grow(scores, n_queries * n_keys);
    grow(out, n_queries * dim);
    grow(run, kKvRun * dim);
  }

 private:
  // Generously: the next call has a key more.
  static void grow(std::vector<float>& numbers, int64_t n) {
    if (numbers.size() < static_cast<size_t>(n)) numbers.resize(static_cast<size_t>(2 * n));
  }
};

// Adds the bias, turned to each key's position, to a run of keys without it.
void add_bias(const AttentionLayer& layer, int64_t kv_head, int64_t position, float* keys) {
  const int64_t dim = layer.cache->shape().head_dim, half = dim / 2;
  const float* bias = layer.key_bias + kv_head * dim;
  for (int64_t group = 0; group < kKvRun / kLanes; ++group) {
    const float* cos = layer.cos_in_groups + (position / kLanes + group) * half * kLanes;
    const float* sin = layer.sin_in_groups + (position / kLanes + group) * half * kLanes;
    float* low = keys + group * dim * kLanes;
    float* high = low + half * kLanes;
    for (int64_t i = 0; i < half; ++i) {
      for (int64_t lane = i * kLanes; lane < (i + 1) * kLanes; ++lane) {
        low[lane] += bias[i] * cos[lane] - bias[i + half] * sin[lane];
        high[lane] += bias[i + half] * cos[lane] + bias[i] * sin[lane];
      }
    }
  }
}

}  // namespace

void rotate(float* x, const float* cos, const float* sin, int64_t half) {
  for (int64_t i = 0; i < half; ++i) {
    const float low = x[i], high = x[i + half];
    x[i] = low * cos[i] - high * sin[i];
    x[i + half] = high * cos[i] + low * sin[i];
  }
}

void attend(const AttentionLayer& layer, const AttentionTask& task) noexcept {
  thread_local Scratch scratch;
  const KvBlocks& cache = *layer.cache;
  const int64_t dim = cache.shape().head_dim, block_tokens = cache.shape().block_tokens;
  const int64_t n_queries = task.n_rows * task.n_heads;
  const int64_t n_least = task.position + 1;                         // keys that the first row sees, itself included
  const int64_t n_most = task.position + task.n_rows;                // that the last one sees
  const int64_t n_padded = (n_most + kKvRun - 1) / kKvRun * kKvRun;  // scores beyond n_most are of no meaning
  scratch.fit(n_queries, n_padded, dim);

  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  for (int64_t i = 0; i < n_queries; ++i) {
    const int64_t row = i / task.n_heads, half = dim / 2;
    const float* given = layer.query + ((task.row + row) * layer.n_heads + task.head + i % task.n_heads) * dim;
    float* query = scratch.query.data() + i * dim;
    std::memcpy(query, given, static_cast<size_t>(dim) * sizeof(float));
    rotate(query, layer.cos + (task.position + row) * half, layer.sin + (task.position + row) * half, half);
    for (int64_t d = 0; d < dim; ++d) query[d] *= scale;
  }

  for (int64_t key = 0; key < n_most; key += kKvRun) {
    const int64_t block = task.blocks[key / block_tokens], slot = key % block_tokens;
    const float* keys = cache.keys(block, layer.layer, task.kv_head, slot, scratch.run.data());
    if (layer.key_bias) add_bias(layer, task.kv_head, key, scratch.run.data());
    layer.isa->weigh({.a = scratch.query.data(),
                      .a_stride = dim,
                      .b = keys,
                      .b_term = kLanes,
                      .b_vector = dim * kLanes,
                      .y = scratch.scores.data() + key,
                      .y_stride = n_padded,
                      .n_rows = n_queries,
                      .n_terms = dim,
                      .n_vectors = kKvRun / kLanes,
                      .add = false});
  }

  // The sums of the probabilities, where the queries were.
  float* totals = scratch.query.data();
  for (int64_t i = 0; i < n_queries; ++i)
    totals[i] = layer.isa->softmax(scratch.scores.data() + i * n_padded, n_least + i / task.n_heads);

  for (int64_t key = 0; key < n_most; key += kKvRun) {
    const int64_t block = task.blocks[key / block_tokens], slot = key % block_tokens;
    const float* values = cache.values(block, layer.layer, task.kv_head, slot, scratch.run.data());
    // What all rows see at once; then what later rows see beyond it.
    const int64_t n_common = std::clamp<int64_t>(n_least - key, 0, kKvRun);
    const auto weigh = [&](int64_t query, int64_t n, int64_t first, int64_t n_keys) {
      layer.isa->weigh({.a = scratch.scores.data() + query * n_padded + key + first,
                        .a_stride = n_padded,
                        .b = values + first * dim,
                        .b_term = dim,
                        .b_vector = kLanes,
                        .y = scratch.out.data() + query * dim,
                        .y_stride = dim,
                        .n_rows = n,
                        .n_terms = n_keys,
                        .n_vectors = dim / kLanes,
                        .add = key + first > 0});
    };
    if (n_common > 0) weigh(0, n_queries, 0, n_common);
    for (int64_t row = 1; row < task.n_rows; ++row) {
      const int64_t n_seen = std::clamp<int64_t>(n_least + row - key, 0, kKvRun);
      if (n_seen > n_common) weigh(row * task.n_heads, task.n_heads, n_common, n_seen - n_common);
    }
  }

  for (int64_t i = 0; i < n_queries; ++i) {
    float* answer = layer.query + ((task.row + i / task.n_heads) * layer.n_heads + task.head + i % task.n_heads) * dim;
    for (int64_t d = 0; d < dim; ++d) answer[d] = scratch.out[static_cast<size_t>(i * dim + d)] / totals[i];
  }
}

}  // namespace treefill
