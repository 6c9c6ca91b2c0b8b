#include "model/kv_blocks.h"

#include <cmath>
#include <cstring>

namespace treefill {
namespace {

int64_t bytes_a_number(KvType type) {
  switch (type) {
    case KvType::kFloat32:
      return 4;
    case KvType::kBfloat16:
      return 2;
    case KvType::kInt8:
      return 1;
  }
  return 4;
}

int64_t bytes_a_head(const KvShape& shape) {
  const int64_t numbers = 2 * shape.block_tokens * shape.head_dim * bytes_a_number(shape.type);
  const int64_t scales = shape.type == KvType::kInt8 ? 2 * shape.block_tokens * int64_t{sizeof(float)} : 0;
  return numbers + scales;
}

// To the nearest, halves to even; what is not a number stays so.
uint16_t to_bfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void widen(const uint16_t* from, int64_t n, float* to) {
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t bits = static_cast<uint32_t>(from[i]) << 16;
    std::memcpy(&to[i], &bits, sizeof bits);
  }
}

// Writes q [n] with `stride` between two, and returns the scale.
float quantise(const float* x, const float* less, int64_t n, int8_t* q, int64_t stride) {
  float absmax = 0.0f;
  for (int64_t i = 0; i < n; ++i) {
    const float magnitude = std::fabs(less ? x[i] - less[i] : x[i]);
    absmax = magnitude > absmax ? magnitude : absmax;
  }
  const float inverse = absmax > 0.0f ? 127.0f / absmax : 0.0f;
  for (int64_t i = 0; i < n; ++i) {
    const float rounded = std::nearbyint((less ? x[i] - less[i] : x[i]) * inverse);
    const bool in_range = rounded >= -127.0f && rounded <= 127.0f;
    q[i * stride] = in_range ? static_cast<int8_t>(rounded) : int8_t{0};
  }
  return absmax / 127.0f;
}

}  // namespace

KvBlocks::KvBlocks(const KvShape& shape)
    : shape_(shape),
      width_(bytes_a_number(shape.type)),
      head_bytes_(bytes_a_head(shape)),
      block_bytes_(bytes_a_block(shape)),
      memory_(new std::byte[static_cast<size_t>(block_bytes_ * shape.n_blocks)]) {}

int64_t KvBlocks::bytes_a_block(const KvShape& shape) {
  return shape.n_layers * shape.n_kv_heads * bytes_a_head(shape);
}

KvBlocks::Head KvBlocks::at(int64_t block, int64_t layer, int64_t head) const {
  std::byte* keys = memory_.get() + block * block_bytes_ + (layer * shape_.n_kv_heads + head) * head_bytes_;
  std::byte* values = keys + shape_.block_tokens * shape_.head_dim * width_;
  float* scales = reinterpret_cast<float*>(values + shape_.block_tokens * shape_.head_dim * width_);
  return {keys, values, scales, scales + shape_.block_tokens};
}

void KvBlocks::write(int64_t block, int64_t layer, int64_t head, int64_t slot, const float* key, const float* key_bias,
                     const float* value) {
  const Head at_head = at(block, layer, head);
  const int64_t dim = shape_.head_dim;
  const int64_t key_at = slot / kLanes * dim * kLanes + slot % kLanes, value_at = slot * dim;
  switch (shape_.type) {
    case KvType::kFloat32: {
      float* keys = reinterpret_cast<float*>(at_head.keys) + key_at;
      for (int64_t i = 0; i < dim; ++i) keys[i * kLanes] = key[i];
      std::memcpy(reinterpret_cast<float*>(at_head.values) + value_at, value, static_cast<size_t>(dim) * sizeof *value);
      return;
    }
    case KvType::kBfloat16: {
      uint16_t* keys = reinterpret_cast<uint16_t*>(at_head.keys) + key_at;
      uint16_t* values = reinterpret_cast<uint16_t*>(at_head.values) + value_at;
      for (int64_t i = 0; i < dim; ++i) keys[i * kLanes] = to_bfloat16(key[i]);
      for (int64_t i = 0; i < dim; ++i) values[i] = to_bfloat16(value[i]);
      return;
    }
    case KvType::kInt8:
      at_head.key_scales[slot] = quantise(key, key_bias, dim, reinterpret_cast<int8_t*>(at_head.keys) + key_at, kLanes);
      at_head.value_scales[slot] =
          quantise(value, nullptr, dim, reinterpret_cast<int8_t*>(at_head.values) + value_at, 1);
      return;
  }
}

const float* KvBlocks::keys(int64_t block, int64_t layer, int64_t head, int64_t slot, float* scratch) const {
  const Head at_head = at(block, layer, head);
  const int64_t dim = shape_.head_dim, n = kKvRun * dim;
  switch (shape_.type) {
    case KvType::kFloat32:
      return reinterpret_cast<const float*>(at_head.keys) + slot * dim;
    case KvType::kBfloat16:
      widen(reinterpret_cast<const uint16_t*>(at_head.keys) + slot * dim, n, scratch);
      return scratch;
    case KvType::kInt8: {
      const int8_t* q = reinterpret_cast<const int8_t*>(at_head.keys) + slot * dim;
      for (int64_t group = 0; group < kKvRun / kLanes; ++group)
        for (int64_t i = 0; i < dim; ++i)
          for (int64_t lane = 0; lane < kLanes; ++lane) {
            const int64_t at_number = (group * dim + i) * kLanes + lane;
            scratch[at_number] = static_cast<float>(q[at_number]) * at_head.key_scales[slot + group * kLanes + lane];
          }
      return scratch;
    }
  }
  return scratch;
}

const float* KvBlocks::values(int64_t block, int64_t layer, int64_t head, int64_t slot, float* scratch) const {
  const Head at_head = at(block, layer, head);
  const int64_t dim = shape_.head_dim, n = kKvRun * dim;
  switch (shape_.type) {
    case KvType::kFloat32:
      return reinterpret_cast<const float*>(at_head.values) + slot * dim;
    case KvType::kBfloat16:
      widen(reinterpret_cast<const uint16_t*>(at_head.values) + slot * dim, n, scratch);
      return scratch;
    case KvType::kInt8: {
      const int8_t* q = reinterpret_cast<const int8_t*>(at_head.values) + slot * dim;
      for (int64_t token = 0; token < kKvRun; ++token)
        for (int64_t i = 0; i < dim; ++i)
          scratch[token * dim + i] = static_cast<float>(q[token * dim + i]) * at_head.value_scales[slot + token];
      return scratch;
    }
  }
  return scratch;
}

void KvBlocks::copy(int64_t from, int64_t to, int64_t n_tokens) {
  // Keys lie in groups of kLanes tokens: the last group is copied whole.
  const size_t n_keys = static_cast<size_t>((n_tokens + kLanes - 1) / kLanes * kLanes * shape_.head_dim * width_);
  const size_t n_values = static_cast<size_t>(n_tokens * shape_.head_dim * width_);
  for (int64_t layer = 0; layer < shape_.n_layers; ++layer) {
    for (int64_t head = 0; head < shape_.n_kv_heads; ++head) {
      const Head source = at(from, layer, head), target = at(to, layer, head);
      std::memcpy(target.keys, source.keys, n_keys);
      std::memcpy(target.values, source.values, n_values);
      if (shape_.type != KvType::kInt8) continue;
      const size_t n_scales = static_cast<size_t>(n_tokens) * sizeof(float);
      std::memcpy(target.key_scales, source.key_scales, n_scales);
      std::memcpy(target.value_scales, source.value_scales, n_scales);
    }
  }
}

}  // namespace treefill
