#include "model/read_through.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace treefill {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 18;
constexpr int64_t kLine = 64;
constexpr int64_t kAhead = 1024;  // as the kernels ask ahead

struct Job {
  std::vector<Bytes> pieces;
  std::atomic<uint64_t>* total;
};

void read_piece(const void* context, int64_t index) {
  const Job& job = *static_cast<const Job*>(context);
  const Bytes& piece = job.pieces[static_cast<size_t>(index)];
  uint64_t sums[kLine / 8] = {};
  for (int64_t at = 0; at + kLine <= piece.n; at += kLine) {
    __builtin_prefetch(piece.data + at + kAhead);
    uint64_t words[kLine / 8];
    std::memcpy(words, piece.data + at, kLine);
    for (int i = 0; i < kLine / 8; ++i) sums[i] ^= words[i];
  }
  uint64_t total = 0;
  for (uint64_t sum : sums) total ^= sum;
  job.total->fetch_xor(total, std::memory_order_relaxed);
}

}  // namespace

uint64_t read_through(const std::vector<Bytes>& all, WorkPool& pool) {
  std::atomic<uint64_t> total{0};
  Job job{{}, &total};
  for (const Bytes& bytes : all)
    for (int64_t at = 0; at < bytes.n; at += kPieceBytes)
      job.pieces.push_back({bytes.data + at, std::min(kPieceBytes, bytes.n - at)});
  pool.for_each_piece(static_cast<int64_t>(job.pieces.size()), read_piece, &job);
  return total.load();
}

}  // namespace treefill
