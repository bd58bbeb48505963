// The earliest-finish-time decoder.
#include <algorithm>
#include <array>
#include <cmath>

#include "device_decode.h"

namespace regal {
namespace {

// How much an affinity key draws, in units of the op: 0 when neutral, 1 at 5/6, without bound towards
// the ends, so that any placement can be forced. By the upper 12 bits.
constexpr int kPullBits = 12;
constexpr double kForced = 1e12;

constexpr std::array<double, 1 << kPullBits> make_pulls() {
  constexpr double size = 1 << kPullBits;
  std::array<double, 1 << kPullBits> pulls{};
  for (size_t i = 0; i < pulls.size(); ++i) {
    const double key = static_cast<double>(i) / size - 0.5;
    pulls[i] = key / (1 - 2 * (key < 0 ? -key : key) + 1 / size);
  }
  pulls.back() = kForced;
  return pulls;
}

constexpr std::array<double, 1 << kPullBits> kPulls = make_pulls();

constexpr double kMostPull = 1e17;  // ns; keeps sums in int64

}  // namespace

int32_t ScheduleDecoder::earliest_device(const Genes& genes, int32_t op) {
  const CompactDevices& p = *problem_;
  const int32_t fixed = group_device_[p.source->group[op]];
  if (fixed >= 0) return fixed;
  const uint32_t colocation = genes[layout_.colocation + op];
  if (colocation > bends_.follows_above || colocation < bends_.sibling_below) {
    const bool follows = colocation > bends_.follows_above;
    const int32_t device = device_beside(op, follows ? p.heaviest[op] : p.sibling[op]);
    if (device >= 0) return device;
  }
  timeline_.find_ends(op, ends_);
  const uint32_t* keys = affinities(genes, op);
  const double unit = bends_.affinity * unit_[op];
  int32_t best = -1;
  int64_t best_end = 0, best_overflow = 0;
  for (int32_t d = 0; d < p.n_devices(); ++d) {
    if (!p.may_run(op)[d]) continue;
    const double pull = std::clamp(unit * kPulls[keys[d] >> (32 - kPullBits)], -kMostPull, kMostPull);
    const int64_t end = ends_[d] - static_cast<int64_t>(pull);
    const int64_t overflow = overflow_with(op, d);
    if (best < 0 || overflow < best_overflow || (overflow == best_overflow && end < best_end)) {
      best = d;
      best_end = end;
      best_overflow = overflow;
    }
  }
  return best;
}

// The exponents were chosen on the training graphs of benchmarks/tune_brkga.py: neutral weights
// bend by 1/32 of the ranks and 1/16 of an op; without a bound the search switches the heuristic off.
void ScheduleDecoder::decode_eft(const Genes& genes) {
  const CompactDevices& p = *problem_;
  const double follows = 0.5 * std::pow(weight(genes, kColocationWeight), 2);
  const double waits = 0.5 * std::pow(weight(genes, kWaitWeight), 8);
  bends_.affinity = std::exp2(-8 * (1 - weight(genes, kAffinityWeight)));
  bends_.follows_above = key_at(1 - follows);
  bends_.sibling_below = key_at(follows);
  const auto n = static_cast<size_t>(p.n_ops());
  ready_.start(ranks_,
               {{genes.data() + layout_.priority, n},
                0.5 * std::exp2(-8 * (1 - weight(genes, kPriorityWeight))),
                {genes.data() + layout_.wait, n},
                key_at(waits)},
               timeline_);
  for (int32_t step = 0; step < p.n_ops(); ++step) {
    const int32_t v = ready_.next();
    put(genes, v, earliest_device(genes, v));
    ready_.finish(v);
  }
}

}  // namespace regal
