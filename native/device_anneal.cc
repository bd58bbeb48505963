#include "device_anneal.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "device_chain.h"
#include "search.h"
#include "threads.h"

namespace regal {
namespace {

// Evaluations of a chain between two looks at the clock: a few milliseconds.
int64_t round_of(int32_t n_ops) { return std::clamp<int64_t>(100'000 / std::max(n_ops, 1), 1, 1000); }

// Fills one device after the other in topological order, up to its capacity for residents.
std::vector<int32_t> filled(const CompactDevices& problem) {
  const DeviceProblem& p = *problem.source;
  std::vector<int32_t> device_of(p.n_groups, -1);
  ResidentUse residents(p);
  int32_t device = 0;
  const auto fits = [&](int32_t group) {
    if (!p.may_run[static_cast<int64_t>(group) * p.n_devices + device]) return false;
    for (const int32_t v : p.members[group]) residents.add(v, device);
    if (residents.overflow(device) == 0) return true;
    for (const int32_t v : p.members[group]) residents.remove(v, device);
    return false;
  };
  for (const int32_t op : problem.topological) {
    const int32_t group = p.group[op];
    for (int32_t tries = 0; device_of[group] < 0 && tries < p.n_devices; ++tries) {
      if (fits(group)) device_of[group] = device;
      else device = (device + 1) % p.n_devices;
    }
    for (int32_t d = 0; device_of[group] < 0; ++d) {
      if (p.may_run[static_cast<int64_t>(group) * p.n_devices + d]) device_of[group] = d;
    }
  }
  std::vector<int32_t> placement(p.n_ops);
  for (int32_t v = 0; v < p.n_ops; ++v) placement[v] = device_of[p.group[v]];
  return placement;
}

}  // namespace

DeviceSearchResult anneal_devices(const CompactDevices& problem, const AnnealSettings& settings,
                                  const std::atomic<bool>& cancelled) {
  const DeviceProblem& p = *problem.source;
  const Deadline deadline(settings.stop.seconds, cancelled);
  std::vector<Chain> chains;
  for (int32_t c = 0; c < settings.chains; ++c) chains.emplace_back(problem, settings, c);
  PlacementJudge& judge = chains[0].judge();

  DeviceSearchResult result;
  std::vector<Plan> starts;
  const auto add = [&](std::vector<int32_t> placement) {
    ResidentUse residents(p);
    for (int32_t v = 0; v < p.n_ops; ++v) residents.add(v, placement[v]);
    Plan plan{std::move(placement), std::vector<int64_t>(p.n_ops, 0), {}};
    judge.judge(plan.placement, plan.extra, residents.overflow(),
                std::numeric_limits<double>::infinity(), plan.score);
    starts.push_back(std::move(plan));
    ++result.evaluations;
  };
  for (int64_t i = 0; i < settings.seeds.count(p); ++i) {
    const auto placement = settings.seeds.placement(i, p.n_ops);
    add({placement.begin(), placement.end()});
    if (result.evaluations >= settings.stop.evaluations || deadline.has_passed()) break;
  }
  if (starts.empty()) add(filled(problem));
  std::ranges::stable_sort(starts, [](const Plan& a, const Plan& b) { return a.score.is_better_than(b.score); });
  Plan best = starts[0];
  for (size_t c = 0; c < chains.size(); ++c) chains[c].start(starts[std::min(c, starts.size() - 1)]);

  Workers workers(std::min<int>(settings.threads, settings.chains));
  const int64_t round = round_of(p.n_ops);
  while (p.n_ops > 0 && result.evaluations < settings.stop.evaluations && !deadline.has_passed() &&
         !settings.stop.is_reached(best.score)) {
    const int64_t left = settings.stop.evaluations - result.evaluations;
    const auto share = [&](int64_t c) { return std::clamp<int64_t>(left - c * round, 0, round); };
    workers.run(settings.chains, [&](int64_t c, int) {
      chains[c].run(share(c));
      return true;
    });
    // A round counts as a whole: it is short.
    for (int32_t c = 0; c < settings.chains; ++c) result.evaluations += share(c);
    for (const Chain& chain : chains) {
      if (chain.best().score.is_better_than(best.score)) best = chain.best();
    }
  }
  result.schedule = judge.schedule_of(best);
  result.score = best.score;
  return result;
}

}  // namespace regal
