#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"
#include "device_timeline.h"

namespace regal {

// Peaks, residents and overflow of a finished timeline; equal to those of simulate_devices().
// One per thread; reuses its memory.
class MemoryMeter {
 public:
  explicit MemoryMeter(const CompactDevices& problem);

  // Cost: O(touches + storages * devices + sends log sends); with two devices, without the log.
  void measure(const Timeline& timeline);

  int64_t overflow() const { return overflow_; }
  int64_t most() const;  // the largest peak of a device
  std::span<const int64_t> peaks() const { return peaks_; }
  std::span<const int64_t> residents() const { return residents_; }
  // When the device with the largest peak had it, and which one it is.
  int64_t peak_time() const { return peak_times_[peak_device()]; }
  int32_t peak_device() const;

 private:
  // The instance of a storage on a device. Transfers count in both directions.
  struct Instance {
    int64_t first_send_start;
    int64_t last_send_end;  // 0: none
    int32_t last_send;      // that ends then
    int32_t last_op;        // that touches it there; -1: none
    bool is_kept;           // to the end
    bool is_live;           // now
  };

  Instance& instance(int32_t storage, int32_t device) {
    return instances_[static_cast<int64_t>(storage) * n_devices_ + device];
  }
  void find_touches(const Timeline& timeline);
  void count_residents(const Timeline& timeline);
  void collect_sends(const Timeline& timeline, int32_t device);
  void sweep(const Timeline& timeline, int32_t device);
  void begin(int32_t storage);
  void pass(const Timeline& timeline, int64_t until);
  int64_t written_over(const Timeline& timeline, int32_t op);

  const CompactDevices* problem_;
  int32_t n_devices_;
  std::vector<int32_t> shared_residents_;  // with several users
  std::vector<Instance> instances_;        // [storage * devices + device]
  std::vector<int64_t> peaks_;
  std::vector<int64_t> peak_times_;
  std::vector<int64_t> residents_;
  int64_t overflow_ = 0;

  // Of the device that is swept.
  int32_t here_ = 0;
  int64_t live_ = 0;
  std::vector<int32_t> arriving_;  // sends to it, by start
  std::vector<int32_t> freeing_;   // sends after which nothing touches what they carry, by end
  size_t next_arriving_ = 0;
  size_t next_freeing_ = 0;
  std::vector<int32_t> last_user_;  // per device: the resident that was counted last
};

}  // namespace regal
