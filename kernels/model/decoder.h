// One decoder of the Llama family (Llama, Qwen2) with its key/value cache: tokens in, logits out.
//
// RMSNorm, attention with grouped queries and rotary positions, SwiGLU; int8 products over the mapped weight file.
// Every row of a batch is computed as if it were alone: the same bits in a prompt of sixty tokens, token by token,
// after a crop or cold, on any number of threads.

#ifndef TREEFILL_MODEL_DECODER_H_
#define TREEFILL_MODEL_DECODER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "model/int8_linear.h"
#include "model/work_pool.h"

namespace treefill {

struct DecoderShape {
  int64_t n_layers;
  int64_t n_hidden;
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t head_dim;
  int64_t n_ffn;
  int64_t n_vocab;
  int64_t n_context;  // most tokens that the cache holds
  float norm_epsilon;
};

struct DecoderLayer {
  const float* input_norm;  // [n_hidden]
  Int8Matrix query, key, value, output;
  const float* post_norm;  // [n_hidden]
  Int8Matrix gate, up, down;
};

struct DecoderWeights {
  const uint16_t* embedding;  // [n_vocab][n_hidden], float16 bits
  std::vector<DecoderLayer> layers;
  const float* norm;  // [n_hidden]
  Int8Matrix head;    // [n_vocab][n_hidden]
  const float* cos;   // [n_context][head_dim / 2]
  const float* sin;   // the same
};

class Decoder {
 public:
  static constexpr int64_t kMaxRows = 64;

  // The weights are the caller's and must outlive the decoder.
  Decoder(const DecoderShape& shape, DecoderWeights weights);

  // Appends n_rows tokens (1 to kMaxRows, each below n_vocab, with room in the cache) and writes the logits [n_vocab]
  // after the last. Reads *cancel before each layer: when it is not 0, returns false and the cache is as before.
  bool evaluate(const int32_t* ids, int64_t n_rows, const volatile uint8_t* cancel, float* logits, WorkPool& pool);

  // Keeps the first n_tokens of the cache.
  void crop(int64_t n_tokens);
  int64_t length() const { return length_; }
  const DecoderShape& shape() const { return shape_; }

 private:
  void attend(const DecoderLayer& layer, int64_t layer_index, int64_t n_rows, WorkPool& pool);
  void feed_forward(const DecoderLayer& layer, int64_t n_rows, WorkPool& pool);
  float* keys_of(int64_t layer, int64_t kv_head) const;
  float* values_of(int64_t layer, int64_t kv_head) const;

  DecoderShape shape_;
  DecoderWeights weights_;
  int64_t length_ = 0;
  // [n_layers][n_kv_heads][n_context][head_dim] each; memory that was never written is never touched.
  std::unique_ptr<float[]> keys_, values_;
  // Of a batch, [kMaxRows][...] each.
  std::vector<float> hidden_, normed_, query_, key_, value_, attended_, gate_, up_, scores_;
};

}  // namespace treefill

#endif  // TREEFILL_MODEL_DECODER_H_
