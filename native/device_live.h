#pragma once
#include <cstdint>
#include <vector>

#include "device_compact.h"

namespace regal {

// What decoders believe to be live on each device while a schedule grows op by op, as if ops ran
// one after another in that sequence. Exact figures come later, from MemoryMeter: here a copy stays
// until nothing reads its storage on any device.
class LiveEstimate {
 public:
  explicit LiveEstimate(const CompactDevices& problem);

  void clear();
  // Bytes on `device` while `op` runs there; with residents where they count against a capacity.
  int64_t with(int32_t op, int32_t device) const { return live_[device] + added(op, device); }
  // Bytes above the capacity of `device` if `op` ran there.
  int64_t overflow_with(int32_t op, int32_t device) const;
  void put(int32_t op, int32_t device);

 private:
  int64_t added(int32_t op, int32_t device) const;
  int64_t added_residents(int32_t op, int32_t device) const;
  bool has(int32_t storage, int32_t device) const {
    return is_there_[static_cast<int64_t>(storage) * n_devices_ + device] != 0;
  }

  const CompactDevices* problem_;
  int32_t n_devices_;
  std::vector<int32_t> touchers_;  // per storage: ops that touch it
  std::vector<int32_t> left_;      // per storage: those that have yet to run
  std::vector<uint8_t> is_there_;  // [storage * devices + device]
  std::vector<uint8_t> is_kept_;   // per storage: holds an output
  std::vector<int64_t> live_;      // per device
  std::vector<uint8_t> uses_;      // [resident * devices + device]
  std::vector<int64_t> residents_; // per device
};

}  // namespace regal
