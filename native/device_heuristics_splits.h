#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_heuristics_tables.h"

namespace regal {

// An order cut into one stretch per device. Device sequence[k] gets the positions from cuts[k]
// to cuts[k + 1]; n_devices + 1 ascending cuts, the first 0, the last n_ops.
using Cuts = std::vector<int32_t>;

// Searches good cuts of one order, and says which device then runs each op.
class OrderSplitter {
 public:
  // Keeps references to all three.
  OrderSplitter(const DeviceTables& tables, std::span<const int32_t> order,
                std::span<const int32_t> sequence);

  // Each device in turn until it has worked `fill` times its fair share; the last one does the
  // rest. With n devices 1 is balanced, and n is everything on the first device.
  Cuts by_work(double fill) const;

  // The cuts that send least, none with more work than `fill` fair shares nor with more residents
  // and live bytes than its device holds; empty if there are none. Dynamic program.
  // Cost: O(n * devices + reads).
  Cuts by_traffic(double fill) const;

  // The cuts whose stretch with the most live bytes has as few as possible: bisection over that
  // number, each stretch as long as it allows. A copy lives from the start of its stretch.
  // Cost: O(touches * log(n)) per probe.
  Cuts by_memory();

  // Ops go where their stretch goes, unless their group is elsewhere, or may not run there, or
  // the device is full while another is not.
  std::vector<int32_t> placement_of(const Cuts& cuts) const;

 private:
  double fair_share() const;
  int64_t work_of(int32_t op, int32_t device) const;
  void fill_windows(size_t k, double most_work, std::vector<int32_t>& first) const;
  int64_t bytes_of(int32_t begin, int32_t end);
  int32_t longest(int32_t begin, int64_t most);

  const DeviceTables& tables_;
  std::span<const int32_t> order_;
  std::span<const int32_t> sequence_;
  std::vector<std::vector<int64_t>> work_;  // per stretch: work before each position
  std::vector<int64_t> traffic_;            // per position: ns to send what is read after it
  std::vector<int64_t> live_;               // per position: bytes on one device
  std::vector<int32_t> made_at_;            // per storage: its first position; -1: a graph input
  std::vector<int32_t> last_at_;            // scratch per storage
  std::vector<int32_t> seen_in_;            // scratch per storage: number of the probe
  int32_t probe_ = 0;
};

}  // namespace regal
