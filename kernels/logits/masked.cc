#include "logits/masked.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "isa/detect.h"

namespace treefill {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A row in two pieces for the kernels, which take whole words: those that the mask has, and one in which the last
// tokens have zeros after them that are not allowed.
class Row {
 public:
  Row(const MaskedRows& rows, int64_t row) : n_whole_(rows.n_tokens / kMaskTokens * kMaskTokens) {
    const float* logits = rows.logits + row * rows.n_tokens;
    const uint32_t* mask = rows.masks + row * rows.mask_stride;
    whole_ = {logits, mask, n_whole_ / kMaskTokens};
    const int64_t n_rest = rows.n_tokens - n_whole_;
    rest_ = {rest_logits_, &rest_mask_, n_rest > 0};
    if (n_rest == 0) return;
    std::memcpy(rest_logits_, logits + n_whole_, static_cast<size_t>(n_rest) * sizeof(float));
    rest_mask_ = mask[whole_.n_words] & ((uint32_t{1} << n_rest) - 1);
  }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  const MaskedPiece& whole() const { return whole_; }
  const MaskedPiece& rest() const { return rest_; }
  int64_t n_whole() const { return n_whole_; }  // tokens before the rest
  float operator[](int64_t token) const {
    return token < n_whole_ ? whole_.logits[token] : rest_logits_[token - n_whole_];
  }

 private:
  int64_t n_whole_;
  MaskedPiece whole_{}, rest_{};
  float rest_logits_[kMaskTokens] = {};
  uint32_t rest_mask_ = 0;
};

int64_t argmax(const InstructionSet& isa, const Row& row) {
  const int64_t in_whole = isa.masked.argmax(row.whole()), in_rest = isa.masked.argmax(row.rest());
  if (in_rest < 0) return in_whole;
  const int64_t token = row.n_whole() + in_rest;
  return in_whole < 0 || row[token] > row[in_whole] ? token : in_whole;
}

float log_sum_exp(const InstructionSet& isa, const Row& row) {
  const int64_t highest = argmax(isa, row);
  if (highest < 0) return -kInfinity;
  const float top = row[highest];
  if (top == kInfinity) return top;  // all the others are nothing beside it, and a difference would be no number
  const double sum = isa.masked.sum_exp(row.whole(), top) + isa.masked.sum_exp(row.rest(), top);
  return static_cast<float>(static_cast<double>(top) + std::log(sum));
}

struct Candidate {
  float logit;
  int32_t token;

  bool operator<(const Candidate& other) const {  // as they are ordered, the best first
    return logit != other.logit ? logit > other.logit : token < other.token;
  }
};

// So many words are looked through before the bound that candidates must be above is raised again.
constexpr int64_t kWordsAtOnce = 32;
constexpr int64_t kTokensAtOnce = kWordsAtOnce * kMaskTokens;

// The k best of the tokens that it is given, in ascending order of tokens: those that are not above the k-th best so
// far are left out at once, and when there are 2 k, the k worst of them are dropped.
class Best {
 public:
  // Memory for n_candidates(k) of them is the caller's.
  Best(const InstructionSet& isa, int64_t k, Candidate* candidates) : isa_(isa), k_(k), candidates_(candidates) {}

  static int64_t n_candidates(int64_t k) { return 2 * k + kTokensAtOnce; }

  void add(const MaskedPiece& piece, int64_t first_token) {
    for (int64_t word = 0; word < piece.n_words; word += kWordsAtOnce) {
      const MaskedPiece part{piece.logits + word * kMaskTokens, piece.mask + word,
                             std::min(kWordsAtOnce, piece.n_words - word)};
      int32_t places[kTokensAtOnce];
      const int64_t n_above = isa_.masked.above(part, bound_, places);
      for (int64_t i = 0; i < n_above; ++i)
        candidates_[n_++] = {part.logits[places[i]],
                             static_cast<int32_t>(first_token + word * kMaskTokens + places[i])};
      if (n_ >= 2 * k_) drop_worst();
    }
  }

  // Those that there are, the best first.
  void write(int32_t* tokens, float* values) {
    if (n_ > k_) drop_worst();
    std::sort(candidates_, candidates_ + n_);
    for (int64_t i = 0; i < n_; ++i) {
      tokens[i] = candidates_[i].token;
      values[i] = candidates_[i].logit;
    }
  }

 private:
  void drop_worst() {
    std::nth_element(candidates_, candidates_ + k_ - 1, candidates_ + n_);
    n_ = k_;
    bound_ = candidates_[k_ - 1].logit;  // a later token of the same logit comes after it
  }

  const InstructionSet& isa_;
  int64_t k_;
  Candidate* candidates_;
  int64_t n_ = 0;
  float bound_ = -kInfinity;
};

template <typename Call>
void for_each_row(int64_t n_rows, WorkPool* pool, const Call& call) {
  if (!pool) {
    for (int64_t row = 0; row < n_rows; ++row) call(row);
    return;
  }
  pool->for_each_piece(
      n_rows, [](const void* context, int64_t row) { (*static_cast<const Call*>(context))(row); }, &call);
}

}  // namespace

void masked_argmax(const MaskedRows& rows, WorkPool* pool, int32_t* tokens) {
  const InstructionSet& isa = active_instruction_set();
  for_each_row(rows.n_rows, pool,
               [&](int64_t row) { tokens[row] = static_cast<int32_t>(argmax(isa, Row(rows, row))); });
}

void masked_top_k(const MaskedRows& rows, int64_t k, WorkPool* pool, int32_t* tokens, float* values) {
  std::fill(tokens, tokens + rows.n_rows * k, -1);
  std::fill(values, values + rows.n_rows * k, -kInfinity);
  const int64_t n_best = std::min(k, rows.n_tokens), n_candidates = Best::n_candidates(n_best);
  if (n_best == 0) return;
  const InstructionSet& isa = active_instruction_set();
  const auto candidates = std::make_unique_for_overwrite<Candidate[]>(static_cast<size_t>(rows.n_rows * n_candidates));
  for_each_row(rows.n_rows, pool, [&](int64_t index) {
    const Row row(rows, index);
    Best best(isa, n_best, candidates.get() + index * n_candidates);
    best.add(row.whole(), 0);
    best.add(row.rest(), row.n_whole());
    best.write(tokens + index * k, values + index * k);
  });
}

void masked_log_sum_exp(const MaskedRows& rows, WorkPool* pool, float* answers) {
  const InstructionSet& isa = active_instruction_set();
  for_each_row(rows.n_rows, pool, [&](int64_t row) { answers[row] = log_sum_exp(isa, Row(rows, row)); });
}

}  // namespace treefill
