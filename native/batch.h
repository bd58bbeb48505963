#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

#include "search.h"
#include "threads.h"

namespace regal {

// Runs evaluations base, base + 1, ..., at most `count` of them, on all workers. run(i, worker)
// does evaluation base + i and returns whether it ends the search. Returns how many count: those
// up to the first that ends it, or those before the deadline. Evaluations before the end always
// run, so that it does not depend on which thread is faster; a few later ones are to be ignored.
// Evaluation 0 runs in any case.
template <typename Run>
int64_t run_numbered(Workers& workers, const Deadline& deadline, int64_t base, int64_t count,
                     const Run& run) {
  std::atomic<int64_t> end{count};
  const int64_t done = workers.run(count, [&](int64_t i, int worker) {
    if (i > end.load() || (base + i > 0 && deadline.has_passed())) return false;
    if (run(i, worker)) {
      int64_t lowest = end.load();
      while (i < lowest && !end.compare_exchange_weak(lowest, i)) {
      }
    }
    return true;
  });
  return std::min({done, end.load() + 1, count});
}

}  // namespace regal
