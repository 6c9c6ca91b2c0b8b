// Reading memory and nothing else, as quickly as the machine can: what decoding is measured against.

#ifndef TREEFILL_MODEL_READ_THROUGH_H_
#define TREEFILL_MODEL_READ_THROUGH_H_

#include <cstdint>
#include <vector>

#include "model/work_pool.h"

namespace treefill {

struct Bytes {
  const uint8_t* data;
  int64_t n;
};

// Reads every whole 64 bytes of all once, on the pool's threads; returns their words' exclusive or, so that it is done.
uint64_t read_through(const std::vector<Bytes>& all, WorkPool& pool);

}  // namespace treefill

#endif  // TREEFILL_MODEL_READ_THROUGH_H_
