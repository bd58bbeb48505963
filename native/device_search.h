#pragma once
#include <cstdint>
#include <limits>
#include <vector>

#include "device_problem.h"
#include "device_simulate.h"

namespace regal {

// When a search over schedules stops, whichever comes first; see StopRule. `value` is a bound:
// a schedule without overflow that is worth no more cannot be improved.
struct DeviceStop {
  int64_t evaluations = std::numeric_limits<int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();  // of wall time
  double value = -std::numeric_limits<double>::infinity();
  bool is_reached(const Score& score) const { return score.overflow == 0 && score.value <= value; }
};

struct DeviceSearchResult {
  DeviceSchedule schedule;
  Score score;
  int64_t evaluations = 0;  // schedules that count for the result
};

struct KeySearchResult {
  DeviceSearchResult found;
  std::vector<uint32_t> genes;  // that decode to it; none where a seed as it was given is the best
};

}  // namespace regal
