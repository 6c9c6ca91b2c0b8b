// Logits under a token mask on any machine, token by token: what every other file here must reproduce to the bit.

#include "isa/exp_scalar.h"
#include "isa/kernel.h"

namespace treefill {
namespace {

double sum_lanes(const double* lanes) {
  const double even = (lanes[0] + lanes[4]) + (lanes[2] + lanes[6]);
  const double odd = (lanes[1] + lanes[5]) + (lanes[3] + lanes[7]);
  return even + odd;
}

}  // namespace

int64_t masked_argmax_scalar(const MaskedPiece& p) {
  float highest = -__builtin_inff();
  int64_t place = -1;
  for (int64_t word = 0; word < p.n_words; ++word) {
    for (uint32_t bits = p.mask[word]; bits; bits &= bits - 1) {
      const int64_t token = word * kMaskTokens + __builtin_ctz(bits);
      if (!(p.logits[token] > highest)) continue;
      highest = p.logits[token];
      place = token;
    }
  }
  return place;
}

int64_t masked_above_scalar(const MaskedPiece& p, float bound, int32_t* places) {
  int64_t n = 0;
  for (int64_t word = 0; word < p.n_words; ++word) {
    for (uint32_t bits = p.mask[word]; bits; bits &= bits - 1) {
      const int64_t token = word * kMaskTokens + __builtin_ctz(bits);
      if (p.logits[token] > bound) places[n++] = static_cast<int32_t>(token);
    }
  }
  return n;
}

double masked_sum_exp_scalar(const MaskedPiece& p, float top) {
  double totals[kLanes] = {};
  for (int64_t word = 0; word < p.n_words; ++word) {
    if (p.mask[word] == 0) continue;
    float e[kMaskTokens] = {};
    for (uint32_t bits = p.mask[word]; bits; bits &= bits - 1) {
      const int i = __builtin_ctz(bits);
      e[i] = exponential(p.logits[word * kMaskTokens + i] - top);
    }
    for (int64_t i = 0; i < kLanes; ++i) totals[i] += static_cast<double>((e[i] + e[i + 16]) + (e[i + 8] + e[i + 24]));
  }
  return sum_lanes(totals);
}

}  // namespace treefill
