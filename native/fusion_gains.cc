#include "fusion_gains.h"

#include <algorithm>
#include <queue>

#include "fusion_groups.h"
#include "fusion_kernels.h"

namespace regal {
namespace {

struct Candidate {
  int64_t saved;
  int32_t producer;
  int32_t consumer;
  int64_t at;  // merges made when it was priced
  // The largest saving first; equal ones by lower ops.
  bool operator<(const Candidate& other) const {
    if (saved != other.saved) return saved < other.saved;
    if (producer != other.producer) return producer > other.producer;
    return consumer > other.consumer;
  }
};

}  // namespace

std::vector<int32_t> merging_sequence(const FusionProblem& problem, const Layouts& layouts) {
  KernelTimes times(problem);
  times.set_layouts(layouts);
  GroupMerger merger(problem);
  merger.start(layouts);
  std::vector<int64_t> group_ns(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) group_ns[v] = times.best_ns({&v, 1}, layouts[v]);
  std::vector<int64_t> changed(problem.n_ops, 0);  // group -> merges made when it last grew
  std::vector<int32_t> joined, sequence;
  std::vector<uint8_t> is_listed(problem.n_ops, 0);
  std::priority_queue<Candidate> queue;
  int64_t merges = 0;
  const auto price = [&](int32_t v, int32_t w) {
    if (!merger.may_merge(v, w)) return;
    uint8_t layout = 0;
    merger.join(v, w, joined, layout);
    const int64_t apart = group_ns[merger.group_of(v)] + group_ns[merger.group_of(w)];
    const int64_t saved = apart - times.best_ns(joined, layout);
    if (saved >= 0) queue.push({saved, v, w, merges});
  };
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t w : problem.fusible[v]) price(v, w);
  }
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const int32_t a = merger.group_of(best.producer), b = merger.group_of(best.consumer);
    if (a == b) continue;
    if (std::max(changed[a], changed[b]) > best.at) {
      price(best.producer, best.consumer);  // its groups have grown
      continue;
    }
    if (!merger.may_merge(best.producer, best.consumer)) continue;
    merger.merge(best.producer, best.consumer);
    const int32_t group = merger.group_of(best.producer);
    group_ns[group] = group_ns[a] + group_ns[b] - best.saved;
    changed[group] = ++merges;
    if (is_listed[best.producer]) continue;
    is_listed[best.producer] = 1;
    sequence.push_back(best.producer);
  }
  return sequence;
}

}  // namespace regal
