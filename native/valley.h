#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "downset.h"
#include "flow.h"
#include "problem.h"

namespace regal {

// Answers whether a downset D is a valley above a smaller one A: no downset between them (A within T
// within D) has fewer live bytes. Then all of D - A may run right after A (see ForcedMoves).
class ValleyTest {
 public:
  explicit ValleyTest(const OrderProblem& problem) : problem_(&problem), node_of_op_(problem.n_ops, -1) {}

  // D is what is done; A its first `size_below` ops.
  // Cost: a minimum cut over the ops of D - A and their storages.
  bool is_valley(const Downset& done, int32_t size_below);

 private:
  const OrderProblem* problem_;
  std::vector<int32_t> node_of_op_;  // -1: not in D - A
  std::vector<int32_t> storages_;
  Flow flow_;
};

}  // namespace regal
