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
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "isa/detect.h"
#include "logits/bind.h"
#include "model/decoder.h"
#include "model/int8_linear.h"
#include "model/read_through.h"
#include "model/shared_pool.h"
#include "syntax/bind.h"

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
using RawBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Logits = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void set_threads(int n_threads) {
  if (n_threads < 0 || n_threads > 256)
    throw std::invalid_argument("threads must be 0 (choose) to 256, got " + std::to_string(n_threads));
  nb::gil_scoped_release no_gil;
  const auto lock = lock_pool();
  set_pool_threads(n_threads);
}

int threads() {
  nb::gil_scoped_release no_gil;
  const auto lock = lock_pool();
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
    const auto lock = lock_pool();
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

KvType kv_type_named(const std::string& name) {
  if (name == "float32") return KvType::kFloat32;
  if (name == "bfloat16") return KvType::kBfloat16;
  if (name == "int8") return KvType::kInt8;
  throw std::invalid_argument("the cache can be float32, bfloat16 or int8, not " + name);
}

KvShape kv_shape(int64_t n_layers, int64_t n_kv_heads, int64_t head_dim, int64_t block_tokens, int64_t n_blocks,
                 const std::string& type) {
  for (int64_t number : {n_layers, n_kv_heads, head_dim, block_tokens, n_blocks})
    if (number < 1 || number > kMostWide) throw std::invalid_argument("every number of a cache is 1 to 2^30");
  if (head_dim % kLanes || block_tokens % kKvRun)
    throw std::invalid_argument("head_dim must be a multiple of 8, and block_tokens one of 32");
  // A key and a value in float32 take eight bytes; int8's scales take less than it saves.
  int64_t bytes = 8;
  for (int64_t factor : {n_layers, n_kv_heads, head_dim, block_tokens, n_blocks})
    if (bytes > std::numeric_limits<int64_t>::max() / 2 / factor)
      throw std::invalid_argument("a cache of these numbers is larger than any memory");
    else
      bytes *= factor;
  return {n_layers, n_kv_heads, head_dim, block_tokens, n_blocks, kv_type_named(type)};
}

class BoundKvBlocks {
 public:
  BoundKvBlocks(int64_t n_layers, int64_t n_kv_heads, int64_t head_dim, int64_t block_tokens, int64_t n_blocks,
                const std::string& type)
      : cache_(kv_shape(n_layers, n_kv_heads, head_dim, block_tokens, n_blocks, type)) {}

  void copy(int64_t from, int64_t to, int64_t n_tokens) {
    check(from);
    check(to);
    if (from == to || n_tokens < 0 || n_tokens > cache_.shape().block_tokens)
      throw std::invalid_argument("copy takes two blocks and at most a block's tokens");
    nb::gil_scoped_release no_gil;
    const auto lock = lock_pool();
    cache_.copy(from, to, n_tokens);
  }

  void check(int64_t block) const {
    if (block < 0 || block >= cache_.shape().n_blocks)
      throw std::invalid_argument("block " + std::to_string(block) + " is not one of " +
                                  std::to_string(cache_.shape().n_blocks));
  }

  KvBlocks& cache() { return cache_; }

 private:
  KvBlocks cache_;
};

// What Python says of one sequence; the arrays are copied, for they may change while others compute.
struct BoundAppended {
  std::vector<int32_t> blocks;
  int64_t n_before, n_rows, n_logits;
};

// A decoder and the Python objects that its weights lie in.
class BoundDecoder {
 public:
  BoundDecoder(int64_t n_heads, int64_t n_kv_heads, int64_t head_dim, int64_t n_ffn, float norm_epsilon,
               HalfTable embedding, const std::vector<nb::dict>& layers, Vector norm, nb::object head, Table cos,
               Table sin, nb::object cache) {
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
    cache_ = &nb::cast<BoundKvBlocks&>(cache);
    const KvShape& kv = cache_->cache().shape();
    if (kv.n_layers != shape.n_layers || kv.n_kv_heads != n_kv_heads || kv.head_dim != head_dim)
      throw std::invalid_argument("the cache is of another model's shape");
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
    for (const nb::object& kept : {nb::cast(embedding), nb::cast(cos), nb::cast(sin), cache}) kept_.push_back(kept);
    decoder_ = std::make_unique<Decoder>(shape, std::move(weights), cache_->cache());
  }

  bool evaluate(Ids ids, const std::vector<nb::tuple>& sequences, Flag cancel, std::optional<Logits> logits) {
    const std::vector<int32_t> copied(ids.data(), ids.data() + ids.shape(0));
    const std::vector<BoundAppended> given = sequences_of(sequences);
    check(copied, given);
    if (cancel.shape(0) < 1) throw std::invalid_argument("cancel has no byte");
    int64_t n_logits = 0;
    std::vector<Appended> appended;
    for (const BoundAppended& sequence : given) {
      n_logits += sequence.n_logits;
      appended.push_back({sequence.blocks.data(), sequence.n_before, sequence.n_rows, sequence.n_logits});
    }
    if (logits) check_shape(nb::ndarray<>(*logits), "logits", {n_logits, decoder_->shape().n_vocab});
    if (!logits && n_logits > 0) throw std::invalid_argument("logits are wanted, and there is nowhere to write them");
    nb::gil_scoped_release no_gil;
    const auto lock = lock_pool();
    return decoder_->evaluate(appended, copied.data(), cancel.data(), logits ? logits->data() : nullptr, the_pool());
  }

 private:
  static std::vector<BoundAppended> sequences_of(const std::vector<nb::tuple>& sequences) {
    std::vector<BoundAppended> given;
    for (const nb::tuple& sequence : sequences) {
      if (nb::len(sequence) != 4) throw std::invalid_argument("a sequence is blocks, n_before, n_rows and n_logits");
      const Ids blocks = nb::cast<Ids>(sequence[0]);
      given.push_back({{blocks.data(), blocks.data() + blocks.shape(0)},
                       nb::cast<int64_t>(sequence[1]),
                       nb::cast<int64_t>(sequence[2]),
                       nb::cast<int64_t>(sequence[3])});
    }
    return given;
  }

  void check(const std::vector<int32_t>& ids, const std::vector<BoundAppended>& sequences) const {
    const DecoderShape& shape = decoder_->shape();
    const int64_t block_tokens = cache_->cache().shape().block_tokens;
    int64_t n_rows = 0;
    for (const BoundAppended& sequence : sequences) {
      if (sequence.n_rows < 1 || sequence.n_rows > Decoder::kMaxRows || sequence.n_logits < 0 ||
          sequence.n_logits > sequence.n_rows)
        throw std::invalid_argument("evaluate takes 1 to " + std::to_string(Decoder::kMaxRows) + " tokens");
      const int64_t n_after = std::clamp<int64_t>(sequence.n_before, -1, shape.n_context) + sequence.n_rows;
      if (sequence.n_before < 0 || n_after > shape.n_context)
        throw std::invalid_argument("a sequence has at most " + std::to_string(shape.n_context) + " tokens");
      if (static_cast<int64_t>(sequence.blocks.size()) * block_tokens < n_after)
        throw std::invalid_argument("the blocks of a sequence do not hold its " + std::to_string(n_after) + " tokens");
      for (int32_t block : sequence.blocks) cache_->check(block);
      n_rows += sequence.n_rows;
    }
    if (n_rows < 1 || n_rows > Decoder::kMaxRows || n_rows != static_cast<int64_t>(ids.size()))
      throw std::invalid_argument("evaluate takes 1 to " + std::to_string(Decoder::kMaxRows) +
                                  " tokens, as many as its sequences say");
    for (int32_t id : ids)
      if (id < 0 || id >= shape.n_vocab)
        throw std::invalid_argument("token " + std::to_string(id) + " is not in the vocabulary");
  }

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
  BoundKvBlocks* cache_;
  std::unique_ptr<Decoder> decoder_;
};

int64_t kv_bytes_a_block(int64_t n_layers, int64_t n_kv_heads, int64_t head_dim, int64_t block_tokens,
                         const std::string& type) {
  return KvBlocks::bytes_a_block(kv_shape(n_layers, n_kv_heads, head_dim, block_tokens, 1, type));
}

uint64_t bound_read_through(const std::vector<RawBytes>& arrays) {
  std::vector<Bytes> all;
  for (const RawBytes& array : arrays) all.push_back({array.data(), static_cast<int64_t>(array.shape(0))});
  nb::gil_scoped_release no_gil;
  const auto lock = lock_pool();
  return read_through(all, the_pool());
}

std::vector<std::string> instruction_set_names() {
  std::vector<std::string> names;
  for (const InstructionSet& set : instruction_sets()) names.emplace_back(set.name);
  return names;
}

}  // namespace
}  // namespace treefill

NB_MODULE(_kernels, m) {
  using namespace treefill;
  nb::set_leak_warnings(false);  // grammars are kept for the life of the process, and outlive the module's count
#if defined(__unix__) || defined(__APPLE__)
  pthread_atfork(nullptr, nullptr, begin_pool_anew);
#endif
  m.def("instruction_sets", &instruction_set_names);
  m.def("instruction_set", [] { return std::string(active_instruction_set().name); });
  m.def("use_instruction_set", &use_instruction_set, "name"_a);
  m.def("threads", &threads);
  m.def("set_threads", &set_threads, "n_threads"_a);
  m.def("read_through", &bound_read_through, "arrays"_a);
  logits::bind(m);
  syntax::bind(m);
  nb::class_<Int8Linear>(m, "Int8Linear")
      .def(nb::init<Blocks, Scales, Sums, std::optional<Vector>, int64_t, int64_t>(), "q"_a.noconvert(),
           "scale"_a.noconvert(), "sum"_a.noconvert(), "bias"_a.noconvert().none(), "n_inputs"_a, "n_outputs"_a)
      .def("forward", &Int8Linear::forward, "x"_a, "n_rows"_a, "y"_a)
      .def_prop_ro("n_inputs", &Int8Linear::n_inputs)
      .def_prop_ro("n_outputs", &Int8Linear::n_outputs);
  nb::class_<BoundKvBlocks>(m, "KvBlocks")
      .def(nb::init<int64_t, int64_t, int64_t, int64_t, int64_t, const std::string&>(), "n_layers"_a, "n_kv_heads"_a,
           "head_dim"_a, "block_tokens"_a, "n_blocks"_a, "type"_a)
      .def("copy", &BoundKvBlocks::copy, "source"_a, "target"_a, "n_tokens"_a)
      .def_static("bytes_a_block", &kv_bytes_a_block, "n_layers"_a, "n_kv_heads"_a, "head_dim"_a, "block_tokens"_a,
                  "type"_a);
  nb::class_<BoundDecoder>(m, "Decoder")
      .def(nb::init<int64_t, int64_t, int64_t, int64_t, float, HalfTable, const std::vector<nb::dict>&, Vector,
                    nb::object, Table, Table, nb::object>(),
           "n_heads"_a, "n_kv_heads"_a, "head_dim"_a, "n_ffn"_a, "norm_epsilon"_a, "embedding"_a.noconvert(),
           "layers"_a, "norm"_a.noconvert(), "head"_a, "cos"_a.noconvert(), "sin"_a.noconvert(), "cache"_a)
      .def("evaluate", &BoundDecoder::evaluate, "ids"_a.noconvert(), "sequences"_a, "cancel"_a,
           "logits"_a.noconvert().none());
}
