#include "device_chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace regal {
namespace {

// Chosen on random graphs; see docs/decisions/0018-annealing-of-placements.md.
constexpr double kOrderShare = 0.25;     // of the proposals that change an extra
constexpr double kLeastExtra = 1e-6;     // of the running time
constexpr double kMostExtra = 0.2;
constexpr double kResetShare = 0.4;      // of the changes of an extra that take it away
constexpr double kShorterShare = 0.3;    // of the new extras that shorten the way
constexpr double kHot = 0.003;           // first temperature of a chain, as a share of the value
constexpr double kCold = 1e-4;           // last temperature of each cycle
constexpr double kReheat = 0.5;          // of kHot, for later cycles
constexpr int64_t kFirstCycle = 2000;    // evaluations
constexpr double kLongerCycle = 2;
constexpr double kFullOverflow = 0.01;   // of all capacity: as bad as doubling the value

constexpr int64_t kPeakOps = 32;         // on both sides of a peak
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

}  // namespace

PlanJudge::PlanJudge(const CompactDevices& problem, const Objective& objective)
    : objective_(objective),
      needs_memory_(objective.per_byte > 0 ||
                    (problem.source->capacity_counts_live && problem.capacity_may_bind)),
      list_(problem),
      timeline_(problem),
      meter_(problem) {}

bool PlanJudge::judge(const Plan& plan, double limit, Score& score) {
  bool is_exact = false;
  if (plan.sequence.empty()) {
    const bool has_limit = limit < objective_.per_ns * static_cast<double>(ListScheduler::kTooLate);
    const int64_t latest = has_limit ? static_cast<int64_t>(limit / objective_.per_ns) : ListScheduler::kTooLate;
    score.time = list_.run(plan.placement, plan.extra, latest);
    if (score.time == ListScheduler::kTooLate) return false;
    is_exact = list_.is_exact();
  }
  if (needs_memory_ || !is_exact) {
    replay(plan);
    score.time = timeline_.time();
  }
  if (needs_memory_) {
    meter_.measure(timeline_);
    score.overflow = meter_.overflow();
    score.peak = meter_.most();
  }
  score.value = objective_.value(score.time, score.peak);
  return true;
}

std::span<const int32_t> PlanJudge::order(const Plan& plan) const {
  return plan.sequence.empty() ? list_.order() : plan.sequence;
}

void PlanJudge::find_critical(const Plan& plan, std::vector<int32_t>& ops) const {
  if (plan.sequence.empty()) return list_.find_critical(ops);
  ops.clear();
  if (!needs_memory_) return;
  // Around the peak.
  const int64_t peak_time = meter_.peak_time();
  const auto at = std::ranges::find_if(plan.sequence, [&](int32_t op) {
    return plan.placement[op] == meter_.peak_device() && timeline_.finish_of(op) > peak_time;
  });
  const auto begin = at - std::min<int64_t>(at - plan.sequence.begin(), kPeakOps);
  const auto end = at + std::min<int64_t>(plan.sequence.end() - at, kPeakOps);
  ops.assign(begin, end);
}

DeviceSchedule PlanJudge::schedule_of(const Plan& plan) {
  if (plan.sequence.empty()) list_.run(plan.placement, plan.extra);
  replay(plan);
  return timeline_.schedule();
}

void PlanJudge::replay(const Plan& plan) {
  timeline_.clear();
  for (const int32_t op : order(plan)) timeline_.put(op, plan.placement[op]);
}

Chain::Chain(const CompactDevices& problem, const AnnealSettings& settings, int32_t number)
    : problem_(&problem),
      objective_(settings.objective),
      rng_(settings.seed, static_cast<uint64_t>(number)),
      judge_(problem, settings.objective),
      neighbors_(problem),
      shift_(problem),
      residents_(*problem.source) {}

void Chain::start(const Plan& plan) {
  best_ = plan;
  double capacity = 0;
  for (const int64_t bytes : problem_->source->capacity) {
    capacity += bytes == kUnlimited ? 0 : static_cast<double>(bytes);
  }
  per_overflow_ = 1 / std::max(1.0, kFullOverflow * capacity);
  now_ = plan;
  for (int32_t v = 0; v < problem_->n_ops(); ++v) residents_.add(v, now_.placement[v]);
  begin_cycle();
}

void Chain::begin_cycle() {
  for (int32_t v = 0; v < problem_->n_ops(); ++v) {
    if (now_.placement[v] == best_.placement[v]) continue;
    residents_.remove(v, now_.placement[v]);
    residents_.add(v, best_.placement[v]);
  }
  now_ = best_;
  judge_.judge(now_, kNoLimit, now_.score);
  order_.assign(judge_.order(now_).begin(), judge_.order(now_).end());
  judge_.find_critical(now_, critical_);
  cycle_start_ = done_;
  cycle_length_ = cycle_ == 0 ? kFirstCycle
                              : static_cast<int64_t>(static_cast<double>(cycle_length_) * kLongerCycle);
  ++cycle_;
}

void Chain::run(int64_t evaluations) {
  const int64_t end = done_ + evaluations;
  while (done_ < end) {
    if (done_ - cycle_start_ >= cycle_length_) begin_cycle();
    // A proposal that cannot be is not judged; yet a graph may allow no other.
    for (int tries = 0; tries < 100; ++tries) {
      if (rng_.uniform() < kOrderShare ? propose_order() : propose_move()) break;
    }
    ++done_;
  }
}

double Chain::temperature() const {
  const double hot = cycle_ == 1 ? kHot : kHot * kReheat;
  const double share = static_cast<double>(done_ - cycle_start_) / static_cast<double>(cycle_length_);
  return hot * std::pow(kCold / hot, share);
}

int32_t Chain::any_op() {
  const auto& ops = critical_.empty() || rng_.below(2) == 0 ? order_ : critical_;
  return ops[rng_.below(static_cast<uint32_t>(ops.size()))];
}

bool Chain::propose_order() { return now_.sequence.empty() ? propose_extra() : propose_shift(); }

// Lengthens or shortens the way of one op, or sets it back.
bool Chain::propose_extra() {
  const int32_t op = any_op();
  int64_t extra = 0;
  const int64_t old = now_.extra[op];
  if (old == 0 || rng_.uniform() >= kResetShare) {
    const double size = std::log(kLeastExtra) + rng_.uniform() * std::log(kMostExtra / kLeastExtra);
    extra = static_cast<int64_t>(std::exp(size) * static_cast<double>(now_.score.time)) + 1;
    if (rng_.uniform() < kShorterShare) extra = -extra;
  }
  now_.extra[op] = extra;
  if (!try_plan(residents_.overflow())) now_.extra[op] = old;
  return true;
}

bool Chain::propose_shift() {
  const auto at = std::ranges::find(now_.sequence, any_op()) - now_.sequence.begin();
  if (!shift_.shift(now_.sequence, static_cast<int32_t>(at), rng_)) return false;
  if (!try_plan(residents_.overflow())) shift_.undo(now_.sequence);
  return true;
}

bool Chain::propose_move() {
  if (!neighbors_.propose(now_.placement, order_, critical_, rng_, move_)) return false;
  const int32_t source = now_.placement[problem_->source->members[move_.groups[0]][0]];
  const int64_t before = residents_.overflow();
  moved_.clear();
  for (const int32_t group : move_.groups) put(group, move_.target);
  int64_t overflow = residents_.overflow();
  if (overflow > before &&
      neighbors_.propose_return(now_.placement, move_, source, overflow - before, rng_, back_)) {
    for (const int32_t group : back_.groups) put(group, back_.target);
    overflow = residents_.overflow();
  }
  const bool is_tried = overflow <= before;
  if (is_tried && try_plan(overflow)) return true;
  while (!moved_.empty()) {
    const auto [group, device] = moved_.back();
    put(group, device);
    moved_.resize(moved_.size() - 2);
  }
  return is_tried;
}

// Judges `now_`, which was changed. Returns whether it stays: less overflow is always welcome, more
// of it seldom, and equal overflow leaves it to the value. What decides is drawn beforehand, so
// that most of the judging can be left out.
bool Chain::try_plan(int64_t overflow) {
  const double rise = -std::log(1 - rng_.uniform()) * temperature();
  const double limit = overflow < now_.score.overflow ? kNoLimit : now_.score.value * (1 + rise);
  Score score{overflow, 0, 0, 0};
  if (!judge_.judge(now_, limit, score)) return false;
  if (score.overflow == now_.score.overflow ? score.value > now_.score.value * (1 + rise)
      : static_cast<double>(score.overflow - now_.score.overflow) * per_overflow_ > rise) {
    return false;
  }
  now_.score = score;
  order_.assign(judge_.order(now_).begin(), judge_.order(now_).end());
  judge_.find_critical(now_, critical_);
  if (score.is_better_than(best_.score)) best_ = now_;
  return true;
}

void Chain::put(int32_t group, int32_t device) {
  for (const int32_t op : problem_->source->members[group]) {
    residents_.remove(op, now_.placement[op]);
    residents_.add(op, device);
  }
  moved_.emplace_back(group, now_.placement[problem_->source->members[group][0]]);
  for (const int32_t op : problem_->source->members[group]) now_.placement[op] = device;
}

}  // namespace regal
