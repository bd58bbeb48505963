#include "fusion_kernels.h"

#include <algorithm>

namespace regal {

KernelTimes::KernelTimes(const FusionProblem& problem)
    : problem_(&problem),
      body_of_(problem.n_tensors),
      user_start_(problem.n_tensors + 2),
      mark_(problem.n_ops, 0),
      body_mark_(2 * static_cast<size_t>(problem.n_tensors), 0),
      tensor_mark_(problem.n_tensors, 0),
      body_ns_(2 * static_cast<size_t>(problem.n_tensors), 0) {}

void KernelTimes::set_layouts(const Layouts& layouts) {
  const FusionProblem& p = *problem_;
  layouts_ = &layouts;
  for (int32_t t = 0; t < p.n_tensors; ++t) body_of_[t] = t;
  for (const int32_t v : p.order) {
    for (const int32_t t : p.writes[v]) {
      if (p.view_of[t] >= 0) body_of_[t] = body_read(p.view_of[t], layouts[v]);
    }
  }
  copied_.clear();
  std::fill(user_start_.begin(), user_start_.end(), 0);
  const auto each_user = [&](const auto& add) {
    for (int32_t v = 0; v < p.n_ops; ++v) {
      for (const int32_t t : p.reads[v]) add(body_read(t, layouts[v]), v);
    }
    for (int32_t t = 0; t < p.n_tensors; ++t) {
      if (p.output_layout[t] != kNoOutput) add(body_of_[t], -1);
    }
    for (const int32_t t : copied_) add(body_of_[t], -1);
  };
  for (int32_t t = 0; t < p.n_tensors; ++t) {
    if (needs_copy(p, layouts, t)) copied_.push_back(t);
  }
  each_user([&](int32_t body, int32_t) {
    if (body < p.n_tensors) ++user_start_[body + 2];
  });
  for (int32_t t = 0; t < p.n_tensors; ++t) user_start_[t + 2] += user_start_[t + 1];
  users_.resize(user_start_[p.n_tensors + 1]);
  each_user([&](int32_t body, int32_t user) {
    if (body < p.n_tensors) users_[user_start_[body + 1]++] = user;
  });
}

int64_t KernelTimes::group_ns(std::span<const int32_t> ops, uint8_t layout, int32_t device) {
  const FusionProblem& p = *problem_;
  int64_t views = 0, work = 0, alone = 0;
  int32_t n_real = 0;
  for (const int32_t v : ops) {
    const int64_t time = p.alone[p.at(v, device)][layout];
    if (time == kForbidden) return kForbidden;
    if (p.is_view[v]) {
      views += time;
    } else {
      ++n_real;
      alone = time;
      work += p.work[p.at(v, device)][layout];
    }
  }
  if (n_real == 0) return views;
  if (n_real == 1) return alone;
  return p.launch[device] + std::max(work, border_ns(ops, layout, device));
}

int64_t KernelTimes::best_ns(std::span<const int32_t> ops, uint8_t layout) {
  int64_t best = kForbidden;
  for (int32_t d = 0; d < problem_->n_devices; ++d) {
    const int64_t time = group_ns(ops, layout, d);
    if (time != kForbidden && (best == kForbidden || time < best)) best = time;
  }
  return best;
}

bool KernelTimes::escapes(int32_t body) const {
  const auto first = users_.begin() + (body == 0 ? 0 : user_start_[body]);
  const auto last = users_.begin() + user_start_[body + 1];
  // What nobody uses is written all the same.
  return first == last || std::any_of(first, last, [&](int32_t op) { return op < 0 || mark_[op] != stamp_; });
}

// What goes through memory at the border of a kernel. Views of one body count as that body at most.
int64_t KernelTimes::border_ns(std::span<const int32_t> ops, uint8_t layout, int32_t device) {
  const FusionProblem& p = *problem_;
  ++stamp_;
  for (const int32_t v : ops) mark_[v] = stamp_;
  bodies_.clear();
  int64_t total = 0;
  for (const int32_t v : ops) {
    if (p.is_view[v]) continue;
    for (const int32_t t : p.reads[v]) {
      const int32_t body = body_read(t, layout);
      if (body < p.n_tensors && p.producer[body] >= 0 && mark_[p.producer[body]] == stamp_) continue;
      if (body_mark_[body] != stamp_) {
        body_mark_[body] = stamp_;
        body_ns_[body] = 0;
        bodies_.push_back(body);
      }
      if (tensor_mark_[t] == stamp_) continue;
      tensor_mark_[t] = stamp_;
      body_ns_[body] += p.read[p.at(t, device)];
    }
    for (const int32_t t : p.writes[v]) {
      if (p.view_of[t] < 0 && escapes(t)) total += p.write[p.at(t, device)];
    }
  }
  for (const int32_t body : bodies_) {
    const int32_t tensor = body < p.n_tensors ? body : body - p.n_tensors;
    total += std::min(body_ns_[body], p.read[p.at(tensor, device)]);
  }
  return total;
}

}  // namespace regal
