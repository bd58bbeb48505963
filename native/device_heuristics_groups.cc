#include "device_heuristics_groups.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "device_heuristics_tables.h"

namespace regal {
namespace {

// Groups that merge, each with the devices that can run it and what its residents take at most.
class Unions {
 public:
  explicit Unions(const DeviceProblem& problem)
      : problem_(problem), root_(problem.n_groups), may_run_(problem.may_run), resident_(problem.n_groups, 0) {
    std::iota(root_.begin(), root_.end(), 0);
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      int64_t& resident = resident_[problem.group[v]];
      for (const int32_t r : problem.residents[v]) resident = capped_sum(resident, problem.resident_bytes[r]);
    }
  }

  int32_t find(int32_t group) {
    while (root_[group] != group) group = root_[group] = root_[root_[group]];
    return group;
  }

  void merge(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    if (a > b) std::swap(a, b);
    const int64_t devices = problem_.n_devices;
    bool fits = false;
    for (int64_t d = 0; d < devices; ++d) {
      const bool may_run = may_run_[a * devices + d] && may_run_[b * devices + d];
      fits = fits || (may_run && capped_sum(resident_[a], resident_[b]) <= problem_.capacity[d]);
    }
    if (!fits) return;
    for (int64_t d = 0; d < devices; ++d) may_run_[a * devices + d] &= may_run_[b * devices + d];
    resident_[a] = capped_sum(resident_[a], resident_[b]);
    root_[b] = a;
  }

  uint8_t may_run(int32_t root, int32_t device) const {
    return may_run_[static_cast<int64_t>(root) * problem_.n_devices + device];
  }

 private:
  const DeviceProblem& problem_;
  std::vector<int32_t> root_;
  std::vector<uint8_t> may_run_;
  std::vector<int64_t> resident_;
};

}  // namespace

DeviceProblem put_together(const DeviceProblem& problem) {
  Unions unions(problem);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    const auto below = problem.successors[v];
    if (below.size() != 1) continue;
    const auto reads = problem.reads[below[0]];
    const bool sends = std::any_of(reads.begin(), reads.end(),
                                   [&](int32_t t) { return problem.producer[t] == v; });
    if (sends) unions.merge(problem.group[v], problem.group[below[0]]);
  }
  DeviceProblem together = problem;
  std::vector<int32_t> number(problem.n_groups, -1);
  std::vector<std::pair<int32_t, int32_t>> members;
  together.n_groups = 0;
  together.may_run.clear();
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    const int32_t root = unions.find(problem.group[v]);
    if (number[root] < 0) {
      number[root] = together.n_groups++;
      for (int32_t d = 0; d < problem.n_devices; ++d) together.may_run.push_back(unions.may_run(root, d));
    }
    together.group[v] = number[root];
    members.emplace_back(number[root], v);
  }
  together.members = csr_of(std::move(members), together.n_groups);
  return together;
}

}  // namespace regal
