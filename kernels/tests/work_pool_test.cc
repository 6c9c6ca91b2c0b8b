// Every piece of every job is run exactly once, and none after its job has returned.

#include "model/work_pool.h"

#include <atomic>
#include <cstdio>
#include <vector>

namespace treefill {
namespace {

struct Job {
  std::vector<std::atomic<int>> runs;
  std::atomic<bool> returned{false};
  std::atomic<bool> late{false};
  explicit Job(int64_t n_pieces) : runs(static_cast<size_t>(n_pieces)) {}
};

void count(const void* context, int64_t piece) {
  Job& job = *static_cast<Job*>(const_cast<void*>(context));
  if (job.returned.load()) job.late.store(true);
  job.runs[static_cast<size_t>(piece)].fetch_add(1);
}

bool runs_each_piece_once(WorkPool& pool, int64_t n_pieces) {
  Job job(n_pieces);
  pool.for_each_piece(n_pieces, count, &job);
  job.returned.store(true);
  for (const std::atomic<int>& runs : job.runs)
    if (runs.load() != 1) return false;
  return !job.late.load();
}

}  // namespace
}  // namespace treefill

int main() {
  using namespace treefill;
  int n_passed = 0, n_failed = 0;
  for (int n_threads : {1, 2, 3, 8}) {
    WorkPool pool(n_threads);
    for (int round = 0; round < 200; ++round)
      for (int64_t n_pieces : {0, 1, 2, 7, 64}) (runs_each_piece_once(pool, n_pieces) ? n_passed : n_failed)++;
  }
  std::printf("%d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
