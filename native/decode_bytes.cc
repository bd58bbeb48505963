// Decoders that look at the bytes which the next step costs.
#include <algorithm>

#include "decode.h"

namespace regal {
namespace {

// 16 bits of a key times this, plus any change of the live bytes, stays below 2^63.
constexpr int64_t kMostBend = int64_t{1} << 45;

}  // namespace

template <Decoder kind>
ReadyOp OrderDecoder::ranked(std::span<const uint32_t> keys, int32_t op) const {
  const Effect effect = effects_[op];
  if constexpr (kind == Decoder::Greedy) return {effect.after, effect.during, keys[op], op};
  const int64_t opinion = static_cast<int64_t>(keys[op] >> 16) - (kNeutralKey >> 16);
  const int64_t score = effect.after - ((opinion * bend_bytes_) >> 15);
  const bool is_safe = kind == Decoder::Forced && effect.after <= 0;
  return {score, is_safe ? effect.during : ReadySet::kNever, keys[op], op};
}

template <Decoder kind>
void OrderDecoder::insert_ready(std::span<const uint32_t> keys, int32_t op) {
  effects_[op] = problem_->effect_of(op, left_.data());
  ready_.insert(ranked<kind>(keys, op));
}

// Runs `op` on the counters, and corrects the ready ops whose effect depends on them. An op that
// depends on several counters is corrected after each that changes, so the last one sees all.
template <Decoder kind>
void OrderDecoder::count_touches(std::span<const uint32_t> keys, int32_t op) {
  const CompactProblem& p = *problem_;
  for (const int32_t c : p.counters_of(op)) {
    const CompactProblem::Counter& counter = p.counters[c];
    const int32_t left = --left_[c];
    const int32_t other = among_[c] ^= op;
    if (counter.allocated > 0 && left == counter.touchers - 1) {
      for (int32_t i = 0; i < counter.touchers; ++i) {
        const int32_t reader = p.readers[counter.readers + i];
        if (!ready_.holds(reader)) continue;
        effects_[reader] = p.effect_of(reader, left_.data());
        ready_.update(ranked<kind>(keys, reader));
      }
    } else if (left == 1 && ready_.holds(other)) {
      if (p.rows[other].is_plain) {
        effects_[other].after -= counter.freed;
      } else {
        effects_[other] = p.effect_of(other, left_.data());
      }
      ready_.update(ranked<kind>(keys, other));
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
  const int64_t most = std::min(p.most_touched, kMostBend);
  bend_bytes_ = static_cast<int64_t>(static_cast<double>(most) * weight * 0x1.0p-31);
  effects_.resize(p.n_ops());
  ready_.clear();
  for (int32_t v = 0; v < p.n_ops(); ++v) {
    if (waiting_[v] == 0) insert_ready<kind>(keys, v);
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
      if (--waiting_[w] == 0) insert_ready<kind>(keys, w);
    }
  }
  return peak;
}

template int64_t OrderDecoder::decode_by_bytes<Decoder::Greedy>(std::span<const uint32_t>, uint32_t);
template int64_t OrderDecoder::decode_by_bytes<Decoder::Bent>(std::span<const uint32_t>, uint32_t);
template int64_t OrderDecoder::decode_by_bytes<Decoder::Forced>(std::span<const uint32_t>, uint32_t);

}  // namespace regal
