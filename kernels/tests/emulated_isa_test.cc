// Each emulated kernel gives the scalar kernel's bits, for whole, odd and padded sizes.

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "isa/kernel.h"

namespace treefill {
namespace {

struct Case {
  int64_t n_rows, n_groups, n_outputs;
  bool bias;
};

bool same_bits(const Case& c, const char* name, LinearFn linear) {
  std::mt19937 random(static_cast<unsigned>(c.n_rows * 1000003 + c.n_groups * 1009 + c.n_outputs));
  const int64_t n_blocks = (c.n_outputs + kBlock - 1) / kBlock;
  std::vector<int8_t> q(n_blocks * c.n_groups * kBlockBytes), x(c.n_rows * c.n_groups * kGroup);
  std::vector<uint16_t> scale(n_blocks * c.n_groups * kBlock);
  std::vector<int16_t> sum(scale.size());
  std::vector<float> bias(c.n_outputs), x_scale(c.n_rows * c.n_groups);
  for (auto& v : q) v = static_cast<int8_t>(static_cast<int>(random() % 255) - 127);
  for (auto& v : x) v = random() % 4 ? static_cast<int8_t>(static_cast<int>(random() % 255) - 127) : int8_t{-127};
  for (auto& v : scale) v = static_cast<uint16_t>(random() % 0x3c00);  // 0 to 1, subnormals included
  for (auto& v : bias) v = static_cast<float>(random()) / 4e9f - 0.5f;
  for (auto& v : x_scale) v = static_cast<float>(random()) / 4e9f;
  for (size_t i = 0; i < sum.size(); ++i) {
    const int8_t* block = q.data() + i / kBlock * kBlockBytes;
    for (int64_t k = 0; k < kGroup; ++k)
      sum[i] = static_cast<int16_t>(sum[i] + block[k / 4 * kBlock * 4 + i % kBlock * 4 + k % 4]);
  }
  std::vector<float> expected(c.n_rows * c.n_outputs, -1.0f), actual(expected.size(), -2.0f);
  LinearPiece piece{q.data(),
                    scale.data(),
                    sum.data(),
                    c.bias ? bias.data() : nullptr,
                    x.data(),
                    x_scale.data(),
                    expected.data(),
                    c.n_groups,
                    c.n_rows,
                    c.n_outputs,
                    0,
                    n_blocks};
  linear_scalar(piece);
  piece.y = actual.data();
  linear(piece);
  const bool same = std::memcmp(expected.data(), actual.data(), expected.size() * sizeof(float)) == 0;
  if (!same)
    std::printf("%s differs from scalar: %lld rows, %lld groups, %lld outputs\n", name,
                static_cast<long long>(c.n_rows), static_cast<long long>(c.n_groups),
                static_cast<long long>(c.n_outputs));
  return same;
}

}  // namespace
}  // namespace treefill

int main() {
  using namespace treefill;
  int n_passed = 0, n_failed = 0;
  for (int64_t n_rows : {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 21, 33})
    for (int64_t n_groups : {1, 3, 14})
      for (int64_t n_outputs : {1, 15, 16, 17, 48, 77})
        for (bool bias : {false, true}) {
          const Case c{n_rows, n_groups, n_outputs, bias};
          (same_bits(c, "avx512vnni", linear_avx512vnni) ? n_passed : n_failed)++;
          (same_bits(c, "amx", linear_amx) ? n_passed : n_failed)++;
        }
  std::printf("%d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
