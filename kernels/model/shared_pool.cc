#include "model/shared_pool.h"

#include <algorithm>
#include <memory>
#include <thread>

namespace treefill {
namespace {

struct SharedPool {
  std::mutex mutex;
  std::unique_ptr<WorkPool> pool;
};

SharedPool* shared = new SharedPool;
int wanted_threads = 0;

int default_threads() { return std::max(1, std::min(8, static_cast<int>(std::thread::hardware_concurrency()))); }

}  // namespace

std::unique_lock<std::mutex> lock_pool() { return std::unique_lock(shared->mutex); }

std::unique_lock<std::mutex> try_lock_pool() { return {shared->mutex, std::try_to_lock}; }

WorkPool& the_pool() {
  if (!shared->pool) shared->pool = std::make_unique<WorkPool>(wanted_threads ? wanted_threads : default_threads());
  return *shared->pool;
}

void set_pool_threads(int n_threads) {
  wanted_threads = n_threads;
  shared->pool.reset();
}

void begin_pool_anew() { shared = new SharedPool; }

}  // namespace treefill
