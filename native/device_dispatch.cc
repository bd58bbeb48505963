#include "device_dispatch.h"

#include <algorithm>

namespace regal {
namespace {

uint64_t word_of(uint32_t key, int32_t number) {
  return static_cast<uint64_t>(key) << 32 | (~static_cast<uint32_t>(number));
}
int32_t number_of(uint64_t word) { return static_cast<int32_t>(~static_cast<uint32_t>(word)); }

void push(std::vector<uint64_t>& heap, uint64_t word) {
  heap.push_back(word);
  std::push_heap(heap.begin(), heap.end());
}

int32_t pop(std::vector<uint64_t>& heap) {
  std::pop_heap(heap.begin(), heap.end());
  const int32_t number = number_of(heap.back());
  heap.pop_back();
  return number;
}

}  // namespace

Dispatcher::Dispatcher(const CompactDevices& problem)
    : problem_(&problem),
      n_devices_(problem.n_devices()),
      waits_(problem.n_ops()),
      ready_ops_(n_devices_),
      ready_sends_(static_cast<size_t>(n_devices_) * n_devices_),
      is_busy_(n_devices_),
      link_is_busy_(static_cast<size_t>(n_devices_) * n_devices_),
      last_target_(n_devices_) {}

void Dispatcher::run(std::span<const int32_t> placement, std::span<const uint32_t> op_keys,
                     std::span<const uint32_t> tensor_keys, Timeline& timeline) {
  const CompactDevices& p = *problem_;
  placement_ = placement;
  op_keys_ = op_keys;
  tensor_keys_ = tensor_keys;
  timeline_ = &timeline;
  now_ = 0;
  std::fill(is_busy_.begin(), is_busy_.end(), 0);
  std::fill(link_is_busy_.begin(), link_is_busy_.end(), 0);
  std::fill(last_target_.begin(), last_target_.end(), -1);
  for (int32_t v = 0; v < p.n_ops(); ++v) {
    waits_[v] = static_cast<int32_t>(p.reads(v).size() + p.controls(v).size());
    if (waits_[v] == 0) push(ready_ops_[placement[v]], word_of(op_keys[v], v));
  }
  for (const int32_t t : p.inputs) {
    uint64_t first = 0;
    for (const int32_t v : p.source->readers[t]) first = std::max(first, word_of(op_keys[v], v));
    if (first == 0) continue;
    timeline.set_home(t, placement[number_of(first)]);
    appear(t, placement[number_of(first)]);
  }
  for (int32_t d = 0; d < n_devices_; ++d) idle_devices_.push_back(d);
  start_all(timeline);
  while (!events_.empty()) {
    now_ = events_.front().time;
    while (!events_.empty() && events_.front().time == now_) {
      std::pop_heap(events_.begin(), events_.end());
      const Event event = events_.back();
      events_.pop_back();
      handle(event);
    }
    start_all(timeline);
  }
}

void Dispatcher::schedule(Event event) {
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end());
}

// The tensor is there where it was made: its readers there have it, links may send it to others.
void Dispatcher::appear(int32_t tensor, int32_t device) {
  for (const int32_t v : problem_->source->readers[tensor]) {
    const int32_t d = placement_[v];
    if (d == device) {
      get(v);
    } else if (last_target_[d] != tensor) {
      last_target_[d] = tensor;
      push(ready_sends_[static_cast<int64_t>(device) * n_devices_ + d], word_of(tensor_keys_[tensor], tensor));
      idle_links_.push_back(device * n_devices_ + d);
    }
  }
}

void Dispatcher::arrive(int32_t tensor, int32_t device) {
  for (const int32_t v : problem_->source->readers[tensor]) {
    if (placement_[v] == device) get(v);
  }
}

void Dispatcher::get(int32_t op) {
  if (--waits_[op] > 0) return;
  push(ready_ops_[placement_[op]], word_of(op_keys_[op], op));
  idle_devices_.push_back(placement_[op]);
}

void Dispatcher::handle(const Event& event) {
  if (event.kind == Kind::ControlArrives) {
    get(event.id);
    return;
  }
  if (event.kind == Kind::SendEnds) {
    const Timeline::Sent& send = timeline_->sent()[event.id];
    const int32_t link = send.source * n_devices_ + send.target;
    link_is_busy_[link] = 0;
    idle_links_.push_back(link);
    arrive(send.tensor, send.target);
    return;
  }
  const int32_t here = placement_[event.id];
  is_busy_[here] = 0;
  idle_devices_.push_back(here);
  for (const int32_t t : problem_->writes(event.id)) appear(t, here);
  for (const int32_t w : problem_->controlled[event.id]) {
    const int64_t latency = problem_->source->latency[static_cast<int64_t>(here) * n_devices_ + placement_[w]];
    if (latency == 0) {
      get(w);
    } else {
      schedule({now_ + latency, Kind::ControlArrives, w});
    }
  }
}

void Dispatcher::start_all(Timeline& timeline) {
  for (const int32_t d : idle_devices_) {
    if (is_busy_[d] || ready_ops_[d].empty()) continue;
    const int32_t v = pop(ready_ops_[d]);
    is_busy_[d] = 1;
    timeline.start_op(v, d, now_);
    schedule({timeline.finish_of(v), Kind::OpEnds, v});
  }
  idle_devices_.clear();
  for (const int32_t link : idle_links_) {
    auto& ready = ready_sends_[link];
    while (!ready.empty() && !link_is_busy_[link]) {
      const int32_t tensor = pop(ready);
      timeline.start_send(tensor, link / n_devices_, link % n_devices_, now_);
      link_is_busy_[link] = problem_->source->has_contention;
      schedule({timeline.sent().back().end, Kind::SendEnds, static_cast<int32_t>(timeline.sent().size()) - 1});
    }
  }
  idle_links_.clear();
}

}  // namespace regal
