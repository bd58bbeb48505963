#include "device_memory.h"

#include <algorithm>
#include <limits>

namespace regal {

MemoryMeter::MemoryMeter(const CompactDevices& problem)
    : problem_(&problem),
      n_devices_(problem.n_devices()),
      instances_(static_cast<size_t>(problem.source->n_storages) * problem.n_devices()),
      peaks_(n_devices_),
      peak_times_(n_devices_),
      residents_(n_devices_),
      last_user_(n_devices_) {
  for (int32_t r = 0; r < problem.source->n_residents; ++r) {
    if (problem.source->resident_users[r].size() > 1) shared_residents_.push_back(r);
  }
}

int64_t MemoryMeter::most() const { return *std::max_element(peaks_.begin(), peaks_.end()); }

int32_t MemoryMeter::peak_device() const {
  return static_cast<int32_t>(std::max_element(peaks_.begin(), peaks_.end()) - peaks_.begin());
}

void MemoryMeter::measure(const Timeline& timeline) {
  const DeviceProblem& p = *problem_->source;
  find_touches(timeline);
  count_residents(timeline);
  overflow_ = 0;
  for (int32_t d = 0; d < n_devices_; ++d) {
    sweep(timeline, d);
    const int64_t used = residents_[d] + (p.capacity_counts_live ? peaks_[d] : 0);
    if (used > p.capacity[d]) overflow_ += used - p.capacity[d];
  }
}

void MemoryMeter::find_touches(const Timeline& timeline) {
  const DeviceProblem& p = *problem_->source;
  std::fill(instances_.begin(), instances_.end(),
            Instance{std::numeric_limits<int64_t>::max(), 0, -1, -1, false, false});
  for (int32_t d = 0; d < n_devices_; ++d) {
    for (int32_t v = timeline.first_on(d); v >= 0; v = timeline.next_of(v)) {
      for (const int32_t s : problem_->touches(v)) instance(s, d).last_op = v;
    }
  }
  const auto sent = timeline.sent();
  for (size_t k = 0; k < sent.size(); ++k) {
    const int32_t s = p.storage[sent[k].tensor];
    if (s < 0) continue;
    for (const int32_t d : {sent[k].source, sent[k].target}) {
      Instance& at = instance(s, d);
      at.first_send_start = std::min(at.first_send_start, sent[k].start);
      if (sent[k].end <= at.last_send_end) continue;
      at.last_send_end = sent[k].end;
      at.last_send = static_cast<int32_t>(k);
    }
  }
  for (const int32_t t : problem_->outputs) {
    instance(p.storage[t], std::max(timeline.maker_of(t), 0)).is_kept = true;
  }
}

void MemoryMeter::count_residents(const Timeline& timeline) {
  const DeviceProblem& p = *problem_->source;
  std::fill(residents_.begin(), residents_.end(), 0);
  if (p.n_residents == 0) return;
  for (int32_t v = 0; v < p.n_ops; ++v) {
    residents_[timeline.device_of(v)] += problem_->private_bytes[v];
  }
  std::fill(last_user_.begin(), last_user_.end(), -1);
  for (const int32_t r : shared_residents_) {
    for (const int32_t v : p.resident_users[r]) {
      const int32_t d = timeline.device_of(v);
      if (last_user_[d] == r) continue;
      last_user_[d] = r;
      residents_[d] += p.resident_bytes[r];
    }
  }
}

void MemoryMeter::collect_sends(const Timeline& timeline, int32_t device) {
  const DeviceProblem& p = *problem_->source;
  const auto sent = timeline.sent();
  arriving_.clear();
  freeing_.clear();
  const auto collect = [&](int32_t k) {
    const int32_t s = p.storage[sent[k].tensor];
    if (s < 0) return;
    if (sent[k].target == device) arriving_.push_back(k);
    const Instance& at = instance(s, device);
    if (at.last_send != k || at.is_kept) return;
    if (at.last_op < 0 || timeline.finish_of(at.last_op) < sent[k].end) freeing_.push_back(k);
  };
  const bool is_sorted = p.has_contention && n_devices_ == 2;
  if (is_sorted) {
    // One link each way, in the sequence of time; what arrives is almost always read later.
    const int32_t other = 1 - device;
    for (int32_t k = timeline.first_over(other, device); k >= 0; k = timeline.next_sent(k)) collect(k);
    const size_t arriving_freed = freeing_.size();
    for (int32_t k = timeline.first_over(device, other); k >= 0; k = timeline.next_sent(k)) collect(k);
    if (arriving_freed == 0) return;
  } else {
    for (int32_t k = 0; k < static_cast<int32_t>(sent.size()); ++k) {
      if (sent[k].source == device || sent[k].target == device) collect(k);
    }
    std::sort(arriving_.begin(), arriving_.end(),
              [&](int32_t a, int32_t b) { return sent[a].start < sent[b].start; });
  }
  std::sort(freeing_.begin(), freeing_.end(),
            [&](int32_t a, int32_t b) { return sent[a].end < sent[b].end; });
}

void MemoryMeter::begin(int32_t storage) {
  Instance& at = instance(storage, here_);
  if (at.is_live) return;
  at.is_live = true;
  live_ += problem_->source->bytes[storage];
}

// What transfers do up to `until`: those that end then have ended, those that start then have not.
// Of things that happen at one instant, ends come first.
void MemoryMeter::pass(const Timeline& timeline, int64_t until) {
  const DeviceProblem& p = *problem_->source;
  const auto sent = timeline.sent();
  while (true) {
    const bool has_start =
        next_arriving_ < arriving_.size() && sent[arriving_[next_arriving_]].start < until;
    const bool has_end = next_freeing_ < freeing_.size() && sent[freeing_[next_freeing_]].end <= until;
    if (has_end && (!has_start || sent[freeing_[next_freeing_]].end <= sent[arriving_[next_arriving_]].start)) {
      live_ -= p.bytes[p.storage[sent[freeing_[next_freeing_++]].tensor]];
    } else if (has_start) {
      const Timeline::Sent& send = sent[arriving_[next_arriving_++]];
      begin(p.storage[send.tensor]);
      if (live_ > peaks_[here_]) {
        peaks_[here_] = live_;
        peak_times_[here_] = send.start;
      }
    } else {
      return;
    }
  }
}

// Bytes of storages that `op` writes over: it touches `in` last and `out` first on its device.
int64_t MemoryMeter::written_over(const Timeline& timeline, int32_t op) {
  const DeviceProblem& p = *problem_->source;
  const int64_t first = p.in_place_of[op];
  const int64_t last = std::min(p.in_place_of[op + 1], first + 64);
  int64_t bytes = 0;
  uint64_t taken = 0;
  for (int64_t i = first; i < last; ++i) {
    const InPlace& pair = p.in_place[i];
    const Instance& in = instance(pair.in, here_);
    const Instance& out = instance(pair.out, here_);
    bool is_possible = in.last_op == op && in.last_send_end <= timeline.start_of(op) && !out.is_live &&
                       out.first_send_start >= timeline.finish_of(op);
    for (int64_t j = first; j < i && is_possible; ++j) {
      const bool shares = p.in_place[j].in == pair.in || p.in_place[j].out == pair.out;
      is_possible = !(shares && (taken >> (j - first) & 1));
    }
    if (!is_possible) continue;
    taken |= uint64_t{1} << (i - first);
    bytes += p.bytes[pair.in];
  }
  return bytes;
}

void MemoryMeter::sweep(const Timeline& timeline, int32_t device) {
  const DeviceProblem& p = *problem_->source;
  here_ = device;
  live_ = 0;
  next_arriving_ = next_freeing_ = 0;
  collect_sends(timeline, device);
  if (timeline.time() > 0) {
    for (const int32_t t : problem_->inputs) {
      if (p.storage[t] < 0 || std::max(timeline.maker_of(t), 0) != device) continue;
      const Instance& at = instance(p.storage[t], device);
      if (at.is_kept || at.last_op >= 0 || at.last_send >= 0) begin(p.storage[t]);
    }
  }
  peaks_[device] = live_;
  peak_times_[device] = 0;
  for (int32_t v = timeline.first_on(device); v >= 0; v = timeline.next_of(v)) {
    pass(timeline, timeline.start_of(v));
    const int64_t extra = p.workspace[v] - written_over(timeline, v);
    for (const int32_t s : problem_->begins(v)) begin(s);
    live_ += extra;
    if (live_ > peaks_[device]) {
      peaks_[device] = live_;
      peak_times_[device] = timeline.start_of(v);
    }
    const int64_t end = timeline.finish_of(v);
    pass(timeline, end);
    live_ -= extra;
    for (const int32_t s : problem_->touches(v)) {
      const Instance& at = instance(s, device);
      if (at.last_op == v && at.last_send_end <= end && !at.is_kept) live_ -= p.bytes[s];
    }
  }
  pass(timeline, std::numeric_limits<int64_t>::max());
}

}  // namespace regal
