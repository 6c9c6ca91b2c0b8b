// Blocks of cached keys and values, of one model: memory and its layout. Which token lies where is the caller's.
//
// A block holds the keys and values of block_tokens consecutive tokens, in every layer and key/value head. Sequences
// are lists of blocks (vLLM's block table), so that several share what they have in common.

#ifndef TREEFILL_MODEL_KV_BLOCKS_H_
#define TREEFILL_MODEL_KV_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "isa/kernel.h"

namespace treefill {

// int8 has a scale a token and head; a key's bias, turned to its position, is kept out of it: in this family of models
// biases are so large that they would leave the rest of the key a few steps.
enum class KvType { kFloat32, kBfloat16, kInt8 };

struct KvShape {
  int64_t n_layers;
  int64_t n_kv_heads;
  int64_t head_dim;
  int64_t block_tokens;  // a multiple of kKvRun
  int64_t n_blocks;
  KvType type;
};

// Consecutive tokens of one head that are read at once.
constexpr int64_t kKvRun = 32;

class KvBlocks {
 public:
  // Memory that was never written is never touched. Throws std::bad_alloc.
  explicit KvBlocks(const KvShape& shape);

  const KvShape& shape() const { return shape_; }
  static int64_t bytes_a_block(const KvShape& shape);

  // One token of a head; key and value are [head_dim]. key_bias [head_dim] is what of the key int8 leaves out.
  void write(int64_t block, int64_t layer, int64_t head, int64_t slot, const float* key, const float* key_bias,
             const float* value);

  // Slots [slot, slot + kKvRun), slot a multiple of kKvRun; what lies beyond the tokens written is any number.
  // The views point into the cache, or into scratch (kKvRun * head_dim each).
  const float* keys(int64_t block, int64_t layer, int64_t head, int64_t slot, float* scratch) const;
  const float* values(int64_t block, int64_t layer, int64_t head, int64_t slot, float* scratch) const;

  // Copies the first n_tokens of a block to another one.
  void copy(int64_t from, int64_t to, int64_t n_tokens);

 private:
  struct Head {
    std::byte* keys;
    std::byte* values;
    float* key_scales;    // [block_tokens], int8 only
    float* value_scales;  // the same
  };
  Head at(int64_t block, int64_t layer, int64_t head) const;

  KvShape shape_;
  int64_t width_;  // bytes a number
  int64_t head_bytes_, block_bytes_;
  std::unique_ptr<std::byte[]> memory_;
};

}  // namespace treefill

#endif  // TREEFILL_MODEL_KV_BLOCKS_H_
