// What a sampler asks of logits under a token mask: the highest, the k highest, and what normalises them.
//
// Logits and mask are read, and nothing as wide as the vocabulary is written. A token may be taken where its bit is set
// and its logit is above minus infinity; what is not a number is never taken. Every instruction set and every number of
// threads gives the same bits.

#ifndef TREEFILL_LOGITS_MASKED_H_
#define TREEFILL_LOGITS_MASKED_H_

#include <cstdint>

#include "model/work_pool.h"

namespace treefill {

// Words of a mask: token t has bit t % 32 of word t / 32. Bits after the last token are of no meaning.
constexpr int64_t n_mask_words(int64_t n_tokens) { return (n_tokens + 31) / 32; }

struct MaskedRows {
  const float* logits;    // [n_rows][n_tokens]
  const uint32_t* masks;  // [n_rows][n_mask_words], or [n_mask_words], the same for all rows
  int64_t n_rows;
  int64_t n_tokens;     // at most 2^30
  int64_t mask_stride;  // words from a row's mask to the next; 0 where it is the same
};

// Rows are shared by a pool's threads where one is given, else the calling thread does them all.

// tokens[row]: which has the highest logit, of equals the first; -1 where none may be taken.
void masked_argmax(const MaskedRows& rows, WorkPool* pool, int32_t* tokens);

// tokens[row][k] and values[row][k]: the k of the highest logits, the highest first and of equals the first; -1 and
// minus infinity after the last that may be taken. Throws std::bad_alloc.
void masked_top_k(const MaskedRows& rows, int64_t k, WorkPool* pool, int32_t* tokens, float* values);

// answers[row]: the logarithm of the sum of exp(logit) of those that may be taken; minus infinity where there are none.
// It is off by 1.5e-6, beside its own rounding, at most: exponentials are of 2 units in the last place, of a difference
// that was rounded, and four of them are added before they go into double precision.
void masked_log_sum_exp(const MaskedRows& rows, WorkPool* pool, float* answers);

}  // namespace treefill

#endif  // TREEFILL_LOGITS_MASKED_H_
