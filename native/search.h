#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <vector>

namespace regal {

// When a search stops, whichever comes first. Evaluations are numbered from 0, and evaluation k
// depends on the seed and on earlier evaluations alone: a run that time stopped after e of them
// equals one with `evaluations` = e.
struct StopRule {
  int64_t evaluations = std::numeric_limits<int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();  // of wall time
  int64_t peak_bytes = 0;  // nothing can be lower than this: stop when it is reached
};

struct SearchResult {
  std::vector<int32_t> order;
  int64_t peak_bytes = 0;
  int64_t evaluations = 0;  // plans decoded and simulated that count for the result
};

// The clock and the cancel flag of one run. Checking costs about 30 ns.
class Deadline {
 public:
  Deadline(double seconds, const std::atomic<bool>& cancelled)
      : start_(std::chrono::steady_clock::now()), seconds_(seconds), cancelled_(&cancelled) {}

  bool has_passed() const {
    if (cancelled_->load(std::memory_order_relaxed)) return true;
    if (seconds_ == std::numeric_limits<double>::infinity()) return false;
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    return spent.count() >= seconds_;
  }

 private:
  std::chrono::steady_clock::time_point start_;
  double seconds_;
  const std::atomic<bool>* cancelled_;
};

}  // namespace regal
