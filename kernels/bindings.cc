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
#include "model/int8_linear.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace treefill {
namespace {

using Blocks = nb::ndarray<const int8_t, nb::ndim<5>, nb::c_contig, nb::device::cpu>;
using Scales = nb::ndarray<const uint16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<const int16_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Vector = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

 private:
  Blocks q_;
  Scales scale_;
  Sums sum_;
  std::optional<Vector> bias_;
  Int8Matrix matrix_{};
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
}
