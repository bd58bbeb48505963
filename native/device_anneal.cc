#include "device_anneal.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "device_chain.h"
#include "device_contract.h"
#include "search.h"
#include "threads.h"

namespace regal {
namespace {

// The first chain runs alone for so many evaluations: one chain makes more of few than two do.
constexpr int64_t kAlone = 5000;

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

int64_t resident_overflow(const DeviceProblem& problem, std::span<const int32_t> placement) {
  ResidentUse residents(problem);
  for (int32_t v = 0; v < problem.n_ops; ++v) residents.add(v, placement[v]);
  return residents.overflow();
}

// Whether a chain keeps a sequence, or list scheduling with extras.
bool has_sequence(const Objective& objective, int32_t chain) {
  return objective.per_ns == 0 || (objective.per_byte > 0 && chain % 2 == 1);
}

class Annealing {
 public:
  Annealing(const CompactDevices& problem, const AnnealSettings& settings)
      : problem_(problem), settings_(settings), judge_(problem, settings.objective) {
    for (int32_t c = 0; c < settings.chains; ++c) chains_.emplace_back(problem, settings, c);
  }

  void run(const std::atomic<bool>& cancelled) {
    const Deadline deadline(settings_.stop.seconds, cancelled);
    for (size_t i = 0; i == 0 || (i < count() && !is_over(deadline)); ++i) {
      for (int32_t c = 0; c < settings_.chains && !(c > 0 && is_over(deadline)); ++c) {
        const bool is_sequence = has_sequence(settings_.objective, c);
        const bool is_known = c > 0 && is_sequence == has_sequence(settings_.objective, c - 1);
        if (!is_known) judge_start(start(i, is_sequence));
      }
    }
    std::ranges::stable_sort(starts_, [](const Plan& a, const Plan& b) {
      return a.score.is_better_than(b.score);
    });
    best_ = starts_[0];
    for (int32_t c = 0; c < settings_.chains; ++c) start_chain(c);
    Workers workers(std::min<int>(settings_.threads, settings_.chains));
    while (problem_.n_ops() > 0 && !is_over(deadline)) run_round(workers);
  }

  int64_t evaluations() const { return evaluations_; }
  const Plan& best() const { return best_; }
  DeviceSchedule best_schedule() { return judge_.schedule_of(best_); }
  std::span<const int32_t> best_order() {
    Score score;
    judge_.judge(best_, std::numeric_limits<double>::infinity(), score);
    return judge_.order(best_);
  }

 private:
  size_t count() const {
    return problem_.n_ops() == 0 ? 0 : settings_.placements.size() / static_cast<size_t>(problem_.n_ops());
  }
  bool is_over(const Deadline& deadline) const {
    return evaluations_ >= settings_.stop.evaluations || deadline.has_passed() ||
           (!starts_.empty() && settings_.stop.is_reached(best_.score));
  }

  Plan start(size_t i, bool is_sequence) const {
    const auto n = static_cast<size_t>(problem_.n_ops());
    Plan plan{filled(problem_), std::vector<int64_t>(n, 0), {}, {}};
    if (is_sequence) plan.sequence = problem_.topological;
    if (i >= count()) return plan;
    const auto placement = settings_.placements.subspan(i * n, n);
    const auto order = settings_.orders.subspan(i * n, n);
    plan.placement.assign(placement.begin(), placement.end());
    if (is_sequence) plan.sequence.assign(order.begin(), order.end());
    return plan;
  }

  void judge_start(Plan plan) {
    plan.score.overflow = resident_overflow(*problem_.source, plan.placement);
    judge_.judge(plan, std::numeric_limits<double>::infinity(), plan.score);
    starts_.push_back(std::move(plan));
    ++evaluations_;
  }

  // Each chain begins at the next best start of its kind, the last ones at the best one.
  void start_chain(int32_t chain) {
    const bool is_sequence = has_sequence(settings_.objective, chain);
    const Plan* found = nullptr;
    int32_t skip = 0;
    for (int32_t c = 0; c < chain; ++c) skip += has_sequence(settings_.objective, c) == is_sequence;
    for (const Plan& plan : starts_) {
      if (plan.sequence.empty() == is_sequence && problem_.n_ops() > 0) continue;
      if (found == nullptr || skip >= 0) found = &plan;
      if (skip-- == 0) break;
    }
    if (found == nullptr) {  // the budget ended before a start of this kind was judged
      chains_[chain].start(starts_[0]);
      return;
    }
    chains_[chain].start(*found);
  }

  void run_round(Workers& workers) {
    const int64_t left = settings_.stop.evaluations - evaluations_;
    const int64_t round = round_of(problem_.n_ops());
    const auto share = [&](int64_t c) { return std::clamp<int64_t>(left - c * round, 0, round); };
    const int32_t chains = evaluations_ < kAlone ? 1 : settings_.chains;
    workers.run(chains, [&](int64_t c, int) {
      chains_[c].run(share(c));
      return true;
    });
    // A round counts as a whole: it is short.
    for (int32_t c = 0; c < chains; ++c) evaluations_ += share(c);
    for (const Chain& chain : chains_) {
      if (chain.best().score.is_better_than(best_.score)) best_ = chain.best();
    }
  }

  const CompactDevices& problem_;
  const AnnealSettings& settings_;
  PlanJudge judge_;
  std::vector<Chain> chains_;
  std::vector<Plan> starts_;
  Plan best_;
  int64_t evaluations_ = 0;
};

// The placements to start from, for the smaller problem: a joined op is where its part is that must
// run with others, else where its longest part is.
std::vector<int32_t> joined_placements(const CompactDevices& problem, const Contraction& contraction,
                                       std::span<const int32_t> placements) {
  const DeviceProblem& p = *problem.source;
  std::vector<int32_t> joined;
  const auto n = static_cast<size_t>(p.n_ops);
  for (size_t at = 0; n > 0 && at + n <= placements.size(); at += n) {
    for (const auto& parts : contraction.parts_of) {
      const int32_t part = *std::ranges::max_element(parts, {}, [&](int32_t v) {
        return std::pair(p.members[p.group[v]].size() > 1, problem.mean_duration[v]);
      });
      joined.push_back(placements[at + part]);
    }
  }
  return joined;
}

// The better of two schedules of the whole problem: joined ops in one go, or list scheduling.
Plan expanded_plan(const CompactDevices& problem, const Contraction& contraction, PlanJudge& judge,
                   const Plan& small, std::span<const int32_t> order) {
  Plan in_order;
  for (const int32_t whole : contraction.whole_of) in_order.placement.push_back(small.placement[whole]);
  in_order.extra.assign(in_order.placement.size(), 0);
  in_order.score.overflow = resident_overflow(*problem.source, in_order.placement);
  Plan listed = in_order;
  for (size_t i = 0; i < contraction.parts_of.size(); ++i) {
    listed.extra[contraction.parts_of[i][0]] = small.extra[i];
  }
  in_order.sequence = expanded(contraction, order);
  judge.judge(in_order, std::numeric_limits<double>::infinity(), in_order.score);
  judge.judge(listed, std::numeric_limits<double>::infinity(), listed.score);
  return listed.score.is_better_than(in_order.score) ? listed : in_order;
}

}  // namespace

DeviceSearchResult anneal_devices(const CompactDevices& problem, const AnnealSettings& settings,
                                  const std::atomic<bool>& cancelled) {
  if (settings.objective.per_byte == 0) {
    const Contraction contraction = contract(problem);
    if (contraction.problem.n_ops < problem.n_ops()) {
      const CompactDevices joined(contraction.problem);
      AnnealSettings small = settings;
      const std::vector<int32_t> placements = joined_placements(problem, contraction, settings.placements);
      small.placements = placements;
      small.stop.evaluations = std::max<int64_t>(1, settings.stop.evaluations - 2);
      Annealing annealing(joined, small);
      annealing.run(cancelled);
      PlanJudge judge(problem, settings.objective);
      const Plan best = expanded_plan(problem, contraction, judge, annealing.best(), annealing.best_order());
      return {judge.schedule_of(best), best.score, annealing.evaluations() + 2};
    }
  }
  Annealing annealing(problem, settings);
  annealing.run(cancelled);
  return {annealing.best_schedule(), annealing.best().score, annealing.evaluations()};
}

}  // namespace regal
