#pragma once
#include <cstdint>
#include <vector>

#include "device_problem.h"

namespace regal {

// Bytes of residents per device while ops move: what several ops of a device use counts once.
class ResidentUse {
 public:
  explicit ResidentUse(const DeviceProblem& problem)
      : problem_(&problem),
        users_(static_cast<size_t>(problem.n_residents) * problem.n_devices),
        bytes_(problem.n_devices) {}

  void add(int32_t op, int32_t device) {
    for (const int32_t r : problem_->residents[op]) {
      if (users_[static_cast<int64_t>(r) * problem_->n_devices + device]++ == 0) {
        bytes_[device] += problem_->resident_bytes[r];
      }
    }
  }
  void remove(int32_t op, int32_t device) {
    for (const int32_t r : problem_->residents[op]) {
      if (--users_[static_cast<int64_t>(r) * problem_->n_devices + device] == 0) {
        bytes_[device] -= problem_->resident_bytes[r];
      }
    }
  }
  // What exceeds the capacity of a device, without anything live.
  int64_t overflow(int32_t device) const {
    const int64_t capacity = problem_->capacity[device];
    return bytes_[device] > capacity ? bytes_[device] - capacity : 0;
  }
  int64_t overflow() const {
    int64_t total = 0;
    for (int32_t d = 0; d < problem_->n_devices; ++d) total += overflow(d);
    return total;
  }

 private:
  const DeviceProblem* problem_;
  std::vector<int32_t> users_;  // [resident * devices + device]
  std::vector<int64_t> bytes_;  // per device
};

}  // namespace regal
