// treefill._kernels: the native module. Its types are in server/treefill/_kernels.pyi.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "isa/detect.h"
#include "model/decoder.h"
#include "model/int8_linear.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace treefill {
namespace {

using Blocks = nb::ndarray<const int8_t, nb::ndim<5>, nb::c_contig, nb::device::cpu>;
using Scales = nb::ndarray<const uint16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<const int16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using HalfTable = nb::ndarray<const uint16_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flag = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Logits = nb::ndarray<float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// One pool for the process, and one product at a time on it. Neither is ever destroyed: at exit, threads of the
// interpreter may still be multiplying. A forked child has none of the parent's threads, so it begins anew.
struct SharedPool {
  std::mutex mutex;
  std::unique_ptr<WorkPool> pool;
};

SharedPool* shared = new SharedPool;
int wanted_threads = 0;

int default_threads() { return std::max(1, std::min(8, static_cast<int>(std::thread::hardware_concurrency()))); }

// The caller holds the mutex.
WorkPool& the_pool() {
  if (!shared->pool) shared->pool = std::make_unique<WorkPool>(wanted_threads ? wanted_threads : default_threads());
  return *shared->pool;
}

void set_threads(int n_threads) {
  if (n_threads < 0 || n_threads > 256)
    throw std::invalid_argument("threads must be 0 (choose) to 256, got " + std::to_string(n_threads));
  nb::gil_scoped_release no_gil;
  std::lock_guard lock(shared->mutex);
  wanted_threads = n_threads;
  shared->pool.reset();
}

int threads() {
  nb::gil_scoped_release no_gil;
  std::lock_guard lock(shared->mutex);
  return the_pool().n_threads();
}

std::string shape_text(const nb::ndarray<>& array) {
  std::string text = "[";
  for (size_t i = 0; i < array.ndim(); ++i) text += (i ? ", " : "") + std::to_string(array.shape(i));
  return text + "]";
}

void check_shape(const nb::ndarray<>& array, const char* name, const std::vector<int64_t>& expected) {
  bool same = array.ndim() == expected.size();
  for (size_t i = 0; same && i < expected.size(); ++i) same = static_cast<int64_t>(array.shape(i)) == expected[i];
  if (same) return;
  std::string text = "[";
  for (size_t i = 0; i < expected.size(); ++i) text += (i ? ", " : "") + std::to_string(expected[i]);
  throw std::invalid_argument(std::string(name) + " has shape " + shape_text(array) + ", expected " + text + "]");
}

constexpr int64_t kMostWide = int64_t{1} << 30;  // far above any model, far below what overflows

// Holds references to the arrays, which may lie in a mapped file, and multiplies by them.
class Int8Linear {
 public:
  Int8Linear(Blocks q, Scales scale, Sums sum, std::optional<Vector> bias, int64_t n_inputs, int64_t n_outputs)
      : q_(std::move(q)), scale_(std::move(scale)), sum_(std::move(sum)), bias_(std::move(bias)) {
    if (n_inputs < 1 || n_outputs < 1 || n_inputs > kMostWide || n_outputs > kMostWide)
      throw std::invalid_argument("n_inputs and n_outputs must be at least 1 and at most 2^30");
    matrix_ = {q_.data(), scale_.data(), sum_.data(), bias_ ? bias_->data() : nullptr, n_inputs, n_outputs};
    const int64_t blocks = matrix_.n_blocks(), groups = matrix_.n_groups();
    check_shape(nb::ndarray<>(q_), "q", {blocks, groups, kGroup / 4, kBlock, 4});
    check_shape(nb::ndarray<>(scale_), "scale", {blocks, groups, kBlock});
    check_shape(nb::ndarray<>(sum_), "sum", {blocks, groups, kBlock});
    if (bias_) check_shape(nb::ndarray<>(*bias_), "bias", {n_outputs});
  }

  void forward(uintptr_t x, int64_t n_rows, uintptr_t y) const {
    if (!x || !y || n_rows < 0 || n_rows > kMostWide)
      throw std::invalid_argument("forward needs two addresses and a row count of 0 or more");
    nb::gil_scoped_release no_gil;
    std::lock_guard lock(shared->mutex);
    int8_linear(matrix_, reinterpret_cast<const float*>(x), n_rows, reinterpret_cast<float*>(y), the_pool());
  }

  int64_t n_inputs() const { return matrix_.n_inputs; }
  int64_t n_outputs() const { return matrix_.n_outputs; }
  const Int8Matrix& matrix() const { return matrix_; }

 private:
  Blocks q_;
  Scales scale_;
  Sums sum_;
  std::optional<Vector> bias_;
  Int8Matrix matrix_{};
};

void check_linear(const Int8Linear& linear, const char* name, int64_t n_inputs, int64_t n_outputs) {
  if (linear.n_inputs() == n_inputs && linear.n_outputs() == n_outputs) return;
  throw std::invalid_argument(std::string(name) + " is " + std::to_string(linear.n_outputs()) + " x " +
                              std::to_string(linear.n_inputs()) + ", expected " + std::to_string(n_outputs) + " x " +
                              std::to_string(n_inputs));
}

// A decoder and the Python objects that its weights lie in.
class BoundDecoder {
 public:
  BoundDecoder(int64_t n_heads, int64_t n_kv_heads, int64_t head_dim, int64_t n_ffn, float norm_epsilon,
               HalfTable embedding, const std::vector<nb::dict>& layers, Vector norm, nb::object head, Table cos,
               Table sin) {
    const int64_t n_vocab = static_cast<int64_t>(embedding.shape(0));
    const int64_t n_hidden = static_cast<int64_t>(embedding.shape(1));
    const int64_t n_context = static_cast<int64_t>(cos.shape(0));
    if (n_heads < 1 || n_kv_heads < 1 || n_heads % n_kv_heads || head_dim < kLanes || head_dim % kLanes || n_ffn < 1)
      throw std::invalid_argument("n_heads must be a multiple of n_kv_heads, and head_dim one of 8");
    check_shape(nb::ndarray<>(cos), "cos", {n_context, head_dim / 2});
    check_shape(nb::ndarray<>(sin), "sin", {n_context, head_dim / 2});
    const DecoderShape shape{.n_layers = static_cast<int64_t>(layers.size()),
                             .n_hidden = n_hidden,
                             .n_heads = n_heads,
                             .n_kv_heads = n_kv_heads,
                             .head_dim = head_dim,
                             .n_ffn = n_ffn,
                             .n_vocab = n_vocab,
                             .n_context = n_context,
                             .norm_epsilon = norm_epsilon};
    DecoderWeights weights{.embedding = embedding.data(),
                           .layers = {},
                           .norm = vector(nb::cast(norm), "norm", n_hidden),
                           .head = linear(head, "head", n_hidden, n_vocab),
                           .cos = cos.data(),
                           .sin = sin.data()};
    const int64_t n_query = n_heads * head_dim, n_kv = n_kv_heads * head_dim;
    for (const nb::dict& layer : layers)
      weights.layers.push_back({.input_norm = vector(layer["input_norm"], "input_norm", n_hidden),
                                .query = linear(layer["query"], "query", n_hidden, n_query),
                                .key = linear(layer["key"], "key", n_hidden, n_kv),
                                .value = linear(layer["value"], "value", n_hidden, n_kv),
                                .output = linear(layer["output"], "output", n_query, n_hidden),
                                .post_norm = vector(layer["post_norm"], "post_norm", n_hidden),
                                .gate = linear(layer["gate"], "gate", n_hidden, n_ffn),
                                .up = linear(layer["up"], "up", n_hidden, n_ffn),
                                .down = linear(layer["down"], "down", n_ffn, n_hidden)});
    kept_.push_back(nb::cast(embedding));
    kept_.push_back(nb::cast(cos));
    kept_.push_back(nb::cast(sin));
    decoder_ = std::make_unique<Decoder>(shape, std::move(weights));
  }

  bool evaluate(Ids ids, Flag cancel, Logits logits) {
    const DecoderShape& shape = decoder_->shape();
    const int64_t n_rows = static_cast<int64_t>(ids.shape(0));
    if (n_rows < 1 || n_rows > Decoder::kMaxRows || decoder_->length() + n_rows > shape.n_context)
      throw std::invalid_argument("evaluate takes 1 to " + std::to_string(Decoder::kMaxRows) + " tokens, and " +
                                  std::to_string(shape.n_context) + " with those that are cached");
    for (int64_t i = 0; i < n_rows; ++i)
      if (ids.data()[i] < 0 || ids.data()[i] >= shape.n_vocab)
        throw std::invalid_argument("token " + std::to_string(ids.data()[i]) + " is not in the vocabulary");
    if (cancel.shape(0) < 1) throw std::invalid_argument("cancel has no byte");
    check_shape(nb::ndarray<>(logits), "logits", {shape.n_vocab});
    nb::gil_scoped_release no_gil;
    std::lock_guard lock(shared->mutex);
    return decoder_->evaluate(ids.data(), n_rows, cancel.data(), logits.data(), the_pool());
  }

  void crop(int64_t n_tokens) {
    if (n_tokens < 0) throw std::invalid_argument("a cache can't be cropped to less than nothing");
    decoder_->crop(n_tokens);
  }

  int64_t length() const { return decoder_->length(); }

 private:
  const float* vector(const nb::object& array, const char* name, int64_t n) {
    const Vector v = nb::cast<Vector>(array);
    check_shape(nb::ndarray<>(v), name, {n});
    kept_.push_back(array);
    return v.data();
  }

  const Int8Matrix& linear(const nb::object& object, const char* name, int64_t n_inputs, int64_t n_outputs) {
    const Int8Linear& linear = nb::cast<const Int8Linear&>(object);
    check_linear(linear, name, n_inputs, n_outputs);
    kept_.push_back(object);
    return linear.matrix();
  }

  std::vector<nb::object> kept_;
  std::unique_ptr<Decoder> decoder_;
};

std::vector<std::string> instruction_set_names() {
  std::vector<std::string> names;
  for (const InstructionSet& set : instruction_sets()) names.emplace_back(set.name);
  return names;
}

}  // namespace
}  // namespace treefill

NB_MODULE(_kernels, m) {
  using namespace treefill;
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, [] { shared = new SharedPool; });
#endif
  m.def("instruction_sets", &instruction_set_names);
  m.def("instruction_set", [] { return std::string(active_instruction_set().name); });
  m.def("use_instruction_set", &use_instruction_set, "name"_a);
  m.def("threads", &threads);
  m.def("set_threads", &set_threads, "n_threads"_a);
  nb::class_<Int8Linear>(m, "Int8Linear")
      .def(nb::init<Blocks, Scales, Sums, std::optional<Vector>, int64_t, int64_t>(), "q"_a.noconvert(),
           "scale"_a.noconvert(), "sum"_a.noconvert(), "bias"_a.noconvert().none(), "n_inputs"_a, "n_outputs"_a)
      .def("forward", &Int8Linear::forward, "x"_a, "n_rows"_a, "y"_a)
      .def_prop_ro("n_inputs", &Int8Linear::n_inputs)
      .def_prop_ro("n_outputs", &Int8Linear::n_outputs);
  nb::class_<BoundDecoder>(m, "Decoder")
      .def(nb::init<int64_t, int64_t, int64_t, int64_t, float, HalfTable, const std::vector<nb::dict>&, Vector,
                    nb::object, Table, Table>(),
           "n_heads"_a, "n_kv_heads"_a, "head_dim"_a, "n_ffn"_a, "norm_epsilon"_a, "embedding"_a.noconvert(),
           "layers"_a, "norm"_a.noconvert(), "head"_a, "cos"_a.noconvert(), "sin"_a.noconvert())
      .def("evaluate", &BoundDecoder::evaluate, "ids"_a.noconvert(), "cancel"_a, "logits"_a.noconvert())
      .def("crop", &BoundDecoder::crop, "n_tokens"_a)
      .def_prop_ro("length", &BoundDecoder::length);
}
