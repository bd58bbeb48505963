#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "device_compact.h"
#include "device_problem.h"

namespace regal {

// A smaller problem in which some ops are one. Its schedules are schedules of the whole problem.
struct Contraction {
  DeviceProblem problem;
  std::vector<int32_t> whole_of;              // op -> op of the smaller problem
  std::vector<std::vector<int32_t>> parts_of;  // op of the smaller problem -> ops, in order
};

// Joins what it hardly ever pays to part: an op that takes next to no time with its only
// predecessor or successor, and two ops of a chain, with no one else waiting in between, whose
// transfer takes longer than one of them; never where a transfer on the other side is dearer. No
// joined op takes more than a small share of the time and of the capacities. In-place writing is
// left out. Good for times; peaks would change.
// Cost: O((ops + reads) log) times a few passes.
Contraction contract(const CompactDevices& problem);

// All ops in the sequence of an order of the smaller problem.
std::vector<int32_t> expanded(const Contraction& contraction, std::span<const int32_t> order);

}  // namespace regal
