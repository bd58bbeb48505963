#pragma once
#include <cstdint>
#include <vector>

#include "device_compact.h"
#include "device_memory.h"
#include "device_timeline.h"

namespace regal {

// The ops that a schedule is worth changing at. One per search; reuses its memory.
class CriticalOps {
 public:
  explicit CriticalOps(const CompactDevices& problem);

  // Appends the ops of one chain without idle time from the end of the schedule to its start: each
  // ends when the next one, or the transfer that the next one waits for, begins.
  void add_longest_chain(const Timeline& timeline, std::vector<int32_t>& ops);

  // Appends producer and last local reader of what is live at the largest peak of a device.
  void add_peak(const Timeline& timeline, const MemoryMeter& meter, std::vector<int32_t>& ops);

 private:
  void index_sends(const Timeline& timeline);
  int32_t send_to(int32_t tensor, int32_t device) const;  // -1: none
  int32_t maker_before(const Timeline& timeline, int32_t op, std::vector<int32_t>& ops) const;
  int32_t start_of_sends(const Timeline& timeline, int32_t send, std::vector<int32_t>& ops) const;

  const CompactDevices* problem_;
  std::vector<int32_t> op_before_;       // per op: what its device does before
  std::vector<int32_t> send_before_;     // per send: what its link does before
  std::vector<int64_t> first_send_of_;   // per tensor: its sends lie side by side
  std::vector<int32_t> sends_;
  std::vector<int32_t> target_of_;       // like sends_
};

}  // namespace regal
