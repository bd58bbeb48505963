#include "device_heuristics_ledger.h"

#include <algorithm>

namespace regal {

MemoryLedger::MemoryLedger(const DeviceTables& tables)
    : tables_(&tables), devices_(tables.n_devices()), left_(tables.touchers) {
  const DeviceProblem& problem = tables.problem;
  has_limits_ = std::any_of(problem.capacity.begin(), problem.capacity.end(),
                            [](int64_t capacity) { return capacity != kUnlimited; });
  device_of_group_.assign(problem.n_groups, -1);
  is_here_.assign(problem.n_storages * devices_, 0);
  is_made_here_.assign(problem.n_storages * devices_, 0);
  has_resident_.assign(problem.n_residents * devices_, 0);
  is_given_.assign(problem.n_storages, 0);
  home_.assign(problem.n_storages, -1);
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.producer[t] < 0 && problem.storage[t] >= 0) is_given_[problem.storage[t]] = 1;
  }
  live_.assign(devices_, 0);
  peak_.assign(devices_, 0);
  resident_.assign(devices_, 0);
}

MemoryLedger::Effect MemoryLedger::effect_of(int32_t op, int32_t device) const {
  const DeviceProblem& problem = tables_->problem;
  int64_t added = 0, since_start = 0;
  for (const int32_t s : tables_->touched[op]) {
    if (is_on(s, device, is_here_)) continue;
    added += problem.bytes[s];
    if (lies_since_start(s)) since_start += problem.bytes[s];
  }
  int64_t saved = 0;
  for (int64_t i = problem.in_place_of[op]; i < problem.in_place_of[op + 1]; ++i) {
    const InPlace& pair = problem.in_place[i];
    const bool happens = left_[pair.in] == 1 && is_on(pair.in, device, is_here_) &&
                         !is_on(pair.out, device, is_here_);
    if (happens) saved = std::max(saved, problem.bytes[pair.out]);
  }
  const int64_t live = live_[device] + added - saved + problem.workspace[op];
  return {std::max(peak_[device] + since_start, live), live, added};
}

int64_t MemoryLedger::new_residents(int32_t group, int32_t device) const {
  if (device_of_group_[group] >= 0) return 0;
  int64_t bytes = 0;
  for (const int32_t r : tables_->group_residents[group]) {
    if (!is_on(r, device, has_resident_)) bytes += tables_->problem.resident_bytes[r];
  }
  return bytes;
}

int64_t MemoryLedger::overflow_of(int32_t op, int32_t device) const {
  const DeviceProblem& problem = tables_->problem;
  if (!has_limits_ || problem.capacity[device] == kUnlimited) return 0;
  int64_t bytes = resident_[device] + new_residents(problem.group[op], device);
  if (problem.capacity_counts_live) bytes += effect_of(op, device).peak;
  return std::max<int64_t>(bytes - problem.capacity[device], 0);
}

int32_t MemoryLedger::fitting_device(int32_t op, std::span<const int32_t> sequence,
                                     size_t first) const {
  const DeviceProblem& problem = tables_->problem;
  if (device_of_group_[problem.group[op]] >= 0) return device_of_group_[problem.group[op]];
  int32_t best = -1;
  int64_t least = 0;
  for (size_t i = 0; i < sequence.size(); ++i) {
    const int32_t device = sequence[(first + i) % sequence.size()];
    if (!problem.may_run_on(op, device)) continue;
    const int64_t overflow = overflow_of(op, device);
    if (overflow == 0) return device;
    if (best < 0 || overflow < least) {
      best = device;
      least = overflow;
    }
  }
  return best;
}

void MemoryLedger::place(int32_t op, int32_t device) {
  const DeviceProblem& problem = tables_->problem;
  const int32_t group = problem.group[op];
  if (device_of_group_[group] < 0) {
    device_of_group_[group] = device;
    for (const int32_t r : tables_->group_residents[group]) {
      uint8_t& has = has_resident_[r * devices_ + device];
      if (!has) resident_[device] += problem.resident_bytes[r];
      has = 1;
    }
  }
  const Effect effect = effect_of(op, device);
  peak_[device] = effect.peak;
  live_[device] += effect.added;
  for (const int32_t s : tables_->touched[op]) {
    if (lies_since_start(s)) {
      home_[s] = device;
      is_made_here_[s * devices_ + device] = 1;
    }
    is_here_[s * devices_ + device] = 1;
  }
  for (const int32_t t : problem.writes[op]) {
    if (problem.storage[t] >= 0) is_made_here_[problem.storage[t] * devices_ + device] = 1;
  }
  for (const int32_t s : tables_->touched[op]) {
    if (--left_[s] > 0) continue;
    for (int32_t d = 0; d < devices_; ++d) {
      const bool is_kept = tables_->stays[s] && is_on(s, d, is_made_here_);
      if (!is_on(s, d, is_here_) || is_kept) continue;
      is_here_[s * devices_ + d] = 0;
      live_[d] -= problem.bytes[s];
    }
  }
}

}  // namespace regal
