#include "device_live.h"

#include <algorithm>

namespace regal {

LiveEstimate::LiveEstimate(const CompactDevices& problem)
    : problem_(&problem),
      n_devices_(problem.n_devices()),
      touchers_(problem.source->n_storages, 0),
      is_there_(static_cast<size_t>(problem.source->n_storages) * n_devices_),
      is_kept_(problem.source->n_storages, 0),
      live_(n_devices_),
      uses_(static_cast<size_t>(problem.source->n_residents) * n_devices_),
      residents_(n_devices_) {
  for (int32_t v = 0; v < problem.n_ops(); ++v) {
    for (const int32_t s : problem.touches(v)) ++touchers_[s];
  }
  for (const int32_t t : problem.outputs) is_kept_[problem.source->storage[t]] = 1;
  clear();
}

void LiveEstimate::clear() {
  left_ = touchers_;
  std::fill(is_there_.begin(), is_there_.end(), 0);
  std::fill(uses_.begin(), uses_.end(), 0);
  std::fill(live_.begin(), live_.end(), 0);
  std::fill(residents_.begin(), residents_.end(), 0);
}

int64_t LiveEstimate::added(int32_t op, int32_t device) const {
  const DeviceProblem& p = *problem_->source;
  int64_t bytes = p.workspace[op];
  for (const int32_t s : problem_->touches(op)) {
    if (!has(s, device)) bytes += p.bytes[s];
  }
  for (int64_t i = p.in_place_of[op]; i < p.in_place_of[op + 1]; ++i) {
    const InPlace& pair = p.in_place[i];
    if (left_[pair.in] == 1 && !has(pair.out, device)) return bytes - p.bytes[pair.in];
  }
  return bytes;
}

int64_t LiveEstimate::added_residents(int32_t op, int32_t device) const {
  const DeviceProblem& p = *problem_->source;
  int64_t bytes = 0;
  for (const int32_t r : p.residents[op]) {
    if (!uses_[static_cast<int64_t>(r) * n_devices_ + device]) bytes += p.resident_bytes[r];
  }
  return bytes;
}

int64_t LiveEstimate::overflow_with(int32_t op, int32_t device) const {
  const DeviceProblem& p = *problem_->source;
  int64_t used = residents_[device] + added_residents(op, device);
  if (p.capacity_counts_live) used += with(op, device);
  return std::max<int64_t>(0, used - p.capacity[device]);
}

void LiveEstimate::put(int32_t op, int32_t device) {
  const DeviceProblem& p = *problem_->source;
  for (const int32_t s : problem_->touches(op)) {
    const int64_t row = static_cast<int64_t>(s) * n_devices_;
    if (!is_there_[row + device]) {
      is_there_[row + device] = 1;
      live_[device] += p.bytes[s];
    }
    if (--left_[s] > 0 || is_kept_[s]) continue;
    for (int32_t d = 0; d < n_devices_; ++d) {
      if (is_there_[row + d]) live_[d] -= p.bytes[s];
    }
  }
  for (const int32_t r : p.residents[op]) {
    uint8_t& uses = uses_[static_cast<int64_t>(r) * n_devices_ + device];
    if (uses) continue;
    uses = 1;
    residents_[device] += p.resident_bytes[r];
  }
}

}  // namespace regal
