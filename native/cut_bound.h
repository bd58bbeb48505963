#pragma once
#include <cstdint>
#include <vector>

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
  // Cost: a maximum flow over the ops that may run before and after `op`, and their storages.
  int64_t during(int32_t op);

  // Arcs looked at by all calls so far.
  int64_t arcs_seen() const { return flow_.arcs_seen(); }

 private:
  void mark(int32_t op, const Csr& rows, int32_t node);

  const OrderProblem* problem_;
  std::vector<int32_t> node_;  // per op: source, sink, or its own
  std::vector<int32_t> queue_;
  Flow flow_;
};

}  // namespace regal
