#include "fusion_contract.h"

#include <algorithm>

namespace regal {

FusedGraph::FusedGraph(const FusionProblem& problem)
    : problem_(&problem), kernel_of_(problem.n_ops), copy_of_(problem.n_tensors, -1) {}

void FusedGraph::build(const GroupMerger& groups, std::span<const int32_t> sequence, const Layouts& layouts,
                        const KernelTimes& times) {
  const FusionProblem& p = *problem_;
  n_groups_ = static_cast<int32_t>(sequence.size());
  for (const int32_t t : copied_) copy_of_[t] = -1;
  copied_.assign(times.copied().begin(), times.copied().end());
  for (size_t i = 0; i < copied_.size(); ++i) copy_of_[copied_[i]] = static_cast<int32_t>(i);
  workspace_.assign(n_kernels(), 0);
  for (int32_t k = 0; k < n_groups_; ++k) {
    for (const int32_t v : groups.members(sequence[k])) {
      kernel_of_[v] = k;
      workspace_[k] += p.workspace[v];
    }
  }
  edges_.clear();
  for (int32_t v = 0; v < p.n_ops; ++v) {
    for (const int32_t w : p.successors[v]) {
      if (kernel_of_[v] != kernel_of_[w]) edges_.insert(edges_.end(), {kernel_of_[v], kernel_of_[w]});
    }
  }
  for (size_t i = 0; i < copied_.size(); ++i) {
    const int32_t t = copied_[i];
    const auto copy = static_cast<int32_t>(i) + n_groups_;
    const uint8_t made = made_in(p, layouts, t);
    if (p.producer[t] >= 0) edges_.insert(edges_.end(), {kernel_of_[p.producer[t]], copy});
    for (const int32_t v : p.readers[t]) {
      if (layouts[v] != made) edges_.insert(edges_.end(), {copy, kernel_of_[v]});
    }
  }
  add_touches(groups, sequence, layouts, times);
  add_in_place(groups, sequence, layouts, times);
  // Legal: groups depend on each other in no circle, and all sums are bounded.
  build_problem({edges_, touches_, bytes_, workspace_, inputs_, outputs_, in_place_}, order_problem_);
}

int32_t FusedGraph::storage_read(const KernelTimes& times, int32_t tensor, uint8_t layout) const {
  const int32_t body = times.body_read(tensor, layout);
  if (body < problem_->n_tensors) return problem_->storage[body];
  return problem_->n_storages + copy_of_[body - problem_->n_tensors];
}

void FusedGraph::add_touches(const GroupMerger& groups, std::span<const int32_t> sequence, const Layouts& layouts,
                              const KernelTimes& times) {
  const FusionProblem& p = *problem_;
  bytes_.assign(p.bytes.begin(), p.bytes.end());
  for (const int32_t t : copied_) bytes_.push_back(p.tensor_bytes[t]);
  only_user_.assign(bytes_.size(), -1);
  is_read_.assign(bytes_.size(), 0);
  is_output_.assign(bytes_.size(), 0);
  touches_.clear();
  const auto touch = [&](int32_t kernel, int32_t storage) {
    if (storage < 0) return;
    touches_.insert(touches_.end(), {kernel, storage});
    int32_t& user = only_user_[storage];
    user = user == -1 || user == kernel ? kernel : -2;
  };
  for (int32_t v = 0; v < p.n_ops; ++v) {
    for (const int32_t t : p.reads[v]) {
      const int32_t storage = storage_read(times, t, layouts[v]);
      touch(kernel_of_[v], storage);
      if (storage >= 0) is_read_[storage] = 1;
    }
    for (const int32_t t : p.writes[v]) touch(kernel_of_[v], storage_read(times, t, layouts[v]));
  }
  for (size_t i = 0; i < copied_.size(); ++i) {
    const auto copy = static_cast<int32_t>(i) + n_groups_;
    touch(copy, storage_read(times, copied_[i], made_in(p, layouts, copied_[i])));
    touch(copy, p.n_storages + static_cast<int32_t>(i));
  }
  inputs_.clear();
  outputs_.clear();
  for (int32_t s = 0; s < p.n_storages; ++s) {
    if (p.is_input[s]) inputs_.push_back(s);
  }
  for (int32_t t = 0; t < p.n_tensors; ++t) {
    if (p.output_layout[t] == kNoOutput) continue;
    const uint8_t made = made_in(p, layouts, t);
    const uint8_t wanted = p.output_layout[t] < 0 ? made : static_cast<uint8_t>(p.output_layout[t]);
    const int32_t storage = storage_read(times, t, wanted);
    if (storage < 0 || is_output_[storage]) continue;
    is_output_[storage] = 1;
    outputs_.push_back(storage);
  }
  std::vector<int32_t> sizes(n_kernels(), 1);
  for (int32_t k = 0; k < n_groups_; ++k) sizes[k] = static_cast<int32_t>(groups.members(sequence[k]).size());
  drop_inner(sizes);
}

void FusedGraph::drop_inner(std::span<const int32_t> sizes) {
  is_inner_.assign(bytes_.size(), 0);
  for (size_t s = 0; s < bytes_.size(); ++s) {
    const bool is_given = static_cast<int32_t>(s) < problem_->n_storages && problem_->is_input[s];
    const int32_t user = only_user_[s];
    is_inner_[s] = user >= 0 && sizes[user] > 1 && is_read_[s] && !is_given && !is_output_[s];
  }
  size_t kept = 0;
  for (size_t i = 0; i < touches_.size(); i += 2) {
    const int64_t s = touches_[i + 1];
    if (is_inner_[s]) continue;
    touches_[kept++] = touches_[i];
    touches_[kept++] = s;
  }
  touches_.resize(kept);
}

// A larger kernel writes over nothing that it reads: it may read an element again.
void FusedGraph::add_in_place(const GroupMerger& groups, std::span<const int32_t> sequence, const Layouts& layouts,
                               const KernelTimes& times) {
  const FusionProblem& p = *problem_;
  in_place_.clear();
  pair_tensors_.clear();
  for (int32_t k = 0; k < n_groups_; ++k) {
    const auto members = groups.members(sequence[k]);
    if (members.size() != 1) continue;
    const int32_t v = members[0];
    for (int64_t i = p.in_place_of[v]; i < p.in_place_of[v + 1]; ++i) {
      const int32_t a = storage_read(times, p.in_place[i].in, layouts[v]);
      const int32_t b = storage_read(times, p.in_place[i].out, layouts[v]);
      if (a < 0 || b < 0 || a == b || bytes_[a] != bytes_[b] || is_output_[a]) continue;
      if (b < p.n_storages && p.is_input[b]) continue;
      in_place_.insert(in_place_.end(), {k, a, b});
      pair_tensors_.push_back(p.in_place[i]);
    }
  }
}

}  // namespace regal
