// Attention over cached keys and values: some query heads of some consecutive rows, all of one key/value head.

#ifndef TREEFILL_MODEL_ATTENTION_H_
#define TREEFILL_MODEL_ATTENTION_H_

#include <cstdint>

#include "isa/detect.h"
#include "model/kv_blocks.h"

namespace treefill {

// The rows' queries, and where their answers go; one layer's.
struct AttentionLayer {
  const InstructionSet* isa;
  const KvBlocks* cache;
  int64_t layer;
  int64_t n_heads;
  float* query;           // [n_rows][n_heads][head_dim], rotary positions not applied yet; overwritten by the answers
  const float* cos;       // [n_context][head_dim / 2]
  const float* sin;       // the same
  const float* key_bias;  // [n_kv_heads][head_dim], where the cache leaves it out, else null
  const float* cos_in_groups;  // [n_context / kLanes][head_dim / 2][kLanes], where key_bias is given
  const float* sin_in_groups;  // the same
};

struct AttentionTask {
  const int32_t* blocks;  // of the sequence, from its first token on
  int64_t position;       // of the first row in its sequence
  int64_t row, n_rows;    // in the batch
  int64_t kv_head;
  int64_t head, n_heads;  // query heads
};

// query = softmax(query · keys / sqrt(head_dim)) values, for each row over all tokens up to itself. What a row gets
// depends on its own query and sequence alone, to the bit. Where there is no memory for the scores, the process ends:
// the threads of a pool have nobody to tell.
void attend(const AttentionLayer& layer, const AttentionTask& task) noexcept;

// Turns the pairs (x[i], x[i + half]) by a position's angles (Su et al., RoFormer, 2021).
void rotate(float* x, const float* cos, const float* sin, int64_t half);

}  // namespace treefill

#endif  // TREEFILL_MODEL_ATTENTION_H_
