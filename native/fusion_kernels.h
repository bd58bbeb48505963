#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fusion_layout.h"
#include "fusion_problem.h"

namespace regal {

// What lies where once layouts are known, and what a kernel takes.
//
// A *body* is bytes that somebody writes: number t is the tensor t itself, n_tensors + t its copy in
// the other layout. A view has no body of its own; body_of says whose it shows.
class KernelTimes {
 public:
  explicit KernelTimes(const FusionProblem& problem);

  // Cost: O(reads).
  void set_layouts(const Layouts& layouts);

  // The body that an op in `layout` reads when it reads `tensor`.
  int32_t body_read(int32_t tensor, uint8_t layout) const {
    const bool is_other = problem_->has_layouts[tensor] && made_in(*problem_, *layouts_, tensor) != layout;
    return is_other ? problem_->n_tensors + tensor : body_of_[tensor];
  }
  int32_t body_of(int32_t tensor) const { return body_of_[tensor]; }
  // Tensors that need a copy, ascending.
  std::span<const int32_t> copied() const { return copied_; }

  // What one kernel of these ops takes, all in `layout`; kForbidden where one of them cannot run.
  int64_t group_ns(std::span<const int32_t> ops, uint8_t layout, int32_t device);
  // The least over the devices.
  int64_t best_ns(std::span<const int32_t> ops, uint8_t layout);

 private:
  int64_t border_ns(std::span<const int32_t> ops, uint8_t layout, int32_t device);
  bool escapes(int32_t body) const;

  const FusionProblem* problem_;
  const Layouts* layouts_ = nullptr;
  std::vector<int32_t> body_of_;     // per tensor
  std::vector<int32_t> copied_;
  std::vector<int32_t> user_start_;  // bodies 0 .. n_tensors: users_[user_start_[b] .. [b + 1])
  std::vector<int32_t> users_;       // ops, or -1: a copy, or the caller
  std::vector<int32_t> next_user_;
  std::vector<int32_t> mark_;        // per op: the kernel that is priced now
  std::vector<int32_t> body_mark_;
  std::vector<int32_t> tensor_mark_;
  std::vector<int64_t> body_ns_;
  std::vector<int32_t> bodies_;
  int32_t stamp_ = 0;
};

}  // namespace regal
