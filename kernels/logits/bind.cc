#include "logits/bind.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "logits/masked.h"
#include "model/shared_pool.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace treefill::logits {
namespace {

using Array = nb::ndarray<nb::ro>;  // of whatever type and order: `check` says in a sentence what is wrong
template <typename T>
using Answer = nb::ndarray<nb::numpy, T>;

constexpr int64_t kMost = int64_t{1} << 30;  // tokens, rows and k; far above any vocabulary, far below what overflows
constexpr int64_t kWorthSharing = int64_t{1} << 20;  // logits; fewer are read before other threads have woken up

[[noreturn]] void refuse(const char* name, const std::string& why) {
  throw std::invalid_argument(std::string(name) + " " + why);
}

std::string shape_text(const Array& array) {
  std::string text = "[";
  for (size_t i = 0; i < array.ndim(); ++i) text += (i ? ", " : "") + std::to_string(array.shape(i));
  return text + "]";
}

bool is_contiguous(const Array& array) {
  int64_t stride = 1;
  for (size_t i = array.ndim(); i-- > 0; stride *= static_cast<int64_t>(array.shape(i)))
    if (array.shape(i) > 1 && array.stride(i) != stride) return false;
  return true;
}

void check(const Array& array, const char* name, bool is_type, const char* type) {
  if (array.device_type() != nb::device::cpu::value) refuse(name, "is not in the processor's memory; copy it there");
  if (!is_type) refuse(name, std::string("must be of ") + type + "; convert it first");
  if (array.ndim() < 1 || array.ndim() > 2)
    refuse(name, "has shape " + shape_text(array) + ", expected one row or rows");
  if (array.size() > 0 && !is_contiguous(array)) refuse(name, "is not contiguous; copy it first");
  if (reinterpret_cast<uintptr_t>(array.data()) % sizeof(uint32_t)) refuse(name, "is not aligned; copy it first");
}

Array array_of(const nb::object& object, const char* name) {
  Array array;
  if (!nb::try_cast(object, array)) refuse(name, "must be an array of numbers in this machine's byte order");
  return array;
}

MaskedRows rows_of(const Array& logits, const Array& masks) {
  check(logits, "logits", logits.dtype() == nb::dtype<float>(), "float32");
  check(masks, "masks", masks.dtype() == nb::dtype<uint32_t>() || masks.dtype() == nb::dtype<int32_t>(),
        "uint32 or int32");
  const size_t n_rows = logits.ndim() == 2 ? logits.shape(0) : 1, n_tokens = logits.shape(logits.ndim() - 1);
  if (n_rows > kMost || n_tokens > kMost) refuse("logits", "has more than 2^30 rows or tokens");
  const size_t n_words = static_cast<size_t>(n_mask_words(static_cast<int64_t>(n_tokens)));
  const bool is_one = masks.ndim() == 1;
  if (masks.shape(masks.ndim() - 1) != n_words || (!is_one && masks.shape(0) != n_rows))
    refuse("masks", "has shape " + shape_text(masks) + ", expected [" + std::to_string(n_rows) + ", " +
                        std::to_string(n_words) + "] or [" + std::to_string(n_words) + "] for logits of shape " +
                        shape_text(logits));
  return {.logits = static_cast<const float*>(logits.data()),
          .masks = static_cast<const uint32_t*>(masks.data()),
          .n_rows = static_cast<int64_t>(n_rows),
          .n_tokens = static_cast<int64_t>(n_tokens),
          .mask_stride = is_one ? 0 : static_cast<int64_t>(n_words)};
}

// What Python gave, held on to while it is read.
struct Given {
  Array logits, masks;
  MaskedRows rows;

  Given(const nb::object& given_logits, const nb::object& given_masks)
      : logits(array_of(given_logits, "logits")), masks(array_of(given_masks, "masks")), rows(rows_of(logits, masks)) {}
};

// On the pool's threads where that is worth it and nobody else uses them: a step of the decoder is not waited for.
template <typename Call>
void with_pool(const MaskedRows& rows, Call call) {
  nb::gil_scoped_release no_gil;
  if (rows.n_rows < 2 || rows.n_rows * rows.n_tokens < kWorthSharing) return call(nullptr);
  const auto lock = try_lock_pool();
  call(lock ? &the_pool() : nullptr);
}

// An array whose memory is its own.
template <typename T>
Answer<T> numbers(std::initializer_list<size_t> shape) {
  size_t n = 1;
  for (size_t length : shape) n *= length;
  T* data = new T[n];
  const nb::capsule owner(data, [](void* it) noexcept { delete[] static_cast<T*>(it); });
  return Answer<T>(data, shape, owner);
}

Answer<int32_t> argmax(const nb::object& logits, const nb::object& masks) {
  const Given given(logits, masks);
  const MaskedRows& rows = given.rows;
  Answer<int32_t> tokens = numbers<int32_t>({static_cast<size_t>(rows.n_rows)});
  with_pool(rows, [&](WorkPool* pool) { masked_argmax(rows, pool, tokens.data()); });
  return tokens;
}

std::pair<Answer<int32_t>, Answer<float>> top_k(const nb::object& logits, const nb::object& masks, int64_t k) {
  const Given given(logits, masks);
  const MaskedRows& rows = given.rows;
  if (k < 0 || k > kMost) refuse("k", "is " + std::to_string(k) + ", expected 0 to 2^30");
  const size_t n_rows = static_cast<size_t>(rows.n_rows), n_columns = static_cast<size_t>(k);
  Answer<int32_t> tokens = numbers<int32_t>({n_rows, n_columns});
  Answer<float> values = numbers<float>({n_rows, n_columns});
  with_pool(rows, [&](WorkPool* pool) { masked_top_k(rows, k, pool, tokens.data(), values.data()); });
  return {std::move(tokens), std::move(values)};
}

Answer<float> log_sum_exp(const nb::object& logits, const nb::object& masks) {
  const Given given(logits, masks);
  const MaskedRows& rows = given.rows;
  Answer<float> answers = numbers<float>({static_cast<size_t>(rows.n_rows)});
  with_pool(rows, [&](WorkPool* pool) { masked_log_sum_exp(rows, pool, answers.data()); });
  return answers;
}

}  // namespace

void bind(nb::module_& m) {
  m.def("masked_argmax", &argmax, "logits"_a, "masks"_a);
  m.def("masked_top_k", &top_k, "logits"_a, "masks"_a, "k"_a);
  m.def("masked_log_sum_exp", &log_sum_exp, "logits"_a, "masks"_a);
}

}  // namespace treefill::logits
