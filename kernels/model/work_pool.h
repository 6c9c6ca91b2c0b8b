// Pieces of work, taken by whoever is free.
//
// There is no barrier between equal halves: the calling thread takes pieces like every other and can finish alone, so
// a compiler running beside us costs its share of the machine and not a descheduled thread's time slice a product.
// Between jobs a worker looks for the next one for some microseconds before it sleeps: waking takes longer than most.
//
// What remains is a worker that loses its core in the middle of a piece: then the caller waits for it, milliseconds for
// a job of a tenth of one. Where much of the time is lost so, fewer workers are asked for a while, and all again when
// that has passed: the number of threads follows the load.

#ifndef TREEFILL_MODEL_WORK_POOL_H_
#define TREEFILL_MODEL_WORK_POOL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace treefill {

class WorkPool {
 public:
  // n_threads counts the calling thread; 1 starts no other.
  explicit WorkPool(int n_threads);
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  int n_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Threads that share the next job, the caller included.
  int n_active() const { return n_helpers_ + 1; }

  // Calls run(context, i) once for each i in [0, n_pieces), on any thread, in any order; returns when all have
  // returned. One caller at a time. `run` must not throw.
  using Run = void (*)(const void* context, int64_t piece);
  void for_each_piece(int64_t n_pieces, Run run, const void* context);

 private:
  struct Job {
    Run run;
    const void* context;
    int64_t n_pieces;
    std::atomic<int64_t> next{0};
    std::atomic<int> n_helpers{0};  // workers inside take_pieces
  };

  using Clock = std::chrono::steady_clock;

  static void take_pieces(Job& job);
  void work(int index);
  int helpers_wanted();
  void wait_for_helpers(Job& job);
  void count_lost_time(Clock::time_point now, Clock::duration waited);

  std::mutex mutex_;
  std::condition_variable job_posted_;
  std::condition_variable helper_left_;
  Job* job_ = nullptr;  // null when there is nothing to help with
  int n_wanted_ = 0;    // workers that may help with job_, the first so many
  std::atomic<uint64_t> n_posted_{0};
  int n_sleeping_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;

  // The caller's alone.
  int n_helpers_ = 0;  // workers asked to help at present
  Clock::time_point window_began_{};
  Clock::duration lost_{};  // waited for workers without a core since the window began
  Clock::time_point ask_all_at_{};
  Clock::duration patience_{};  // how long fewer are asked, the next time
};

}  // namespace treefill

#endif  // TREEFILL_MODEL_WORK_POOL_H_
