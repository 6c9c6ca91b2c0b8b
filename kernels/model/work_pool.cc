#include "model/work_pool.h"

#include <algorithm>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace treefill {
namespace {

// About 20 microseconds: longer than from one product of a decode step to the next, and far shorter than a time slice.
constexpr int kSpins = 500;

// Over so long it is counted how much of the time the caller waits for workers that have lost their core. More than the
// share is worse than working without them: decoding is bound by memory, which one thread fills to two thirds.
constexpr std::chrono::milliseconds kWindow{30};
constexpr double kShare = 0.4;
// So long fewer are asked then; twice as long when the same happens as soon as all are asked again.
constexpr std::chrono::milliseconds kPatienceMin{60};
constexpr std::chrono::milliseconds kPatienceMax{240};

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Looks for a while; whether it has come to pass.
template <typename Condition>
bool spin_until(Condition condition) {
  for (int i = 0; i < kSpins; ++i) {
    if (condition()) return true;
    pause();
  }
  return false;
}

}  // namespace

WorkPool::WorkPool(int n_threads) : patience_(kPatienceMin) {
  for (int i = 1; i < n_threads; ++i) {
    try {
      workers_.emplace_back([this, i] { work(i - 1); });
    } catch (const std::system_error&) {
      break;  // the system has no more threads for us: the caller can finish alone
    }
  }
  n_helpers_ = static_cast<int>(workers_.size());
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
  const int n_helpers = n_pieces > 1 ? helpers_wanted() : 0;
  if (n_helpers == 0) return take_pieces(job);
  bool someone_sleeps;
  {
    std::lock_guard lock(mutex_);
    job_ = &job;
    n_wanted_ = n_helpers;
    n_posted_.fetch_add(1, std::memory_order_release);
    someone_sleeps = n_sleeping_ > 0;
  }
  if (someone_sleeps) job_posted_.notify_all();
  take_pieces(job);
  // No piece is left to take. Who has not joined by now never will; wait for those still inside one.
  {
    std::lock_guard lock(mutex_);
    job_ = nullptr;
  }
  wait_for_helpers(job);
}

void WorkPool::wait_for_helpers(Job& job) {
  const auto is_left = [&] { return job.n_helpers.load(std::memory_order_acquire) == 0; };
  if (spin_until(is_left)) return;
  const Clock::time_point began = Clock::now();
  {
    std::unique_lock lock(mutex_);
    helper_left_.wait(lock, is_left);
  }
  const Clock::time_point now = Clock::now();
  count_lost_time(now, now - began);
}

int WorkPool::helpers_wanted() {
  const int n_workers = static_cast<int>(workers_.size());
  if (n_helpers_ == n_workers) return n_workers;
  const Clock::time_point now = Clock::now();
  if (now >= ask_all_at_) {
    n_helpers_ = n_workers;
    window_began_ = now;
    lost_ = {};
  }
  return n_helpers_;
}

void WorkPool::count_lost_time(Clock::time_point now, Clock::duration waited) {
  lost_ += waited;
  const Clock::duration window = now - window_began_;
  if (window < kWindow) return;
  if (lost_ > kShare * window) {
    const bool is_soon_again = window_began_ - ask_all_at_ < kWindow;
    patience_ = is_soon_again ? std::min<Clock::duration>(2 * patience_, kPatienceMax) : kPatienceMin;
    n_helpers_ /= 2;
    ask_all_at_ = now + patience_;
  }
  window_began_ = now;
  lost_ = {};
}

void WorkPool::take_pieces(Job& job) {
  for (;;) {
    const int64_t piece = job.next.fetch_add(1, std::memory_order_relaxed);
    if (piece >= job.n_pieces) return;
    job.run(job.context, piece);
  }
}

void WorkPool::work(int index) {
  uint64_t n_seen = 0;
  bool is_wanted = true;  // who was not asked the last time goes to sleep at once
  const auto is_posted = [&] { return n_posted_.load(std::memory_order_acquire) != n_seen; };
  for (;;) {
    if (is_wanted) spin_until(is_posted);
    std::unique_lock lock(mutex_);
    ++n_sleeping_;
    job_posted_.wait(lock, [&] { return stopping_ || is_posted(); });
    --n_sleeping_;
    if (stopping_) return;
    n_seen = n_posted_.load(std::memory_order_relaxed);
    is_wanted = index < n_wanted_;
    if (!job_ || !is_wanted) continue;
    Job& job = *job_;
    job.n_helpers.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    take_pieces(job);
    // From here on the job may be gone: its owner waits for nothing but this count.
    if (job.n_helpers.fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
    lock.lock();
    helper_left_.notify_one();
  }
}

}  // namespace treefill
