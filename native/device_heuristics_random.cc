#include <utility>
#include <vector>

#include "device_heuristics.h"
#include "rng.h"
#include "threads.h"

namespace regal {
namespace {

DeviceSchedule random_number(const DeviceProblem& problem, uint64_t seed, int64_t number) {
  Rng rng(seed, static_cast<uint64_t>(number));
  std::vector<int32_t> device_of(problem.n_groups), allowed, ready, waiting(problem.n_ops);
  for (int64_t g = 0; g < problem.n_groups; ++g) {
    allowed.clear();
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      if (problem.may_run[g * problem.n_devices + d]) allowed.push_back(d);
    }
    device_of[g] = allowed[rng.below(static_cast<uint32_t>(allowed.size()))];
  }
  DeviceSchedule schedule;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    schedule.placement.push_back(device_of[problem.group[v]]);
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) ready.push_back(v);
  }
  while (!ready.empty()) {
    std::swap(ready[rng.below(static_cast<uint32_t>(ready.size()))], ready.back());
    const int32_t v = ready.back();
    ready.pop_back();
    schedule.order.push_back(v);
    for (const int32_t w : problem.successors[v]) {
      if (--waiting[w] == 0) ready.push_back(w);
    }
  }
  complete_schedule(problem, schedule);
  return schedule;
}

}  // namespace

NamedSchedule random_schedule(const DeviceProblem& problem, const Objective& objective,
                              uint64_t seed, int64_t first, int64_t count, int threads) {
  std::vector<Score> scores(count);
  Workers workers(threads);
  workers.run(count, [&](int64_t task, int) {
    DeviceFigures figures;
    if (simulate_devices(problem, random_number(problem, seed, first + task), figures)) {
      scores[task] = score_of(figures, objective);
    }
    return true;
  });
  int64_t best = 0;
  for (int64_t i = 1; i < count; ++i) {
    if (scores[i].is_better_than(scores[best])) best = i;
  }
  return {"random " + std::to_string(first + best), random_number(problem, seed, first + best), scores[best]};
}

}  // namespace regal
