#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "downset.h"
#include "effort.h"
#include "problem.h"

namespace regal {

enum class Answer { No, Yes, Unknown };

// The answer to: is there an order whose peak is at most a budget?
struct OrderWithin {
  Answer answer = Answer::Unknown;
  std::vector<int32_t> order;  // such an order, for Yes
  // No holds for every budget below this one: the cheapest step that was ruled out. Forced moves do not
  // count; they are as right within a larger budget.
  int64_t next_budget = std::numeric_limits<int64_t>::max();
};

// Depth-first search over the downsets that can be reached within `budget`, each visited once.
// In every downset, moves that can never hurt are made at once (see ForcedMoves). `backward` is
// reversed(problem): it tells which ops may wait until the end.
// Spends one unit per visited downset (more if it has many moves); gives up (Unknown) when `effort` or
// `memory_bytes` is gone.
OrderWithin order_within(const OrderProblem& problem, const OrderProblem& backward, int64_t budget,
                         Effort& effort, int64_t memory_bytes = int64_t{1} << 30);

// Moves that some best continuation starts with.
//
// Let S be ops that can run next, in some sequence whose steps all stay within the budget, such that
// no downset between D and D + S has fewer live bytes than D + S. Then S may run at once. Proof: take
// any continuation within the budget and move S to its front. Let u be an op outside S, run at E before
// and at E + S now. Live bytes are submodular in the downset (a storage starts with its first toucher:
// coverage; it ends with its last: minus a conjunction), so
//   live(E + S) - live(E) <= live(D + S) - live(D + (S and E)) <= 0.
// The storages that u starts can only become fewer and those it frees more. An in-place pair that is
// lost because S touched its output costs what that output, no longer started by u, saves; and one
// more available input never makes the greedy choice of pairs smaller (an alternating path from it
// gains 0 or 1 pair, of equal bytes). So the step of u costs no more than before. The same holds
// in a problem turned around, where it says which moves can wait.
class ForcedMoves {
 public:
  // Runs forced moves until none is left.
  void run_all(Downset& done, int64_t budget);

  // Steps whose cost was computed so far.
  int64_t steps_seen() const { return steps_seen_; }

 private:
  bool run_one(Downset& done, int64_t budget);
  bool run_descent(Downset& done, int64_t budget, int32_t first);

  int64_t steps_seen_ = 0;
};

}  // namespace regal
