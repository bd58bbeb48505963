#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fusion_kernels.h"
#include "fusion_problem.h"

namespace regal {

// A partition of the ops into groups that stay legal as it grows coarser: connected by fusible pairs,
// of one layout, with one anchor at most, and such that the groups as a whole depend on each other in
// no circle. Groups are named by one of their ops.
class GroupMerger {
 public:
  explicit GroupMerger(const FusionProblem& problem);

  // Every op alone.
  void start(const Layouts& layouts);

  int32_t group_of(int32_t op) const { return group_[op]; }
  std::span<const int32_t> members(int32_t group) const { return members_[group]; }
  // 0 where nothing depends on it.
  uint8_t layout_of(int32_t group) const { return layout_[group] < 0 ? uint8_t{0} : static_cast<uint8_t>(layout_[group]); }
  // The groups, each after those that it depends on.
  void list(std::vector<int32_t>& groups) const;

  // Whether the group of `producer` and that of `consumer` may become one, where the pair is fusible.
  // Cost: the ops between the two in the present sequence, at most.
  bool may_merge(int32_t producer, int32_t consumer);
  // The ops of both, producer first, as merge() would list them, and their layout.
  void join(int32_t producer, int32_t consumer, std::vector<int32_t>& ops, uint8_t& layout) const;
  // Only after may_merge() said yes.
  void merge(int32_t producer, int32_t consumer);

 private:
  bool finds_detour(int32_t from, int32_t to);

  const FusionProblem* problem_;
  std::vector<int32_t> group_;                 // per op
  std::vector<std::vector<int32_t>> members_;  // per group
  std::vector<int8_t> layout_;                 // per group; -1: any
  std::vector<uint8_t> has_anchor_;            // per group
  std::vector<uint8_t> is_apart_;              // per group
  std::vector<int32_t> place_;                 // per group: its slot
  std::vector<int32_t> slot_;                  // the groups in a legal sequence; -1: empty
  std::vector<int32_t> behind_;                // groups reached from `from`, marked by stamp_
  std::vector<int32_t> mark_;
  std::vector<int32_t> stack_;
  std::vector<int32_t> moved_;
  int32_t stamp_ = 0;
};

}  // namespace regal
