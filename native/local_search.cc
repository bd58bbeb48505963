#include "local_search.h"

#include <algorithm>
#include <cmath>

#include "moves.h"
#include "rng.h"

namespace regal {
namespace {

constexpr int kMostFailures = 1000;  // blocks in a row that cannot move at all
constexpr int64_t kKickAfter = 40;   // moves per op without a better order
constexpr int kKickMoves = 6;
// Annealing: moves per op before it begins, so that a short run gets the easy gains; moves per op
// of the first cycle; first temperature as a share of the peak; logarithm of first over last.
constexpr int64_t kColdMoves = 5;
constexpr int64_t kFirstCycle = 20;
constexpr double kHottest = 0.03;
constexpr double kCooling = 5;

struct Move {
  int32_t begin;
  int32_t middle;
  int32_t end;
  bool is_legal;
};

class LocalSearch {
 public:
  LocalSearch(const CompactProblem& problem, const LocalSearchSettings& settings,
              const std::atomic<bool>& cancelled)
      : settings_(settings),
        n_ops_(problem.n_ops()),
        deadline_(settings.stop.seconds, cancelled),
        rng_(settings.seed, 0),
        order_(problem) {
    order_.assign(settings.start);
    best_.order.assign(settings.start.begin(), settings.start.end());
    best_.peak_bytes = order_.peak_bytes();
    best_.evaluations = 1;
    best_area_ = order_.area();
  }

  SearchResult run() {
    if (n_ops_ > 1) settings_.is_annealing ? anneal() : climb();
    return best_;
  }

 private:
  void anneal();
  void climb();
  bool step(double temperature);
  void kick();
  Move draw();
  int32_t draw_distance(int32_t most);
  bool is_over();
  void back_to_best() { order_.assign(best_.order); }
  double energy(int64_t peak_bytes, int64_t area) const {
    return static_cast<double>(peak_bytes) + 0.5 * static_cast<double>(area) / n_ops_;
  }

  const LocalSearchSettings& settings_;
  int32_t n_ops_;
  Deadline deadline_;
  Rng rng_;
  MovableOrder order_;
  SearchResult best_;
  int64_t best_area_ = 0;
  int64_t since_better_ = 0;
  bool is_stuck_ = false;
};

bool LocalSearch::is_over() {
  if (is_stuck_ || best_.peak_bytes <= settings_.stop.peak_bytes) return true;
  if (best_.evaluations >= settings_.stop.evaluations) return true;
  return best_.evaluations % 64 == 0 && deadline_.has_passed();
}

void LocalSearch::anneal() {
  const double hot = kHottest * static_cast<double>(best_.peak_bytes);
  for (int64_t i = 0; i < kColdMoves * n_ops_; ++i) {
    if (is_over()) return;
    step(0);
  }
  for (int64_t length = kFirstCycle * n_ops_;; length *= 2) {
    back_to_best();
    for (int64_t i = 0; i < length; ++i) {
      if (is_over()) return;
      const double progress = static_cast<double>(i) / static_cast<double>(length);
      step(hot * std::exp(-kCooling * progress));
    }
  }
}

void LocalSearch::climb() {
  while (!is_over()) {
    step(0);
    if (since_better_ < kKickAfter * n_ops_) continue;
    since_better_ = 0;
    back_to_best();
    kick();
  }
}

void LocalSearch::kick() {
  for (int i = 0; i < kKickMoves && !is_over(); ++i) step(std::numeric_limits<double>::infinity());
}

// Tries one move; takes it if it is no worse, or by chance. Returns whether it was taken.
bool LocalSearch::step(double temperature) {
  Move move{};
  for (int failures = 0; !move.is_legal; ++failures) {
    if (failures == kMostFailures) {
      is_stuck_ = true;
      return false;
    }
    move = draw();
  }
  const MovableOrder::Cost cost = order_.try_move(move.begin, move.middle, move.end);
  ++best_.evaluations;
  ++since_better_;
  const double rise = energy(cost.peak_bytes, cost.area) - energy(order_.peak_bytes(), order_.area());
  const double chance = rng_.uniform();
  if (rise > 0 && !(temperature > 0 && chance < std::exp(-rise / temperature))) return false;
  order_.accept();
  const bool is_better = cost.peak_bytes != best_.peak_bytes ? cost.peak_bytes < best_.peak_bytes
                                                             : cost.area < best_area_;
  if (is_better) {
    best_.order.assign(order_.order().begin(), order_.order().end());
    best_.peak_bytes = cost.peak_bytes;
    best_area_ = cost.area;
    since_better_ = 0;
  }
  return true;
}

// Distances of every magnitude are equally likely.
int32_t LocalSearch::draw_distance(int32_t most) {
  const double scale = std::exp(rng_.uniform() * std::log1p(most));
  return std::clamp(static_cast<int32_t>(scale), 1, most);
}

Move LocalSearch::draw() {
  const uint64_t word = rng_.next();
  int32_t begin;
  if (word & 1) {
    const int32_t reach = draw_distance(std::min(n_ops_, 256));
    const int32_t shift = static_cast<int32_t>(rng_.below(2 * reach + 1)) - reach;
    begin = std::clamp(order_.peak_step(word >> 8) + shift, 0, n_ops_ - 1);
  } else {
    begin = static_cast<int32_t>(rng_.below(n_ops_));
  }
  const int32_t length = word & 2 ? 1 : draw_distance(std::min(n_ops_ - begin, 32));
  const int32_t end = begin + std::min(length, n_ops_ - begin);
  if (word & 4) {
    const int32_t latest = order_.latest_end(begin, end);
    if (latest == end) return {};
    return {begin, end, end + draw_distance(latest - end), true};
  }
  const int32_t earliest = order_.earliest_begin(begin, end);
  if (earliest == begin) return {};
  return {begin - draw_distance(begin - earliest), begin, end, true};
}

}  // namespace

SearchResult run_local_search(const CompactProblem& problem, const LocalSearchSettings& settings,
                              const std::atomic<bool>& cancelled) {
  return LocalSearch(problem, settings, cancelled).run();
}

}  // namespace regal
