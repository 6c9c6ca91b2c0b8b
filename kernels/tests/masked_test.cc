// What is asked of logits under a mask, against what it means, token by token: rows of any length that end where memory
// ends, one mask or many, on every instruction set of this machine, alone and on several threads.

#include "logits/masked.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "isa/detect.h"
#include "tests/guarded.h"

namespace treefill {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int n_passed = 0, n_failed = 0;

struct Case {
  int n_rows, n_tokens;
  unsigned per_thousand;  // tokens allowed
  bool is_one_mask;
};

struct Batch {
  Case c;
  Buffer<float> logits;
  Buffer<uint32_t> masks;

  explicit Batch(const Case& given) : c(given) {
    std::mt19937 random(static_cast<unsigned>(c.n_tokens * 31 + c.n_rows) + c.per_thousand);
    logits.resize(static_cast<size_t>(c.n_rows * c.n_tokens));
    for (float& logit : logits) {
      const float special[] = {kNan, kInfinity, -kInfinity, -0.0f, 0.0f, 1e-42f};
      logit = random() % 20 ? static_cast<float>(random() % 64) / 4.0f - 8.0f : special[random() % 6];
      if (std::isinf(logit) && logit > 0 && random() % 8) logit = 7.75f;  // or else nothing is tested but that
    }
    masks.resize(static_cast<size_t>((c.is_one_mask ? 1 : c.n_rows) * n_mask_words(c.n_tokens)));
    for (uint32_t& word : masks)  // tokens that there are not, too
      for (int i = 0; i < 32; ++i) word |= static_cast<uint32_t>(random() % 1000 < c.per_thousand) << i;
  }

  MaskedRows rows() const {
    return {logits.data(), masks.data(), c.n_rows, c.n_tokens, c.is_one_mask ? 0 : n_mask_words(c.n_tokens)};
  }

  float logit(int row, int token) const { return logits[static_cast<size_t>(row * c.n_tokens + token)]; }

  // The tokens of a row that may be taken, the best first.
  std::vector<int32_t> in_order(int row) const {
    const uint32_t* mask = masks.data() + row * rows().mask_stride;
    std::vector<int32_t> tokens;
    for (int token = 0; token < c.n_tokens; ++token)
      if ((mask[token / 32] >> token % 32 & 1) && logit(row, token) > -kInfinity) tokens.push_back(token);
    std::stable_sort(tokens.begin(), tokens.end(), [&](int a, int b) { return logit(row, a) > logit(row, b); });
    return tokens;
  }
};

void expect(bool is_as_expected, const char* what, const InstructionSet& set, const Case& c) {
  ++(is_as_expected ? n_passed : n_failed);
  if (!is_as_expected)
    std::printf("%s: %s differs, %d rows of %d, %u of 1000%s\n", set.name, what, c.n_rows, c.n_tokens, c.per_thousand,
                c.is_one_mask ? ", one mask" : "");
}

void check(const InstructionSet& set, const Batch& batch, WorkPool* pool) {
  const Case& c = batch.c;
  const size_t n_rows = static_cast<size_t>(c.n_rows);
  Buffer<int32_t> highest(n_rows, -7);
  Buffer<float> sums(n_rows, 5.0f);
  masked_argmax(batch.rows(), pool, highest.data());
  masked_log_sum_exp(batch.rows(), pool, sums.data());
  for (int row = 0; row < c.n_rows; ++row) {
    const std::vector<int32_t> order = batch.in_order(row);
    expect(highest[static_cast<size_t>(row)] == (order.empty() ? -1 : order[0]), "argmax", set, c);
    double sum = 0;
    for (int32_t token : order) sum += std::exp(static_cast<double>(batch.logit(row, token)));
    const double expected = std::log(sum), actual = sums[static_cast<size_t>(row)];
    expect(expected == actual || std::abs(expected - actual) < 3e-6, "log-sum-exp", set, c);
  }
  for (int k : {0, 1, 3, 40, c.n_tokens, c.n_tokens + 5}) {
    Buffer<int32_t> tokens(n_rows * static_cast<size_t>(k), -7);
    Buffer<float> values(tokens.size(), 5.0f);
    masked_top_k(batch.rows(), k, pool, tokens.data(), values.data());
    bool is_same = true;
    for (int row = 0; row < c.n_rows; ++row) {
      std::vector<int32_t> order = batch.in_order(row);
      order.resize(static_cast<size_t>(k), -1);
      for (int i = 0; i < k; ++i) {
        const size_t at = static_cast<size_t>(row * k + i);
        const int32_t token = order[static_cast<size_t>(i)];
        const float value = token < 0 ? -kInfinity : batch.logit(row, token);
        is_same &= tokens[at] == token && std::memcmp(&values[at], &value, sizeof value) == 0;
      }
    }
    expect(is_same, "top-k", set, c);
  }
}

}  // namespace
}  // namespace treefill

int main() {
  using namespace treefill;
  WorkPool pool(3);
  for (const InstructionSet& set : instruction_sets()) {
    use_instruction_set(set.name);
    for (int n_tokens : {0, 1, 15, 16, 31, 32, 33, 63, 64, 95, 255, 256, 257, 1000, 1024, 3001})
      for (unsigned per_thousand : {0, 10, 500, 1000})
        for (bool is_one_mask : {false, true})
          for (int n_rows : {0, 1, 2, 5}) {
            const Batch batch({n_rows, n_tokens, per_thousand, is_one_mask});
            check(set, batch, nullptr);
            check(set, batch, &pool);
          }
  }
  std::printf("masked: %d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
