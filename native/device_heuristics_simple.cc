#include "device_heuristics_simple.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "device_heuristics_ledger.h"

namespace regal {
namespace {

std::vector<int32_t> all_devices(const DeviceTables& tables) {
  std::vector<int32_t> devices(tables.n_devices());
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// Per group its residents and all bytes that it makes: as in Baechi, nothing is freed. Where no op
// takes memory its time stands for it, else one device would get everything.
std::vector<int64_t> bytes_of_groups(const DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  std::vector<int64_t> bytes(problem.n_groups, 0);
  for (int64_t g = 0; g < problem.n_groups; ++g) {
    for (const int32_t r : tables.group_residents[g]) bytes[g] += problem.resident_bytes[r];
  }
  std::vector<uint8_t> is_counted(problem.n_storages, problem.capacity_counts_live ? 0 : 1);
  for (const int32_t v : tables.topological) {
    for (const int32_t t : problem.writes[v]) {
      const int32_t s = problem.storage[t];
      if (s < 0 || is_counted[s]) continue;
      bytes[problem.group[v]] += problem.bytes[s];
      is_counted[s] = 1;
    }
  }
  if (std::all_of(bytes.begin(), bytes.end(), [](int64_t size) { return size == 0; })) {
    for (int32_t v = 0; v < problem.n_ops; ++v) bytes[problem.group[v]] += tables.mean_duration[v];
  }
  return bytes;
}

// Places op after op; `costs_of` says what a device costs, less is better in the sequence of the
// three numbers, and overflow comes first.
template <typename Costs>
std::vector<int32_t> cheapest_devices(const DeviceTables& tables, std::span<const int32_t> order,
                                      const Costs& costs_of) {
  const DeviceProblem& problem = tables.problem;
  MemoryLedger ledger(tables);
  std::vector<int32_t> placement(problem.n_ops);
  for (const int32_t v : order) {
    int32_t best = ledger.device_of_group(problem.group[v]);
    std::array<int64_t, 4> least{};
    for (int32_t d = 0, pinned = best; pinned < 0 && d < problem.n_devices; ++d) {
      if (!problem.may_run_on(v, d)) continue;
      const auto [first, second, third] = costs_of(ledger, v, d);
      const std::array<int64_t, 4> costs{ledger.overflow_of(v, d), first, second, third};
      if (best >= 0 && costs >= least) continue;
      best = d;
      least = costs;
    }
    ledger.place(v, best);
    placement[v] = best;
  }
  return placement;
}

}  // namespace

std::vector<int32_t> topological_fill(const DeviceTables& tables, std::span<const int32_t> order,
                                      bool is_uniform) {
  const DeviceProblem& problem = tables.problem;
  const std::vector<int32_t> devices = all_devices(tables);
  const std::vector<int64_t> bytes = bytes_of_groups(tables);
  const int64_t total = std::accumulate(bytes.begin(), bytes.end(), int64_t{0}, capped_sum);
  const int64_t largest = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
  const int64_t share = capped_sum(total / problem.n_devices, largest);
  MemoryLedger ledger(tables);
  std::vector<int32_t> placement(problem.n_ops);
  size_t current = 0;
  int64_t used = 0;
  for (const int32_t v : order) {
    const int32_t group = problem.group[v];
    if (ledger.device_of_group(group) < 0) {
      while (current + 1 < devices.size()) {
        const bool is_over_share = is_uniform && used + bytes[group] > share;
        if (!is_over_share && ledger.overflow_of(v, devices[current]) == 0) break;
        ++current;
        used = 0;
      }
      used = capped_sum(used, bytes[group]);
    }
    placement[v] = ledger.fitting_device(v, devices, current);
    ledger.place(v, placement[v]);
  }
  return placement;
}

std::vector<int32_t> round_robin(const DeviceTables& tables) {
  const DeviceProblem& problem = tables.problem;
  const std::vector<int32_t> devices = all_devices(tables);
  MemoryLedger ledger(tables);
  std::vector<int32_t> placement(problem.n_ops);
  size_t next = 0;
  for (const int32_t v : tables.topological) {
    const bool is_new = ledger.device_of_group(problem.group[v]) < 0;
    placement[v] = ledger.fitting_device(v, devices, next);
    if (is_new) next = static_cast<size_t>(placement[v]) + 1;
    ledger.place(v, placement[v]);
  }
  return placement;
}

std::vector<int32_t> fit_placement(const DeviceTables& tables, std::span<const int32_t> wished) {
  const std::vector<int32_t> devices = all_devices(tables);
  MemoryLedger ledger(tables);
  std::vector<int32_t> placement(tables.n_ops());
  for (const int32_t v : tables.topological) {
    placement[v] = ledger.fitting_device(v, devices, static_cast<size_t>(wished[v]));
    ledger.place(v, placement[v]);
  }
  return placement;
}

std::vector<int32_t> single_device(const DeviceTables& tables, int32_t device) {
  const DeviceProblem& problem = tables.problem;
  const int64_t devices = problem.n_devices;
  std::vector<int32_t> placement(problem.n_ops, device);
  for (int64_t g = 0; g < problem.n_groups; ++g) {
    if (problem.may_run[g * devices + device]) continue;
    int32_t fastest = -1;
    int64_t least = 0;
    for (int32_t d = 0; d < devices; ++d) {
      if (!problem.may_run[g * devices + d]) continue;
      int64_t work = 0;
      for (const int32_t v : problem.members[g]) work += problem.duration_of(v, d);
      if (fastest >= 0 && work >= least) continue;
      fastest = d;
      least = work;
    }
    for (const int32_t v : problem.members[g]) placement[v] = fastest;
  }
  return placement;
}

std::vector<int32_t> least_growth(const DeviceTables& tables, std::span<const int32_t> order) {
  int64_t most = 0;  // largest peak so far
  return cheapest_devices(tables, order, [&](const MemoryLedger& ledger, int32_t v, int32_t d) {
    for (int32_t e = 0; e < tables.n_devices(); ++e) most = std::max(most, ledger.peak(e));
    const MemoryLedger::Effect effect = ledger.effect_of(v, d);
    return std::array<int64_t, 3>{std::max(effect.peak, most), effect.added, effect.peak};
  });
}

std::vector<int32_t> follow_inputs(const DeviceTables& tables, std::span<const int32_t> order,
                                   int64_t most_bytes) {
  return cheapest_devices(tables, order, [&](const MemoryLedger& ledger, int32_t v, int32_t d) {
    const MemoryLedger::Effect effect = ledger.effect_of(v, d);
    const bool is_within = effect.peak <= most_bytes;
    return std::array<int64_t, 3>{is_within ? 0 : effect.peak, effect.added, effect.live};
  });
}

FollowBounds follow_bounds(const DeviceTables& tables, std::span<const int32_t> order) {
  constexpr int kProbes = 8;
  FollowBounds bounds{0, 0, 0};
  MemoryLedger one(tables);
  for (const int32_t v : order) {
    bounds.low = std::max(bounds.low, one.effect_of(v, 0).added);
    one.place(v, 0);
  }
  bounds.high = one.peak(0);
  bounds.least = bounds.high;
  int64_t low = bounds.low;
  for (int probe = 0; probe < kProbes && low < bounds.least; ++probe) {
    const int64_t most = low + (bounds.least - low) / 2;
    const std::vector<int32_t> placement = follow_inputs(tables, order, most);
    MemoryLedger ledger(tables);
    int64_t peak = 0;
    for (const int32_t v : order) ledger.place(v, placement[v]);
    for (int32_t d = 0; d < tables.n_devices(); ++d) peak = std::max(peak, ledger.peak(d));
    if (peak <= most) {
      bounds.least = most;
    } else {
      low = most + 1;
    }
  }
  return bounds;
}

}  // namespace regal
