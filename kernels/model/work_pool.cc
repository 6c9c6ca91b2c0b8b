#include "model/work_pool.h"

#include <system_error>

namespace treefill {

WorkPool::WorkPool(int n_threads) {
  for (int i = 1; i < n_threads; ++i) {
    try {
      workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      break;  // the system has no more threads for us: the caller can finish alone
    }
  }
}

WorkPool::~WorkPool() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  job_posted_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void WorkPool::for_each_piece(int64_t n_pieces, Run run, const void* context) {
  Job job{run, context, n_pieces};
  const bool alone = workers_.empty() || n_pieces <= 1;
  if (!alone) {
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
    }
    job_posted_.notify_all();
  }
  take_pieces(job);
  if (alone) return;
  // No piece is left to take. Who has not joined by now never will; wait for those still inside one.
  std::unique_lock lock(mutex_);
  job_ = nullptr;
  helper_left_.wait(lock, [&] { return job.n_helpers == 0; });
}

void WorkPool::take_pieces(Job& job) {
  for (;;) {
    const int64_t piece = job.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= job.n_pieces) return;
    job.run(job.context, piece);
  }
}

void WorkPool::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    job_posted_.wait(
        lock, [this] { return stopping_ || (job_ && job_->next.load(std::memory_order_relaxed) < job_->n_pieces); });
    if (stopping_) return;
    Job& job = *job_;
    ++job.n_helpers;
    lock.unlock();
    take_pieces(job);
    lock.lock();
    if (--job.n_helpers == 0) helper_left_.notify_one();
  }
}

}  // namespace treefill
