#include "device_contract.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace regal {
namespace {

constexpr int64_t kShortest = 20;   // an op takes no time if it takes this part of the mean
constexpr int64_t kLongest = 50;    // a joined op may take this part of an equal share of the work
constexpr int64_t kSmallest = 20;   // and this part of the smallest capacity
constexpr int kPasses = 4;

class Joiner {
 public:
  explicit Joiner(const CompactDevices& problem)
      : problem_(problem),
        root_(problem.n_ops()),
        duration_(problem.mean_duration),
        bytes_(problem.n_ops()) {
    const DeviceProblem& p = *problem.source;
    std::iota(root_.begin(), root_.end(), 0);
    int64_t total = 0;
    for (const int64_t time : duration_) total += time;
    short_ = total / std::max(problem.n_ops(), 1) / kShortest;
    most_time_ = total / problem.n_devices() / kLongest;
    for (int32_t v = 0; v < p.n_ops; ++v) {
      for (const int32_t r : p.residents[v]) bytes_[v] += p.resident_bytes[r];
    }
    for (const int64_t capacity : p.capacity) {
      if (capacity != kUnlimited) most_bytes_ = std::min(most_bytes_, capacity / kSmallest);
    }
  }

  std::vector<int32_t> run() {
    const auto& ops = problem_.topological;
    for (int pass = 0; pass < kPasses; ++pass) {
      bool has_joined = false;
      find_relatives();
      // Relatives are those of the last pass: an op takes part in one joint per pass.
      is_done_.assign(root_.size(), 0);
      for (const int32_t v : ops) {
        if (root_[v] != v || is_done_[v]) continue;
        const int32_t u = only(before_[v]);
        if (u >= 0 && !is_done_[u] && is_close(u, v)) has_joined |= join(u, v);
      }
      for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
        if (root_[*it] != *it || is_done_[*it]) continue;
        const int32_t w = only(after_[*it]);
        const bool is_dear = dearest(after_[*it]) >= dearest(before_[*it]);
        if (w >= 0 && !is_done_[w] && duration_[*it] <= short_ && is_dear) has_joined |= join(w, *it);
      }
      if (!has_joined) break;
    }
    std::vector<int32_t> roots(root_.size());
    for (size_t v = 0; v < root_.size(); ++v) roots[v] = find(static_cast<int32_t>(v));
    return roots;
  }

 private:
  struct Relative {
    int32_t op;
    int64_t transfer;
  };

  int32_t find(int32_t op) {
    while (root_[op] != op) op = root_[op] = root_[root_[op]];
    return op;
  }

  void find_relatives() {
    before_.assign(root_.size(), {});
    after_.assign(root_.size(), {});
    const auto add = [&](int32_t earlier, int32_t later, int64_t transfer) {
      const int32_t a = find(earlier), b = find(later);
      if (a == b) return;
      before_[b].push_back({a, transfer});
      after_[a].push_back({b, transfer});
    };
    const DeviceProblem& p = *problem_.source;
    for (int32_t v = 0; v < problem_.n_ops(); ++v) {
      for (const int32_t t : problem_.reads(v)) {
        if (p.producer[t] >= 0) add(p.producer[t], v, problem_.mean_transfer[t]);
      }
      for (const int32_t u : p.control[v]) add(u, v, 0);
    }
  }

  // The one op in a row, or -1.
  static int32_t only(const std::vector<Relative>& row) {
    for (const Relative& relative : row) {
      if (relative.op != row[0].op) return -1;
    }
    return row.empty() ? -1 : row[0].op;
  }

  static int64_t dearest(const std::vector<Relative>& row) {
    int64_t most = 0;
    for (const Relative& relative : row) most = std::max(most, relative.transfer);
    return most;
  }

  // Whether `v`, which waits for `u` alone, is to stay with it: to part them is dear.
  bool is_close(int32_t u, int32_t v) const {
    const int64_t transfer = dearest(before_[v]);
    if (transfer < dearest(after_[v])) return false;
    if (duration_[v] <= short_) return true;
    const bool is_chain = only(after_[u]) == v && duration_[u] + duration_[v] <= most_time_;
    return is_chain && transfer >= std::min(duration_[u], duration_[v]);
  }

  bool join(int32_t into, int32_t op) {
    if (bytes_[into] + bytes_[op] > most_bytes_ && bytes_[into] > 0 && bytes_[op] > 0) return false;
    if (!may_share(into, op)) return false;
    root_[op] = into;
    duration_[into] += duration_[op];
    bytes_[into] += bytes_[op];
    is_done_[into] = is_done_[op] = 1;
    return true;
  }

  // What runs where others must run too is not tied to still others, nor to other devices.
  bool may_share(int32_t a, int32_t b) const {
    const DeviceProblem& p = *problem_.source;
    const int32_t group = p.group[a], other = p.group[b];
    if (group == other) return true;
    if (p.members[group].size() > 1 && p.members[other].size() > 1) return false;
    return std::equal(problem_.may_run(a), problem_.may_run(a) + p.n_devices, problem_.may_run(b));
  }

  const CompactDevices& problem_;
  std::vector<int32_t> root_;
  std::vector<int64_t> duration_;  // of roots
  std::vector<int64_t> bytes_;
  std::vector<std::vector<Relative>> before_;
  std::vector<std::vector<Relative>> after_;
  std::vector<uint8_t> is_done_;
  int64_t short_ = 0;
  int64_t most_time_ = 0;
  int64_t most_bytes_ = std::numeric_limits<int64_t>::max();
};

// The rows of the smaller problem.
struct Rows {
  std::vector<int64_t> durations, workspace, groups, reads, producers, storages, outputs, controls, residents,
      users, links, transfers;
};

void sort_pairs(std::vector<std::pair<int64_t, int64_t>>& pairs, std::vector<int64_t>& flat) {
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (const auto& [a, b] : pairs) flat.insert(flat.end(), {a, b});
}

void add_ops(const DeviceProblem& p, const Contraction& contraction, Rows& rows) {
  for (const auto& parts : contraction.parts_of) {
    int64_t workspace = 0;
    for (int32_t d = 0; d < p.n_devices; ++d) {
      int64_t time = 0;
      for (const int32_t v : parts) {
        const int64_t own = p.may_run_on(v, d) ? p.duration_of(v, d) : kForbidden;
        time = own == kForbidden || time == kForbidden ? kForbidden : time + own;
      }
      rows.durations.push_back(time);
    }
    for (const int32_t v : parts) workspace = std::max(workspace, p.workspace[v]);
    rows.workspace.push_back(workspace);
  }
}

// Ops of one group stay together, and so do groups that have parts of one joined op.
void add_groups(const DeviceProblem& p, const Contraction& contraction, Rows& rows) {
  std::vector<int64_t> root(p.n_groups);
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](int64_t group) {
    while (root[group] != group) group = root[group] = root[root[group]];
    return group;
  };
  for (const auto& parts : contraction.parts_of) {
    for (const int32_t v : parts) root[find(p.group[v])] = find(p.group[parts[0]]);
  }
  for (const auto& parts : contraction.parts_of) rows.groups.push_back(find(p.group[parts[0]]));
}

void add_edges(const DeviceProblem& p, const Contraction& contraction, Rows& rows) {
  const auto& whole = contraction.whole_of;
  std::vector<std::pair<int64_t, int64_t>> reads, controls;
  for (int32_t v = 0; v < p.n_ops; ++v) {
    for (const int32_t t : p.reads[v]) {
      if (p.producer[t] < 0 || whole[p.producer[t]] != whole[v]) reads.emplace_back(whole[v], t);
    }
    for (const int32_t u : p.control[v]) {
      if (whole[u] != whole[v]) controls.emplace_back(whole[u], whole[v]);
    }
  }
  sort_pairs(reads, rows.reads);
  sort_pairs(controls, rows.controls);
  for (int32_t t = 0; t < p.n_tensors; ++t) {
    rows.producers.push_back(p.producer[t] < 0 ? -1 : whole[p.producer[t]]);
    rows.storages.push_back(p.storage[t]);
    if (p.is_output[t]) rows.outputs.push_back(t);
  }
}

void add_residents(const DeviceProblem& p, const Contraction& contraction, Rows& rows) {
  std::vector<std::pair<int64_t, int64_t>> users;
  for (int32_t v = 0; v < p.n_ops; ++v) {
    for (const int32_t r : p.residents[v]) users.emplace_back(contraction.whole_of[v], r);
  }
  sort_pairs(users, rows.users);
}

bool build(const DeviceProblem& p, Contraction& contraction) {
  Rows rows;
  add_ops(p, contraction, rows);
  add_groups(p, contraction, rows);
  add_edges(p, contraction, rows);
  add_residents(p, contraction, rows);
  rows.links.assign(p.link_class.begin(), p.link_class.end());
  const DeviceInput input{p.n_devices,    rows.durations, rows.workspace,   rows.groups,
                          rows.reads,     rows.producers, rows.storages,    rows.outputs,
                          rows.controls,  p.bytes,        {},               p.resident_bytes,
                          rows.users,     p.capacity,     rows.links,       p.transfer,
                          p.latency,      p.has_contention, p.capacity_counts_live};
  return build_device_problem(input, contraction.problem).fault == DeviceFault::None;
}

// Nothing is joined.
Contraction same(const DeviceProblem& problem) {
  Contraction contraction;
  contraction.problem = problem;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    contraction.whole_of.push_back(v);
    contraction.parts_of.push_back({v});
  }
  return contraction;
}

}  // namespace

Contraction contract(const CompactDevices& problem) {
  const std::vector<int32_t> roots = Joiner(problem).run();
  Contraction contraction;
  contraction.whole_of.assign(roots.size(), -1);
  for (size_t v = 0; v < roots.size(); ++v) {
    if (roots[v] != static_cast<int32_t>(v)) continue;
    contraction.whole_of[v] = static_cast<int32_t>(contraction.parts_of.size());
    contraction.parts_of.emplace_back();
  }
  for (const int32_t v : problem.topological) {
    contraction.whole_of[v] = contraction.whole_of[roots[v]];
    contraction.parts_of[contraction.whole_of[v]].push_back(v);
  }
  return build(*problem.source, contraction) ? contraction : same(*problem.source);
}

std::vector<int32_t> expanded(const Contraction& contraction, std::span<const int32_t> order) {
  std::vector<int32_t> ops;
  ops.reserve(contraction.whole_of.size());
  for (const int32_t whole : order) {
    const auto& parts = contraction.parts_of[whole];
    ops.insert(ops.end(), parts.begin(), parts.end());
  }
  return ops;
}

}  // namespace regal
