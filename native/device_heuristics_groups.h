#pragma once
#include "device_problem.h"

namespace regal {

// The problem with larger colocation groups, as Baechi makes them: an op whose outputs only one
// other op reads joins that op's group, unless no device could run or hold both groups.
DeviceProblem put_together(const DeviceProblem& problem);

}  // namespace regal
