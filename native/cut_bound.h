#pragma once
#include <cstdint>
#include <vector>

#include "problem.h"

namespace regal {

// The least bytes that can be live during the step of one op, over all sets of ops that may have run
// before it: a minimum cut. Sharper than `op_bounds`, which counts only what is live in all of them.
//
// The ops that ran are the source side. A storage is two nodes, begun -> over, with its bytes as
// capacity: begun as soon as a toucher ran, over only when all did; precedence edges cannot be cut.
class CutBound {
 public:
  explicit CutBound(const OrderProblem& problem);

  // Bytes of the cut for `op`, less what its in-place pairs can save, plus its workspace.
  // Cost: a maximum flow (Dinic) over n + 2 * storages nodes.
  int64_t during(int32_t op);

 private:
  struct Arc {
    int32_t to;
    int64_t capacity;  // what is left of it
  };

  void add_arc(int32_t from, int32_t to, int64_t capacity);
  void tie(int32_t from, int32_t to);  // an arc that stays only until the next call of during
  bool find_levels();
  int64_t push(int32_t node, int64_t most);
  int32_t begun(int32_t storage) const { return problem_->n_ops + storage; }
  int32_t over(int32_t storage) const { return problem_->n_ops + problem_->n_storages + storage; }

  const OrderProblem* problem_;
  int32_t source_;
  int32_t sink_;
  std::vector<Arc> arcs_;                  // arc i and i ^ 1 are a pair
  std::vector<int64_t> fresh_;             // their capacities before any flow
  std::vector<std::vector<int32_t>> out_;  // node -> its arcs
  std::vector<int32_t> tied_;              // nodes with a temporary arc, in order
  std::vector<int32_t> level_;
  std::vector<size_t> next_;
};

}  // namespace regal
