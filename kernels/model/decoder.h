// One decoder of the Llama family (Llama, Qwen2): tokens in, logits out.
//
// RMSNorm, attention with grouped queries and rotary positions, SwiGLU; int8 products over the mapped weight file; keys
// and values in blocks that the caller assigns. Every row of a batch is computed as if it were alone: the same bits in
// a prompt of sixty tokens, token by token, beside another sequence, on blocks that are shared or its own, on any
// number of threads.

#ifndef TREEFILL_MODEL_DECODER_H_
#define TREEFILL_MODEL_DECODER_H_

#include <cstdint>
#include <vector>

#include "model/attention.h"
#include "model/int8_linear.h"
#include "model/kv_blocks.h"
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
  int64_t n_context;  // most tokens of a sequence
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

// Tokens to append to one sequence.
struct Appended {
  const int32_t* blocks;  // where its tokens lie, block_tokens to a block, room for the new ones included
  int64_t n_before;       // tokens that are there
  int64_t n_rows;         // tokens to append
  int64_t n_logits;       // of the last so many, logits are wanted
};

class Decoder {
 public:
  static constexpr int64_t kMaxRows = 64;

  // The weights and the blocks are the caller's and must outlive the decoder.
  Decoder(const DecoderShape& shape, DecoderWeights weights, KvBlocks& cache);

  // Evaluates the tokens `ids` of all sequences, one after the other, 1 to kMaxRows together, and writes the logits
  // that are wanted, [sum of n_logits][n_vocab]. The caller has checked ids, blocks and lengths. Reads *cancel before
  // each layer: when it is not 0, returns false; the new tokens' slots are then of no meaning.
  bool evaluate(const std::vector<Appended>& sequences, const int32_t* ids, const uint8_t* cancel, float* logits,
                WorkPool& pool);

  const DecoderShape& shape() const { return shape_; }

 private:
  // A row's place: in which sequence, and where in it.
  struct Row {
    const int32_t* blocks;
    int64_t position;
  };

  void place_rows(const std::vector<Appended>& sequences);
  void keep_rows(const std::vector<Appended>& sequences, const std::vector<Appended>& wanted);
  void attend(const DecoderLayer& layer, int64_t layer_index, WorkPool& pool);
  void write_keys_and_values(const DecoderLayer& layer, int64_t layer_index);
  void feed_forward(const DecoderLayer& layer, WorkPool& pool);
  void norm_rows(const float* weight, WorkPool& pool);

  DecoderShape shape_;
  DecoderWeights weights_;
  KvBlocks& cache_;
  std::vector<float> cos_in_groups_, sin_in_groups_;  // for an int8 cache

  // Of a batch.
  std::vector<Row> rows_;
  std::vector<AttentionTask> tasks_;
  std::vector<float> hidden_, normed_, query_, key_, value_, gate_, up_;  // [n_rows][...] each
  Int8Rows input_, wide_;
};

}  // namespace treefill

#endif  // TREEFILL_MODEL_DECODER_H_
