#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fusion_groups.h"
#include "fusion_kernels.h"
#include "fusion_problem.h"

namespace regal {

// A kernel of a plan: ops that run as one, or without ops a copy of `tensor` into `layout`.
struct FusedKernel {
  std::vector<int32_t> ops;  // in an order in which they can run
  int32_t tensor = -1;
  uint8_t layout = 0;
};

// Kernels as the ops of a smaller graph. Storages: those of the graph, then one per copied tensor.
// A storage that only one kernel of several ops uses, which makes and reads it, takes no memory.
class FusedGraph {
 public:
  explicit FusedGraph(const FusionProblem& problem);

  // Kernels: the groups in this sequence, then the copies. All arguments are read, not kept.
  // Cost: O((ops + reads) log).
  void build(const GroupMerger& groups, std::span<const int32_t> sequence, const Layouts& layouts,
             const KernelTimes& times);

  int32_t n_kernels() const { return n_groups_ + static_cast<int32_t>(copied_.size()); }
  int32_t n_groups() const { return n_groups_; }
  int32_t kernel_of(int32_t op) const { return kernel_of_[op]; }
  std::span<const int32_t> copied() const { return copied_; }
  const OrderProblem& problem() const { return order_problem_; }
  // Per in-place row of the problem: its op and its two tensors.
  std::span<const InPlace> pair_tensors() const { return pair_tensors_; }
  // The storage that an op in `layout` touches when it reads `tensor`, or -1.
  int32_t storage_read(const KernelTimes& times, int32_t tensor, uint8_t layout) const;
  // Whether a kernel keeps the storage to itself: it takes no memory then.
  bool is_inner(int32_t storage) const { return is_inner_[storage] != 0; }
  std::span<const int64_t> bytes() const { return bytes_; }  // per storage

 private:
  void add_touches(const GroupMerger& groups, std::span<const int32_t> sequence, const Layouts& layouts,
                   const KernelTimes& times);
  void drop_inner(std::span<const int32_t> sizes);
  void add_in_place(const GroupMerger& groups, std::span<const int32_t> sequence, const Layouts& layouts,
                    const KernelTimes& times);

  const FusionProblem* problem_;
  int32_t n_groups_ = 0;
  std::vector<int32_t> kernel_of_;  // per op
  std::vector<int32_t> copied_;
  std::vector<int32_t> copy_of_;    // per tensor: its number among the copied ones
  std::vector<int64_t> edges_, touches_, bytes_, workspace_, inputs_, outputs_, in_place_;
  std::vector<uint8_t> is_output_;  // per storage
  std::vector<uint8_t> is_read_;
  std::vector<uint8_t> is_inner_;
  std::vector<int32_t> only_user_;  // per storage: -1 none, -2 several, else the kernel
  std::vector<InPlace> pair_tensors_;
  OrderProblem order_problem_;
};

}  // namespace regal
