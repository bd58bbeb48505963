#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace regal {

// What a search may spend, and what it has spent. Counts decide alone unless the caller asks for a
// deadline or cancels, so that results do not depend on the machine.
//
// A search plans with `most`: its shares are parts of what is left of it. `limit` ends it early, like a
// deadline: a search that a deadline ended after n units is repeated exactly by the limit n. For that
// both end it at the first unit that it may not spend; what costs nothing is still done.
class Effort {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Effort(int64_t most, const std::atomic<bool>* is_cancelled = nullptr,
                  Clock::time_point deadline = Clock::time_point::max(),
                  int64_t limit = int64_t{1} << 62)
      : most_(most), limit_(limit), is_cancelled_(is_cancelled), deadline_(deadline) {}

  // The units of a piece of work that computes the cost of `steps` steps. Measured on real graphs: a
  // visited downset computes about 60.
  static constexpr int64_t units(int64_t steps) { return 1 + steps / 64; }

  // Counts units of work; false if the search must stop.
  bool spend(int64_t units = 1) {
    if (is_over_ || spent_ + units > most_) return false;
    if (spent_ + units > limit_) {
      is_over_ = true;
      return false;
    }
    // Reading the clock costs about as much as a small state: do it rarely.
    const bool is_due = (spent_ + units) / 256 != spent_ / 256;
    spent_ += units;
    if (is_due && is_interrupted()) limit_ = spent_;
    return true;
  }

  // An effort for a part of the work: at most `most` units of what is left here.
  Effort share(int64_t most) const {
    Effort part(most < left() ? most : left(), is_cancelled_, deadline_, limit_ - spent_);
    part.is_over_ = is_over_;
    return part;
  }

  // Takes over what a part has spent.
  void add(const Effort& part) {
    limit_ = std::min(limit_, spent_ + part.limit_);
    spent_ += part.spent_;
    is_over_ = is_over_ || part.is_over_;
    if (is_interrupted()) limit_ = std::min(limit_, spent_);
  }

  int64_t spent() const { return spent_; }
  int64_t left() const { return is_over() ? 0 : most_ - spent_; }
  bool is_over() const { return is_over_ || spent_ >= most_; }

 private:
  bool is_interrupted() const {
    return (is_cancelled_ != nullptr && is_cancelled_->load(std::memory_order_relaxed)) ||
           (deadline_ != Clock::time_point::max() && Clock::now() >= deadline_);
  }

  int64_t most_;
  int64_t limit_;
  int64_t spent_ = 0;
  bool is_over_ = false;
  const std::atomic<bool>* is_cancelled_;
  Clock::time_point deadline_;
};

}  // namespace regal
