#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_heuristics_tables.h"

namespace regal {

// Memory while ops are placed one after another, as if they also ran one after another. An
// instance stays until all ops that touch its storage are placed, since the others may come to
// the same device. The simulator has the last word: devices run side by side, and copies travel
// early.
class MemoryLedger {
 public:
  explicit MemoryLedger(const DeviceTables& tables);

  struct Effect {
    int64_t peak;   // of the device once `op` has run on it
    int64_t live;   // during the op, workspace included
    int64_t added;  // bytes of new instances
  };
  Effect effect_of(int32_t op, int32_t device) const;

  // By how much the device would exceed its capacity, with the residents of the op's whole group.
  int64_t overflow_of(int32_t op, int32_t device) const;

  // Where the op's group is; if nowhere yet, the first device of `sequence`, from its place `first`
  // on and around, that may run it and is not full; if all are full, the one that is least.
  int32_t fitting_device(int32_t op, std::span<const int32_t> sequence, size_t first) const;

  void place(int32_t op, int32_t device);

  int32_t device_of_group(int32_t group) const { return device_of_group_[group]; }
  int64_t peak(int32_t device) const { return peak_[device]; }
  int64_t resident(int32_t device) const { return resident_[device]; }

 private:
  bool is_on(int64_t row, int32_t device, const std::vector<uint8_t>& table) const {
    return table[row * devices_ + device] != 0;
  }
  int64_t new_residents(int32_t group, int32_t device) const;
  bool lies_since_start(int32_t storage) const {
    return is_given_[storage] != 0 && home_[storage] < 0;
  }

  const DeviceTables* tables_;
  int64_t devices_;
  bool has_limits_ = false;
  std::vector<int32_t> device_of_group_;  // -1: not placed
  std::vector<int32_t> left_;             // per storage: ops to be placed that touch it
  std::vector<uint8_t> is_here_;          // [storage * devices + device]
  std::vector<uint8_t> is_made_here_;     // the same, by an op or as a graph input
  std::vector<uint8_t> has_resident_;     // [resident * devices + device]
  std::vector<uint8_t> is_given_;         // per storage: holds a graph input
  std::vector<int32_t> home_;             // per such storage: where its input lies, or -1
  std::vector<int64_t> live_, peak_, resident_;
};

}  // namespace regal
