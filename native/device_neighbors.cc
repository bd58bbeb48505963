#include "device_neighbors.h"

#include <algorithm>

namespace regal {
namespace {

constexpr double kCriticalShare = 0.7;   // of the moves that begin at an op of the critical path
constexpr double kNeighborShare = 0.8;   // of the moves that go where a neighbor of the part is
constexpr uint32_t kSizes = 8;           // parts of at most 2, 4, ..., 2^kSizes ops
constexpr int kTries = 4;

}  // namespace

Neighbors::Neighbors(const CompactDevices& problem)
    : problem_(&problem),
      group_bytes_(problem.source->n_groups),
      taken_(problem.source->n_groups, -1) {
  const DeviceProblem& p = *problem.source;
  std::vector<std::vector<Neighbor>> rows(p.n_ops);
  const auto join = [&](int32_t a, int32_t b, int64_t cost) {
    rows[a].push_back({b, cost});
    rows[b].push_back({a, cost});
    costs_.push_back(cost);
  };
  for (int32_t v = 0; v < p.n_ops; ++v) {
    group_bytes_[p.group[v]] += problem.private_bytes[v];
    for (const int32_t t : problem.reads(v)) {
      if (p.producer[t] >= 0) join(p.producer[t], v, problem.mean_transfer[t]);
    }
    for (const int32_t u : problem.controls(v)) join(u, v, 0);
  }
  for (const auto& row : rows) {
    neighbors_of_.push_back(static_cast<int32_t>(neighbors_.size()));
    neighbors_.insert(neighbors_.end(), row.begin(), row.end());
  }
  neighbors_of_.push_back(static_cast<int32_t>(neighbors_.size()));
  std::ranges::sort(costs_);
}

bool Neighbors::propose(std::span<const int32_t> placement, std::span<const int32_t> order,
                        std::span<const int32_t> critical, Rng& rng, Move& move) {
  const bool is_critical = !critical.empty() && rng.uniform() < kCriticalShare;
  const int32_t op = is_critical ? critical[rng.below(static_cast<uint32_t>(critical.size()))]
                                 : static_cast<int32_t>(rng.below(static_cast<uint32_t>(placement.size())));
  ++proposal_;
  ops_.clear();
  groups_.clear();
  const uint32_t kind = rng.below(4);
  const int32_t most = int32_t{2} << rng.below(kSizes);
  if (kind == 0) take(op);
  if (kind == 1 || kind == 2) collect_cluster(placement, op, most, rng);
  if (kind == 3) collect_run(placement, order, op, most, rng);
  const int32_t source = placement[op];
  move.groups = groups_;
  move.target = other_device(placement, source, rng);
  return move.target != source && may_run(move);
}

bool Neighbors::propose_return(std::span<const int32_t> placement, const Move& move, int32_t source,
                               int64_t bytes, Rng& rng, Move& back) {
  for (int tries = 0; tries < 4 * kTries; ++tries) {
    const auto op = static_cast<int32_t>(rng.below(static_cast<uint32_t>(placement.size())));
    if (placement[op] != move.target) continue;
    ++proposal_;
    ops_.clear();
    groups_.clear();
    collect_cluster(placement, op, int32_t{2} << rng.below(kSizes), rng);
    int64_t given = 0;
    for (const int32_t g : groups_) given += group_bytes_[g];
    back.groups = groups_;
    back.target = source;
    if (given >= bytes && may_run(back)) return true;
  }
  return false;
}

// Grows along edges that cost at least a random threshold.
void Neighbors::collect_cluster(std::span<const int32_t> placement, int32_t op, int32_t most, Rng& rng) {
  const int64_t least = costs_.empty() ? 0 : costs_[rng.below(static_cast<uint32_t>(costs_.size()))];
  take(op);
  for (size_t i = 0; i < ops_.size() && static_cast<int32_t>(ops_.size()) < most; ++i) {
    for (const Neighbor& next : neighbors(ops_[i])) {
      if (next.cost >= least && placement[next.op] == placement[op]) take(next.op);
    }
  }
}

// What the device runs from `op` on, or up to it.
void Neighbors::collect_run(std::span<const int32_t> placement, std::span<const int32_t> order, int32_t op,
                            int32_t most, Rng& rng) {
  const auto at = std::ranges::find(order, op);
  const bool is_forward = rng.below(2) == 0;
  auto i = static_cast<int64_t>(at - order.begin());
  for (; i >= 0 && i < static_cast<int64_t>(order.size()) && static_cast<int32_t>(ops_.size()) < most;
       i += is_forward ? 1 : -1) {
    if (placement[order[i]] == placement[op]) take(order[i]);
  }
}

int32_t Neighbors::other_device(std::span<const int32_t> placement, int32_t source, Rng& rng) const {
  const auto any = static_cast<int32_t>(rng.below(static_cast<uint32_t>(problem_->n_devices())));
  if (rng.uniform() >= kNeighborShare) return any;
  for (int tries = 0; tries < kTries; ++tries) {
    const int32_t op = ops_[rng.below(static_cast<uint32_t>(ops_.size()))];
    const auto row = neighbors(op);
    if (row.empty()) continue;
    const int32_t device = placement[row[rng.below(static_cast<uint32_t>(row.size()))].op];
    if (device != source) return device;
  }
  return any;
}

void Neighbors::take(int32_t op) {
  const DeviceProblem& p = *problem_->source;
  const int32_t group = p.group[op];
  if (taken_[group] == proposal_) return;
  taken_[group] = proposal_;
  groups_.push_back(group);
  for (const int32_t member : p.members[group]) ops_.push_back(member);
}

bool Neighbors::may_run(const Move& move) const {
  const DeviceProblem& p = *problem_->source;
  return std::ranges::all_of(move.groups, [&](int32_t g) {
    return p.may_run[static_cast<int64_t>(g) * p.n_devices + move.target] != 0;
  });
}

}  // namespace regal
