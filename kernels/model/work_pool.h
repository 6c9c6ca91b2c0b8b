// Pieces of work, taken by whoever is free.
//
// There is no barrier between equal halves: the calling thread takes pieces like every other and can finish alone, so
// a compiler running beside us costs its share of the machine and not a descheduled thread's time slice a product.
// Between jobs a worker looks for the next one for some microseconds before it sleeps: waking takes longer than most.

#ifndef TREEFILL_MODEL_WORK_POOL_H_
#define TREEFILL_MODEL_WORK_POOL_H_

#include <atomic>
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

  static void take_pieces(Job& job);
  void work();

  std::mutex mutex_;
  std::condition_variable job_posted_;
  std::condition_variable helper_left_;
  Job* job_ = nullptr;  // null when there is nothing to help with
  std::atomic<uint64_t> n_posted_{0};
  int n_sleeping_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace treefill

#endif  // TREEFILL_MODEL_WORK_POOL_H_
