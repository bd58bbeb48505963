// The decoder for memory: placement inherited from producers, order from one device.
#include <algorithm>
#include <cmath>

#include "device_decode.h"

namespace regal {
// No schedule needs less than the op that touches most, and one device never needs more than all.
void ScheduleDecoder::find_levels() {
  const DeviceProblem& p = *problem_->source;
  for (int32_t v = 0; v < p.n_ops; ++v) {
    int64_t bytes = p.workspace[v], written_over = 0;
    for (const int32_t s : problem_->touches(v)) bytes += p.bytes[s];
    for (int64_t i = p.in_place_of[v]; i < p.in_place_of[v + 1]; ++i) {
      written_over = std::max(written_over, p.bytes[p.in_place[i].in]);
    }
    least_level_ = std::max(least_level_, bytes - written_over);
  }
  std::vector<int32_t> left;
  most_level_ = std::max(least_level_, problem_->one_device().peak_of(problem_->reference, left));
}

int32_t ScheduleDecoder::inherited_device(const Genes& genes, int32_t op) const {
  const CompactDevices& p = *problem_;
  const int32_t fixed = group_device_[p.source->group[op]];
  if (fixed >= 0) return fixed;
  const int32_t wanted = device_wanted(genes, op);
  const bool is_pinned = affinities(genes, op)[wanted] > bends_.pinned_above;
  int32_t best = -1;
  if (!is_pinned && genes[layout_.colocation + op] >= bends_.sibling_below) {
    best = device_beside(op, p.heaviest[op]);
  }
  if (!is_pinned && best < 0) best = device_beside(op, p.sibling[op]);
  if (best < 0) best = wanted;
  int64_t least_overflow = overflow_with(op, best);
  if (is_pinned && least_overflow == 0) return best;
  int64_t least = live_.with(op, best);
  if (least_overflow == 0 && least <= bends_.level) return best;
  const int32_t first = best;
  for (int32_t d = 0; d < p.n_devices(); ++d) {
    if (d == first || !p.may_run(op)[d]) continue;
    const int64_t overflow = overflow_with(op, d), bytes = live_.with(op, d);
    if (overflow > least_overflow || (overflow == least_overflow && bytes >= least)) continue;
    best = d;
    least_overflow = overflow;
    least = bytes;
  }
  return best;
}

void ScheduleDecoder::decode_inherit(const Genes& genes) {
  const CompactDevices& p = *problem_;
  bends_.pinned_above = key_at(1 - 0.5 * std::pow(weight(genes, kAffinityWeight), 2));
  bends_.sibling_below = key_at(0.5 * std::pow(weight(genes, kColocationWeight), 2));
  const auto least = static_cast<double>(least_level_), most = static_cast<double>(most_level_);
  bends_.level = static_cast<int64_t>(std::ceil(least * std::pow(most / least, weight(genes, kWaitWeight))));
  const std::span<const uint32_t> keys{genes.data() + layout_.priority, static_cast<size_t>(p.n_ops())};
  if (weight(genes, kOrderWeight) < 0.5) {
    one_device_.decode(Decoder::Forced, keys, genes[layout_.weight + kPriorityWeight]);
    for (const int32_t v : one_device_.order()) put(genes, v, inherited_device(genes, v));
    return;
  }
  const double bend = 0.5 * std::exp2(-8 * (1 - weight(genes, kPriorityWeight)));
  ready_.start(ranks_, {keys, bend, {}, 0}, timeline_);
  for (int32_t step = 0; step < p.n_ops(); ++step) {
    const int32_t v = ready_.next();
    put(genes, v, inherited_device(genes, v));
    ready_.finish(v);
  }
}

}  // namespace regal
