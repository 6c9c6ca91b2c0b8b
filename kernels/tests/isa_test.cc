// Every kernel of every instruction set gives the scalar kernel's bits: on odd sizes, and on numbers that are none.
//
// isa_test [NAME...] tests what `instruction_sets` has, and fails when a set so named is not among it.

#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>

#include "isa/detect.h"
#include "tests/guarded.h"

namespace treefill {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int n_passed = 0, n_failed = 0;

using Random = std::mt19937;  // its numbers, unlike those of the distributions, are the same everywhere
using Floats = Buffer<float>;

// From -1 to 1.
float a_float(Random& random) { return static_cast<float>(static_cast<int>(random() % 2000001) - 1000000) / 1e6f; }

Floats floats(Random& random, int64_t n, float scale) {
  Floats numbers(static_cast<size_t>(n));
  for (float& number : numbers) number = scale * a_float(random);
  return numbers;
}

// To the bit, but for what is not a number: processors differ in which of those they give.
template <typename T>
bool same(const Buffer<T>& a, const Buffer<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if constexpr (std::is_same_v<T, float>)
      if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return a.size() == b.size();
}

__attribute__((format(printf, 2, 3))) void expect(bool is_as_expected, const char* format, ...) {
  ++(is_as_expected ? n_passed : n_failed);
  if (is_as_expected) return;
  va_list arguments;
  va_start(arguments, format);
  std::vprintf(format, arguments);
  va_end(arguments);
  std::printf(" differs from scalar\n");
}

struct LinearCase {
  int n_rows, n_groups, n_outputs;
  bool bias, add;
};

// Weights, activations and scales: random ones, with zeros and subnormal scales among them, or the extremes.
struct Matrix {
  Buffer<int8_t> q, x;
  Buffer<uint16_t> scale;
  Buffer<int16_t> sum;
  Floats bias, x_scale;

  Matrix(Random& random, const LinearCase& c, int n_blocks)
      : q(static_cast<size_t>(n_blocks * c.n_groups * kBlockBytes)),
        x(static_cast<size_t>(c.n_rows * c.n_groups * kGroup)),
        scale(static_cast<size_t>(n_blocks * c.n_groups * kBlock)),
        sum(scale.size()),
        bias(floats(random, c.n_outputs, 1.0f)),
        x_scale(floats(random, c.n_rows * c.n_groups, 1.0f)) {
    const bool extreme = random() % 4 == 0;
    for (int8_t& weight : q) weight = extreme ? int8_t{-127} : a_byte(random);
    for (int8_t& activation : x) activation = extreme || random() % 4 == 0 ? int8_t{-127} : a_byte(random);
    for (uint16_t& half : scale) half = static_cast<uint16_t>(random() % 4 ? random() % 0x3c00 : random() % 0x400);
    if (random() % 4 == 0) x_scale[random() % x_scale.size()] = kInfinity;
    for (size_t i = 0; i < sum.size(); ++i) {
      const int8_t* block = q.data() + i / kBlock * kBlockBytes;
      for (size_t k = 0; k < kGroup; ++k)
        sum[i] = static_cast<int16_t>(sum[i] + block[k / 4 * kBlock * 4 + i % kBlock * 4 + k % 4]);
    }
  }

  static int8_t a_byte(Random& random) { return static_cast<int8_t>(static_cast<int>(random() % 255) - 127); }
};

void check_linear(const InstructionSet& set, const LinearCase& c) {
  Random random(static_cast<unsigned>(c.n_rows * 1000003 + c.n_groups * 1009 + c.n_outputs));
  const int n_blocks = (c.n_outputs + kBlock - 1) / kBlock;
  const Matrix matrix(random, c, n_blocks);
  Floats expected = floats(random, c.n_rows * c.n_outputs, 1.0f), actual = expected;
  LinearPiece piece{.q = matrix.q.data(),
                    .scale = matrix.scale.data(),
                    .sum = matrix.sum.data(),
                    .bias = c.bias ? matrix.bias.data() : nullptr,
                    .x = matrix.x.data(),
                    .x_scale = matrix.x_scale.data(),
                    .y = expected.data(),
                    .add = c.add,
                    .n_groups = c.n_groups,
                    .n_rows = c.n_rows,
                    .n_outputs = c.n_outputs,
                    .block_begin = n_blocks > 2 ? 1 : 0,  // the first block then belongs to another piece
                    .block_end = n_blocks};
  linear_scalar(piece);
  piece.y = actual.data();
  set.linear(piece);
  expect(same(expected, actual), "%s: linear, %d rows, %d groups, %d outputs%s%s", set.name, c.n_rows, c.n_groups,
         c.n_outputs, c.bias ? ", bias" : "", c.add ? ", add" : "");
}

void check_linear(const InstructionSet& set) {
  for (int n_rows : {1, 2, 3, 4, 5, 7, 8, 11, 16, 17, 21, 33})
    for (int n_groups : {1, 3, 14})
      for (int n_outputs : {1, 15, 16, 17, 48, 77})
        for (bool bias : {false, true})
          for (bool add : {false, true})
            if (n_rows * n_groups * n_outputs < 8000) check_linear(set, {n_rows, n_groups, n_outputs, bias, add});
}

struct WeighCase {
  int n_rows, n_terms, n_vectors;
  bool by_term;  // the columns of a term lie side by side, as in values; else the terms of kLanes columns, as in keys
  bool add;
};

void check_weigh(const InstructionSet& set, const WeighCase& c) {
  Random random(static_cast<unsigned>(c.n_rows * 1000003 + c.n_terms * 1009 + c.n_vectors));
  const int64_t a_stride = c.n_terms + 3, y_stride = c.n_vectors * kLanes + 5;  // what lies between is left alone
  const Floats a = floats(random, (c.n_rows - 1) * a_stride + c.n_terms, 2.0f);
  const Floats b = floats(random, c.n_terms * c.n_vectors * kLanes, 2.0f);
  Floats expected = floats(random, (c.n_rows - 1) * y_stride + c.n_vectors * kLanes, 1.0f), actual = expected;
  WeighPiece piece{.a = a.data(),
                   .a_stride = a_stride,
                   .b = b.data(),
                   .b_term = c.by_term ? c.n_vectors * kLanes : kLanes,
                   .b_vector = c.by_term ? kLanes : c.n_terms * kLanes,
                   .y = expected.data(),
                   .y_stride = y_stride,
                   .n_rows = c.n_rows,
                   .n_terms = c.n_terms,
                   .n_vectors = c.n_vectors,
                   .add = c.add};
  weigh_scalar(piece);
  piece.y = actual.data();
  set.weigh(piece);
  expect(same(expected, actual), "%s: weigh, %d rows, %d terms, %d vectors%s%s", set.name, c.n_rows, c.n_terms,
         c.n_vectors, c.by_term ? ", by term" : "", c.add ? ", add" : "");
}

void check_weigh(const InstructionSet& set) {
  for (int n_rows = 1; n_rows <= 9; ++n_rows)
    for (int n_terms : {1, 2, 7, 32, 70})
      for (int n_vectors = 1; n_vectors <= 9; ++n_vectors)
        for (bool by_term : {false, true})
          for (bool add : {false, true}) check_weigh(set, {n_rows, n_terms, n_vectors, by_term, add});
}

// Numbers from -1 to 1 times a scale, with a special one in the place of each `every`-th, from `first` on.
struct Mix {
  const char* name;
  float scale;
  float special = 0.0f;
  int first = 0, every = 0;

  Floats make(int n) const {
    Random random(static_cast<unsigned>(n));
    Floats numbers = floats(random, n, scale);
    for (int i = first; every > 0 && i < n; i += every) numbers[static_cast<size_t>(i)] = special;
    return numbers;
  }
};

constexpr Mix kMixes[] = {
    {.name = "small", .scale = 0.1f},
    {.name = "ordinary", .scale = 8.0f},
    {.name = "wide", .scale = 100.0f},  // e to the power of -100 is no normal number
    {.name = "huge", .scale = 3e38f},
    {.name = "subnormal", .scale = 1e-40f},
    {.name = "zero", .scale = 0.0f},
    {.name = "all equal", .scale = 0.0f, .special = 3.7f, .every = 1},
    {.name = "an outlier", .scale = 0.01f, .special = 1000.0f, .first = 5, .every = 64},
    {.name = "very negative", .scale = 1.0f, .special = -1e30f, .every = 3},
    {.name = "infinite", .scale = 1.0f, .special = kInfinity, .first = 2, .every = 9},
    {.name = "minus infinite", .scale = 1.0f, .special = -kInfinity, .first = 1, .every = 2},
    {.name = "all minus infinite", .scale = 1.0f, .special = -kInfinity, .every = 1},
    {.name = "not a number at first", .scale = 8.0f, .special = kNan, .every = 100},
    {.name = "not a number here and there", .scale = 8.0f, .special = kNan, .first = 3, .every = 7},
    {.name = "not a number", .scale = 1.0f, .special = kNan, .every = 1},
};

void check_softmax(const InstructionSet& set, const Mix& mix, int n) {
  Floats expected = mix.make(n), actual = expected;
  expected.push_back(softmax_scalar(expected.data(), n));
  actual.push_back(set.softmax(actual.data(), n));
  expect(same(expected, actual), "%s: softmax, %d scores, %s", set.name, n, mix.name);
}

void check_swiglu(const InstructionSet& set, const Mix& mix, int n) {
  Random random(7);
  const Floats up = floats(random, n, 3.0f);
  Floats expected = mix.make(n), actual = expected;
  swiglu_scalar(expected.data(), up.data(), n);
  set.swiglu(actual.data(), up.data(), n);
  expect(same(expected, actual), "%s: swiglu, %d numbers, %s", set.name, n, mix.name);
}

void check_quantise(const InstructionSet& set, const char* what, const Floats& x) {
  const size_t n_groups = (x.size() + kGroup - 1) / kGroup;
  Buffer<int8_t> expected(n_groups * kGroup, 55), actual(n_groups * kGroup, 66);
  Floats expected_scale(n_groups, 5.0f), actual_scale(n_groups, 6.0f);
  quantise_scalar(x.data(), static_cast<int64_t>(x.size()), expected.data(), expected_scale.data());
  set.quantise(x.data(), static_cast<int64_t>(x.size()), actual.data(), actual_scale.data());
  expect(same(expected, actual) && same(expected_scale, actual_scale), "%s: quantise, %zu numbers, %s", set.name,
         x.size(), what);
}

// Which tokens a mask allows: none, all, or about so many of a thousand, each by itself or as whole words of it.
struct Allowed {
  unsigned per_thousand;
  bool whole_words;

  Buffer<uint32_t> make(int n_words) const {
    Random random(static_cast<unsigned>(n_words) + per_thousand);
    Buffer<uint32_t> mask(static_cast<size_t>(n_words));
    for (uint32_t& word : mask)
      for (int i = 0; i < kMaskTokens; ++i) word |= static_cast<uint32_t>(random() % 1000 < per_thousand) << i;
    if (whole_words)
      for (uint32_t& word : mask) word = word & 1 ? ~uint32_t{0} : 0;
    return mask;
  }
};

void check_masked(const InstructionSet& set, const Mix& mix, const Allowed& allowed, int n_words) {
  const int n_tokens = n_words * static_cast<int>(kMaskTokens);
  const Floats logits = mix.make(n_tokens);
  const Buffer<uint32_t> mask = allowed.make(n_words);
  const MaskedPiece piece{logits.data(), mask.data(), n_words};
  const auto check = [&](const char* what, bool is_same) {
    expect(is_same, "%s: masked %s, %d words, %u of 1000%s, %s", set.name, what, n_words, allowed.per_thousand,
           allowed.whole_words ? " whole" : "", mix.name);
  };
  const int64_t highest = masked_argmax_scalar(piece);
  check("argmax", set.masked.argmax(piece) == highest);

  Floats bounds(1, -kInfinity);
  for (int token = 0; token < n_tokens; token += n_tokens / 3 + 1) bounds.push_back(logits[static_cast<size_t>(token)]);
  for (float bound : bounds) {
    Buffer<int32_t> expected(static_cast<size_t>(n_tokens), -1), actual = expected;
    const int64_t n = masked_above_scalar(piece, bound, expected.data());
    check("above", set.masked.above(piece, bound, actual.data()) == n && same(expected, actual));
  }

  if (highest < 0 || std::isinf(logits[static_cast<size_t>(highest)])) return;
  const float top = logits[static_cast<size_t>(highest)];
  const Buffer<double> expected(1, masked_sum_exp_scalar(piece, top)), actual(1, set.masked.sum_exp(piece, top));
  check("sum of exponentials", same(expected, actual));
}

void check_masked(const InstructionSet& set) {
  for (const Mix& mix : kMixes)
    for (unsigned per_thousand : {0, 20, 500, 970, 1000})
      for (bool whole_words : {false, true})
        for (int n_words : {0, 1, 2, 7, 17, 31, 32, 33, 50, 64, 70})
          check_masked(set, mix, {per_thousand, whole_words}, n_words);
}

// With a largest number of 127 the scale is 1, and every other is half way between two integers: to the even one.
Floats halves() {
  Floats x;
  for (int i = 0; i < 2 * kGroup; ++i) x.push_back(i == 0 ? 127.0f : static_cast<float>(2 * i - 127) / 2.0f);
  x[kGroup] = -127.0f;
  return x;
}

void check(const InstructionSet& set) {
  check_linear(set);
  check_weigh(set);
  check_masked(set);
  for (const Mix& mix : kMixes) {
    for (int n = 1; n <= 70; ++n) check_softmax(set, mix, n);
    for (int n = 1; n <= 70; ++n) check_swiglu(set, mix, n);
    for (int n : {1, 7, 63, 64, 65, 127, 128, 200}) check_quantise(set, mix.name, mix.make(n));
  }
  check_quantise(set, "halves", halves());
}

bool is_among(const char* name, const std::vector<InstructionSet>& sets) {
  for (const InstructionSet& set : sets)
    if (std::strcmp(set.name, name) == 0) return true;
  std::printf("%s is not available here\n", name);
  return false;
}

}  // namespace
}  // namespace treefill

int main(int n_arguments, char** arguments) {
  using namespace treefill;
  const std::vector<InstructionSet>& sets = instruction_sets();
  for (int i = 1; i < n_arguments; ++i)
    if (!is_among(arguments[i], sets)) return 1;
  for (const InstructionSet& set : sets) {
    if (std::strcmp(set.name, "scalar") == 0) continue;
    std::printf("%s, ", set.name);
    std::fflush(stdout);
    check(set);
  }
  std::printf("%d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
