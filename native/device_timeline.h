#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"
#include "device_simulate.h"

namespace regal {

// A device or a link: it does one thing at a time, and remembers a few of its last gaps.
struct Lane {
  static constexpr int kMostGaps = 8;
  struct Gap {
    int64_t begin;
    int64_t end;
    int32_t before;  // the item that ends where the gap begins; -1: none
  };
  int64_t free = 0;    // end of the last item
  int32_t first = -1;  // items in the sequence of time; the next one is in an array of the owner
  int32_t last = -1;
  int32_t n_gaps = 0;
  std::array<Gap, kMostGaps> gaps;  // by time

  void clear() {
    free = 0;
    first = last = -1;
    n_gaps = 0;
  }
  // Where an item of this length that is ready then starts: in the first gap that holds it, else at
  // the end. Sets `gap` to that gap, or to -1.
  int64_t find(int64_t ready, int64_t length, int32_t& gap) const {
    gap = -1;
    int64_t start = ready > free ? ready : free;
    for (int32_t i = n_gaps - 1; i >= 0 && gaps[i].end >= ready + length; --i) {
      const int64_t at = ready > gaps[i].begin ? ready : gaps[i].begin;
      if (at + length > gaps[i].end) continue;
      start = at;
      gap = i;
    }
    return start;
  }
  void append(int32_t item, int64_t start, int64_t length, std::vector<int32_t>& next) {
    next[item] = -1;
    (last < 0 ? first : next[last]) = item;
    last = item;
    free = start + length;
  }
  void add(int32_t item, int64_t start, int64_t length, int32_t gap, std::vector<int32_t>& next);

 private:
  void remember(int32_t at, Gap gap);
};

// A schedule that grows op by op: each op is put on a device, and what it needs there is sent.
// Everything starts as early as what was put before allows, so that the times are those of
// simulate_devices() on the finished schedule, for any sequence of ops with predecessors first.
class Timeline {
 public:
  struct Sent {
    int32_t tensor;
    int32_t source;
    int32_t target;
    int64_t start;
    int64_t end;
  };

  // With `fills_gaps` an op may run before others of its device that were put earlier.
  explicit Timeline(const CompactDevices& problem, bool fills_gaps = false);

  void clear();
  // When `op` would end on each device. Several tensors over one link make it an estimate.
  // Devices that may not run it get any number.
  void find_ends(int32_t op, std::span<int64_t> ends);
  // Puts `op` there. Of the tensors that must be sent over one link those of higher `urgency`
  // go first (none given: those that are there first).
  void put(int32_t op, int32_t device, std::span<const uint32_t> urgency = {});

  // For decoders that run the clock themselves: what starts now, after all that was put before on
  // its device or link.
  void start_op(int32_t op, int32_t device, int64_t now);
  void start_send(int32_t tensor, int32_t source, int32_t target, int64_t now);
  void set_home(int32_t input, int32_t device) { made_on_[input] = device; }

  int64_t time() const { return time_; }
  int32_t device_of(int32_t op) const { return device_[op]; }  // -1: not put
  int64_t start_of(int32_t op) const { return start_[op]; }
  int64_t finish_of(int32_t op) const { return end_[op]; }
  int32_t maker_of(int32_t tensor) const { return made_on_[tensor]; }  // -1: a homeless input
  // Whether the tensor is on the device, or on its way to it.
  bool has(int32_t tensor, int32_t device) const {
    return arrival_[static_cast<int64_t>(tensor) * n_devices_ + device] >= 0;
  }
  int64_t free_from(int32_t device) const { return devices_[device].free; }
  std::span<const Sent> sent() const { return sent_; }
  // The ops of a device in the sequence of time: first_on, then next_of until -1.
  int32_t first_on(int32_t device) const { return devices_[device].first; }
  int32_t next_of(int32_t op) const { return next_op_[op]; }
  // The sends of a link likewise, as indices into sent(); only with contention.
  int32_t first_over(int32_t source, int32_t target) const {
    return links_[static_cast<int64_t>(source) * n_devices_ + target].first;
  }
  int32_t next_sent(int32_t send) const { return next_send_[send]; }

  DeviceSchedule schedule() const;  // once all ops are put

 private:
  // Loops over devices are unrolled where there are kDevices of them; 0: any number.
  template <int kDevices>
  void find_ends_on(int32_t op, int64_t* ends);
  template <int kDevices>
  void put_on(int32_t op, int32_t device, std::span<const uint32_t> urgency);
  int64_t arrival_by_link(int32_t tensor, int32_t source, int32_t target, int64_t ready) const;
  void send_missing(int32_t op, int32_t device, std::span<const uint32_t> urgency);
  void send(int32_t tensor, int32_t target);

  const CompactDevices* problem_;
  int32_t n_devices_;
  bool fills_gaps_;
  bool has_contention_;
  int64_t time_ = 0;
  std::vector<Lane> devices_;
  std::vector<Lane> links_;        // [source * devices + target]
  std::vector<int64_t> arrival_;   // [tensor * devices + device]; -1: not there, not sent
  std::vector<int32_t> made_on_;   // per tensor
  std::vector<int32_t> device_;    // per op
  std::vector<int64_t> start_;
  std::vector<int64_t> end_;
  std::vector<int32_t> next_op_;
  std::vector<int32_t> next_send_;
  std::vector<Sent> sent_;
  std::vector<int32_t> missing_;
  std::vector<int64_t> busy_until_;  // per target: the estimated end of what the op waits for
  std::vector<int32_t> busy_source_; // per target: over the link from there
};

}  // namespace regal
