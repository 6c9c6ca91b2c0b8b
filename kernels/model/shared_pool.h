// The process's one pool of threads, and who may use it: one caller at a time.
//
// It is never destroyed: at exit, threads of the interpreter may still be multiplying. A forked child has none of the
// parent's threads, so it begins anew.

#ifndef TREEFILL_MODEL_SHARED_POOL_H_
#define TREEFILL_MODEL_SHARED_POOL_H_

#include <mutex>

#include "model/work_pool.h"

namespace treefill {

// Whoever holds the lock may use the pool; an empty one of `try_lock_pool` says that somebody else does.
std::unique_lock<std::mutex> lock_pool();
std::unique_lock<std::mutex> try_lock_pool();

// The pool, started where it is not there. The caller holds the lock.
WorkPool& the_pool();

// From the next use on; 0 chooses. The caller holds the lock.
void set_pool_threads(int n_threads);

// For a forked child, which has none of the threads and may find the lock taken by one of them.
void begin_pool_anew();

}  // namespace treefill

#endif  // TREEFILL_MODEL_SHARED_POOL_H_
