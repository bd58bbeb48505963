#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_heuristics_ledger.h"
#include "device_heuristics_tables.h"

namespace regal {

// When one device or link is busy.
class BusyTimes {
 public:
  // The first start >= ready of an idle stretch of this length.
  // Cost: logarithmic in the gaps, plus the gaps that are too short.
  int64_t earliest(int64_t ready, int64_t length) const;
  void reserve(int64_t start, int64_t length);
  int64_t end() const { return end_; }

 private:
  struct Gap {
    int64_t start;
    int64_t end;
  };
  std::vector<Gap> gaps_;  // ascending
  int64_t end_ = 0;        // idle from here on
};

struct Placed {
  std::vector<int32_t> placement;
  std::vector<int32_t> order;
};

// A schedule under construction, op by op, predecessors first. Transfers are booked on their links
// as soon as their reader is placed, into gaps where they fit; without contention they just take
// their time. A graph input lies where its first placed reader is.
class ListSchedule {
 public:
  explicit ListSchedule(const DeviceTables& tables);

  // Whether the op can go there: its group is allowed there and not elsewhere yet.
  bool may_place(int32_t op, int32_t device) const;

  // When all that the op waits for can be on the device, if it were placed now.
  int64_t ready_at(int32_t op, int32_t device);

  // Its start there: in the first gap that fits, or (`appends`) after all ops of the device.
  int64_t start_at(int32_t op, int32_t device, int64_t ready, bool appends) const;

  void place(int32_t op, int32_t device, bool appends);

  int64_t overflow_of(int32_t op, int32_t device) const { return ledger_.overflow_of(op, device); }
  int64_t device_end(int32_t device) const { return busy_[device].end(); }
  int64_t end_of(int32_t op) const { return end_[op]; }

  // Once all ops are placed: they in the sequence of their starts, which is a legal order.
  Placed result() const;

 private:
  struct Missing {
    int64_t ready;
    int32_t tensor;
    int32_t source;
  };
  int64_t arrival(int32_t op, int32_t device, bool books);

  const DeviceTables* tables_;
  int64_t devices_;
  MemoryLedger ledger_;
  std::vector<int32_t> placement_;  // -1: not placed
  std::vector<int64_t> start_, end_;
  std::vector<int32_t> sequence_;   // ops as they were placed
  std::vector<int32_t> home_;       // per tensor: device of a graph input, or -1
  std::vector<int64_t> there_;      // [tensor * devices + device]: since when; -1: it is not
  std::vector<BusyTimes> busy_;      // per device
  std::vector<BusyTimes> links_;     // [source * devices + target]
  std::vector<Missing> missing_;    // scratch
  std::vector<int64_t> sent_until_; // scratch, per source
};

// HEFT, CPOP and PEFT: the ready op of the highest priority goes where the end of the op plus
// `beyond` is least, inserted into gaps.
struct InsertionRule {
  std::span<const int64_t> priorities;  // per op
  std::span<const int64_t> beyond;      // [op * n_devices + device], or empty: 0
  std::span<const int32_t> wished;      // per op: the device that it must have if it can; or -1
};
Placed insertion_schedule(const DeviceTables& tables, const InsertionRule& rule);

// ETF: of all ready ops and devices the earliest start; ties by priority, op, device.
struct EarliestRule {
  std::span<const int64_t> priorities;  // per op
  std::span<const int32_t> placement;   // empty: free; else plain list scheduling
  std::span<const int32_t> favorites;   // SCT: per op the child that its device waits for, or -1
};
Placed earliest_schedule(const DeviceTables& tables, const EarliestRule& rule);

// Favorite children without the linear program of SCT: edges in the sequence of their weight, each
// taken if its op has no favorite yet and its reader is nobody's. By the longest way through the
// edge, or by what the transfer takes.
enum class Favorites { Critical, Dear };
std::vector<int32_t> greedy_favorites(const DeviceTables& tables, Favorites kind);

}  // namespace regal
