// Every piece of every job is run exactly once, and none after its job has returned; and a helper that holds up its
// caller is not asked again for a while.

#include "model/work_pool.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <set>
#include <thread>
#include <vector>

namespace treefill {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Generous: under ThreadSanitizer, on a machine that does other things, too.
constexpr std::chrono::seconds kDeadline{5};

// A pool that lost much time asks for more helpers no sooner.
constexpr milliseconds kPatience{60};

template <typename Condition>
bool happens(Condition condition) {
  const Clock::time_point deadline = Clock::now() + kDeadline;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

struct Job {
  std::vector<std::atomic<int>> runs;
  std::vector<std::thread::id>
      runners;  // no atomics: what pieces write is the caller's to read once they have returned
  std::atomic<bool> returned{false};
  std::atomic<bool> late{false};
  std::chrono::microseconds piece_takes{0};
  explicit Job(int64_t n_pieces) : runs(static_cast<size_t>(n_pieces)), runners(runs.size()) {}

  int n_runners() const { return static_cast<int>(std::set<std::thread::id>(runners.begin(), runners.end()).size()); }
};

void count(const void* context, int64_t piece) {
  Job& job = *static_cast<Job*>(const_cast<void*>(context));
  if (job.returned.load()) job.late.store(true);
  if (job.piece_takes.count() > 0) std::this_thread::sleep_for(job.piece_takes);
  job.runners[static_cast<size_t>(piece)] = std::this_thread::get_id();
  job.runs[static_cast<size_t>(piece)].fetch_add(1);
}

bool was_run_once(const Job& job) {
  for (const std::atomic<int>& runs : job.runs)
    if (runs.load() != 1) return false;
  return !job.late.load();
}

bool runs_each_piece_once(WorkPool& pool, int64_t n_pieces) {
  Job job(n_pieces);
  pool.for_each_piece(n_pieces, count, &job);
  job.returned.store(true);
  return was_run_once(job);
}

// Two pieces, of which the caller leaves its own only when a helper is inside the other one. That one then takes
// `helper_takes` longer, as if its core had been given to someone else.
struct Meeting {
  milliseconds helper_takes{0};
  std::atomic<int> n_helpers{0};
  std::atomic<bool> caller_leaves{false};
  std::thread::id caller = std::this_thread::get_id();
};

void meet(const void* context, int64_t) {
  Meeting& meeting = *static_cast<Meeting*>(const_cast<void*>(context));
  if (std::this_thread::get_id() == meeting.caller) {
    happens([&] { return meeting.n_helpers.load() > 0; });
    meeting.caller_leaves.store(true);
  } else {
    meeting.n_helpers.fetch_add(1);
    // With two helpers inside, the caller came too late for a piece.
    happens([&] { return meeting.caller_leaves.load() || meeting.n_helpers.load() == 2; });
    std::this_thread::sleep_for(meeting.helper_takes);
  }
}

// Whether a helper that is asked comes, before the deadline.
bool helper_comes(WorkPool& pool, milliseconds helper_takes) {
  Meeting meeting{.helper_takes = helper_takes};
  pool.for_each_piece(2, meet, &meeting);
  return meeting.n_helpers.load() > 0;
}

bool asks_all_again(WorkPool& pool) {
  bool each_once = true;
  const bool all = happens([&] {
    each_once = runs_each_piece_once(pool, 64) && each_once;
    return pool.n_active() == pool.n_threads();
  });
  return all && each_once;
}

// Of two threads: where the helper sleeps in its pieces for most of the time, the caller soon goes on alone. On a busy
// machine the caller may have been away so long that it asks again: that proves nothing, once more.
bool goes_on_alone_when_waiting_is_most_of_the_time(WorkPool& pool) {
  bool alone = true;
  const bool was_conclusive = happens([&] {
    if (!asks_all_again(pool)) return false;
    Clock::time_point began = Clock::now();
    const bool is_left_alone = happens([&] {
      began = Clock::now();
      helper_comes(pool, milliseconds(5));
      return pool.n_active() == 1;
    });
    if (!is_left_alone) return false;
    Job job(64);
    pool.for_each_piece(64, count, &job);
    if (Clock::now() - began >= kPatience) return false;
    alone = was_run_once(job) && job.n_runners() == 1 && pool.n_active() == 1;
    return true;
  });
  return was_conclusive && alone;
}

// One lost core in many jobs is no reason: what the helpers bring is more.
bool keeps_its_helpers(WorkPool& pool) {
  return happens([&] {
    if (!asks_all_again(pool)) return false;
    helper_comes(pool, milliseconds(5));
    const Clock::time_point end = Clock::now() + milliseconds(60);
    bool kept = true, each_once = true;
    while (Clock::now() < end) {
      each_once = runs_each_piece_once(pool, 64) && each_once;
      kept = kept && pool.n_active() == pool.n_threads();
    }
    return kept && each_once;
  });
}

// Half as many helpers each time, until there is none, and every piece is run by those that are left.
bool asks_fewer_and_fewer(WorkPool& pool) {
  bool as_expected = true;
  const bool none_left = happens([&] {
    const int n_before = pool.n_active(), n_all = pool.n_threads();
    if (n_before == 1) return true;
    const Clock::time_point began = Clock::now();
    helper_comes(pool, milliseconds(5));
    const int n = pool.n_active();
    const bool is_half = n == (n_before + 1) / 2 || n == (n_all + 1) / 2;
    const bool was_kept = n == n_before || n == n_all;
    Job job(64);
    job.piece_takes = std::chrono::microseconds(20);
    pool.for_each_piece(64, count, &job);
    const bool few_enough = job.n_runners() <= n || Clock::now() - began >= kPatience;
    as_expected = as_expected && (is_half || was_kept) && was_run_once(job) && few_enough;
    return false;
  });
  return none_left && as_expected;
}

}  // namespace
}  // namespace treefill

int main() {
  using namespace treefill;
  int n_passed = 0, n_failed = 0;
  const auto expect = [&](bool holds, const char* what, int n_threads) {
    ++(holds ? n_passed : n_failed);
    if (!holds) std::printf("with %d threads it is not so that the pool %s\n", n_threads, what);
  };
  for (int n_threads : {1, 2, 3, 8}) {
    WorkPool pool(n_threads);
    for (int round = 0; round < 200; ++round)
      for (int64_t n_pieces : {0, 1, 2, 7, 64})
        expect(runs_each_piece_once(pool, n_pieces), "runs each piece once", n_threads);
    expect(asks_all_again(pool), "asks all helpers when none holds it up", n_threads);
  }
  {
    WorkPool pool(2);
    expect(helper_comes(pool, milliseconds(0)), "is helped", 2);
    expect(keeps_its_helpers(pool), "keeps its helpers when it is held up once", 2);
    for (int round = 0; round < 3 && n_failed == 0; ++round) {
      expect(goes_on_alone_when_waiting_is_most_of_the_time(pool), "goes on alone when waiting is most of its time", 2);
      expect(asks_all_again(pool), "asks again after some time", 2);
      expect(helper_comes(pool, milliseconds(0)), "is helped again", 2);
    }
  }
  {
    WorkPool pool(8);
    expect(asks_fewer_and_fewer(pool), "asks fewer and fewer helpers", 8);
    expect(asks_all_again(pool), "asks again after some time", 8);
  }
  std::printf("work pool, %d passed, %d failed\n", n_passed, n_failed);
  return n_failed != 0;
}
