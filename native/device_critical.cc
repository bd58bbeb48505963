#include "device_critical.h"

#include <algorithm>

namespace regal {

CriticalOps::CriticalOps(const CompactDevices& problem)
    : problem_(&problem), op_before_(problem.n_ops()), first_send_of_(problem.n_tensors() + 1) {}

void CriticalOps::index_sends(const Timeline& timeline) {
  const auto sent = timeline.sent();
  std::fill(first_send_of_.begin(), first_send_of_.end(), 0);
  for (const Timeline::Sent& send : sent) ++first_send_of_[send.tensor + 1];
  for (size_t t = 1; t < first_send_of_.size(); ++t) first_send_of_[t] += first_send_of_[t - 1];
  sends_.resize(sent.size());
  // Filled from behind: what is left in first_send_of_ are the starts again.
  for (size_t k = sent.size(); k-- > 0;) sends_[--first_send_of_[sent[k].tensor + 1]] = static_cast<int32_t>(k);
  std::rotate(first_send_of_.begin(), first_send_of_.begin() + 1, first_send_of_.end());
  first_send_of_.back() = static_cast<int64_t>(sent.size());
}

int32_t CriticalOps::send_to(int32_t tensor, int32_t device) const {
  for (int64_t i = first_send_of_[tensor]; i < first_send_of_[tensor + 1]; ++i) {
    if (target_of_[sends_[i]] == device) return sends_[i];
  }
  return -1;
}

// Follows a link back to the producer for which its first send in a row had to wait.
int32_t CriticalOps::start_of_sends(const Timeline& timeline, int32_t send, std::vector<int32_t>& ops) const {
  const auto sent = timeline.sent();
  while (true) {
    const int32_t maker = problem_->source->producer[sent[send].tensor];
    if (maker >= 0 && timeline.finish_of(maker) == sent[send].start) return maker;
    if (maker >= 0) ops.push_back(maker);
    const int32_t before = send_before_[send];
    if (before < 0 || sent[before].end != sent[send].start) return -1;
    send = before;
  }
}

// What `op` waited for last, -1 if for nothing; makers of tensors that kept a link busy are appended.
int32_t CriticalOps::maker_before(const Timeline& timeline, int32_t op, std::vector<int32_t>& ops) const {
  const DeviceProblem& p = *problem_->source;
  const int32_t here = timeline.device_of(op);
  const int64_t start = timeline.start_of(op);
  for (const int32_t t : problem_->reads(op)) {
    if (timeline.maker_of(t) == here) {
      const int32_t maker = p.producer[t];
      if (maker >= 0 && timeline.finish_of(maker) == start) return maker;
      continue;
    }
    const int32_t send = send_to(t, here);
    if (send >= 0 && timeline.sent()[send].end == start) return start_of_sends(timeline, send, ops);
  }
  for (const int32_t u : problem_->controls(op)) {
    const int64_t latency = p.latency[static_cast<int64_t>(timeline.device_of(u)) * p.n_devices + here];
    if (timeline.finish_of(u) + latency == start) return u;
  }
  const int32_t before = op_before_[op];
  return before >= 0 && timeline.finish_of(before) == start ? before : -1;
}

void CriticalOps::add_longest_chain(const Timeline& timeline, std::vector<int32_t>& ops) {
  const int32_t devices = problem_->n_devices();
  int32_t last = -1;
  for (int32_t d = 0; d < devices; ++d) {
    int32_t before = -1;
    for (int32_t v = timeline.first_on(d); v >= 0; v = timeline.next_of(v)) {
      op_before_[v] = before;
      before = v;
      if (last < 0 || timeline.finish_of(v) > timeline.finish_of(last)) last = v;
    }
  }
  const auto sent = timeline.sent();
  send_before_.assign(sent.size(), -1);
  target_of_.resize(sent.size());
  for (size_t k = 0; k < sent.size(); ++k) target_of_[k] = sent[k].target;
  for (int32_t a = 0; a < devices; ++a) {
    for (int32_t b = 0; b < devices && problem_->source->has_contention; ++b) {
      for (int32_t k = timeline.first_over(a, b); k >= 0; k = timeline.next_sent(k)) {
        if (timeline.next_sent(k) >= 0) send_before_[timeline.next_sent(k)] = k;
      }
    }
  }
  index_sends(timeline);
  for (int32_t v = last; v >= 0;) {
    ops.push_back(v);
    v = maker_before(timeline, v, ops);
  }
}

void CriticalOps::add_peak(const Timeline& timeline, const MemoryMeter& meter, std::vector<int32_t>& ops) {
  const DeviceProblem& p = *problem_->source;
  const int32_t here = meter.peak_device();
  const int64_t now = meter.peak_time();
  const auto sent = timeline.sent();
  target_of_.resize(sent.size());
  for (size_t k = 0; k < sent.size(); ++k) target_of_[k] = sent[k].target;
  index_sends(timeline);
  for (int32_t t = 0; t < p.n_tensors; ++t) {
    if (p.storage[t] < 0) continue;
    const int32_t maker = p.producer[t];
    const bool is_made_here = std::max(timeline.maker_of(t), 0) == here;
    const int32_t arriving = is_made_here ? -1 : send_to(t, here);
    if (!is_made_here && arriving < 0) continue;
    const int64_t begin = arriving >= 0 ? sent[arriving].start : maker >= 0 ? timeline.start_of(maker) : 0;
    if (begin > now) continue;
    int64_t end = p.is_output[t] && is_made_here ? timeline.time() : 0;
    if (maker >= 0 && is_made_here) end = std::max(end, timeline.finish_of(maker));
    int32_t reader = -1;
    for (const int32_t v : p.readers[t]) {
      if (timeline.device_of(v) != here) continue;
      if (reader < 0 || timeline.finish_of(v) > timeline.finish_of(reader)) reader = v;
    }
    if (reader >= 0) end = std::max(end, timeline.finish_of(reader));
    for (int64_t i = first_send_of_[t]; i < first_send_of_[t + 1] && is_made_here; ++i) {
      end = std::max(end, sent[sends_[i]].end);
    }
    if (end <= now) continue;
    if (maker >= 0) ops.push_back(maker);
    if (reader >= 0) ops.push_back(reader);
  }
}

}  // namespace regal
