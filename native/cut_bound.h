#pragma once
#include <cstdint>

#include "flow.h"
#include "problem.h"

namespace regal {

// The least bytes that can be live during the step of one op, over all sets of ops that may have run
// before it: a minimum cut. Sharper than `op_bounds`, which counts only what is live in all of them.
//
// The ops that ran are the source side. A storage is an arc begun -> over with its bytes as capacity:
// begun as soon as a toucher ran, over only when all did. Precedence arcs cannot be cut.
class CutBound {
 public:
  explicit CutBound(const OrderProblem& problem) : problem_(&problem) {}

  // Bytes of the cut for `op`, less what its in-place pairs can save, plus its workspace.
  // Cost: a maximum flow over n + 2 * storages nodes.
  int64_t during(int32_t op);

 private:
  const OrderProblem* problem_;
  Flow flow_;
};

}  // namespace regal
