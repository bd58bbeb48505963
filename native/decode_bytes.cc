// Decoders that look at the bytes which the next step costs.
#include <algorithm>

#include "decode.h"

namespace regal {

template <Decoder kind>
ReadyOp OrderDecoder::ready_op(std::span<const uint32_t> keys, int32_t op) {
  const Effect effect = problem_->effect_of(op, left_.data());
  effects_[op] = effect;
  if constexpr (kind == Decoder::Greedy) return {effect.after, effect.during, keys[op], op};
  // 16 bits of the key: their product with the bytes stays far below 2^63.
  const int64_t opinion = static_cast<int64_t>(keys[op] >> 16) - (kNeutralKey >> 16);
  const int64_t score = effect.after - ((opinion * bend_bytes_) >> 15);
  const bool is_safe = kind == Decoder::Forced && effect.after <= 0;
  return {score, is_safe ? effect.during : ReadySet::kNever, keys[op], op};
}

// Runs `op` on the counters, and corrects the ready ops whose cost depends on them.
template <Decoder kind>
void OrderDecoder::count_touches(std::span<const uint32_t> keys, int32_t op) {
  const CompactProblem& p = *problem_;
  for (const int32_t c : p.counters_of(op)) {
    --left_[c];
    among_[c] ^= op;
  }
  for (const int32_t c : p.counters_of(op)) {
    const CompactProblem::Counter& counter = p.counters[c];
    if (left_[c] == counter.touchers - 1 && counter.allocated > 0) {
      for (int32_t i = 0; i < counter.touchers; ++i) {
        const int32_t other = p.readers[counter.readers + i];
        if (ready_.holds(other)) ready_.update(ready_op<kind>(keys, other));
      }
    } else if (left_[c] == 1 && ready_.holds(among_[c])) {
      ready_.update(ready_op<kind>(keys, among_[c]));
    }
  }
}

template <Decoder kind>
int64_t OrderDecoder::decode_by_bytes(std::span<const uint32_t> keys, uint32_t weight) {
  const CompactProblem& p = *problem_;
  waiting_ = p.waiting;
  left_ = p.untouched;
  among_.resize(p.counters.size());
  for (size_t c = 0; c < among_.size(); ++c) among_[c] = p.counters[c].among;
  const int64_t largest = std::min(p.largest_change, int64_t{1} << 45);
  bend_bytes_ = static_cast<int64_t>(static_cast<double>(largest) * weight * 0x1.0p-31);
  effects_.resize(p.n_ops());
  ready_.clear();
  for (int32_t v = 0; v < p.n_ops(); ++v) {
    if (waiting_[v] == 0) ready_.insert(ready_op<kind>(keys, v));
  }
  int64_t live = p.start_bytes;
  int64_t peak = 0;
  while (!ready_.is_empty()) {
    int32_t v;
    if constexpr (kind == Decoder::Greedy) {
      v = ready_.best_within(peak - live);
    } else {
      const ReadySet::Best best = ready_.best();
      const bool is_safe = kind == Decoder::Forced && best.second <= peak - live;
      v = is_safe ? best.by_second : best.by_first;
    }
    ready_.remove(v);
    const Effect effect = effects_[v];
    peak = std::max(peak, live + effect.during);
    live += effect.after;
    order_.push_back(v);
    count_touches<kind>(keys, v);
    for (const int32_t w : p.successors_of(v)) {
      if (--waiting_[w] == 0) ready_.insert(ready_op<kind>(keys, w));
    }
  }
  return peak;
}

template int64_t OrderDecoder::decode_by_bytes<Decoder::Greedy>(std::span<const uint32_t>, uint32_t);
template int64_t OrderDecoder::decode_by_bytes<Decoder::Bent>(std::span<const uint32_t>, uint32_t);
template int64_t OrderDecoder::decode_by_bytes<Decoder::Forced>(std::span<const uint32_t>, uint32_t);

}  // namespace regal
