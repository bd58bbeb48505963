#include "device_timeline.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace regal {

void Lane::add(int32_t item, int64_t start, int64_t length, int32_t gap, std::vector<int32_t>& next) {
  if (gap < 0) {
    if (start > free) remember(n_gaps, {free, start, last});
    append(item, start, length, next);
    return;
  }
  const Gap whole = gaps[gap];
  int32_t& link = whole.before < 0 ? first : next[whole.before];
  next[item] = link;
  link = item;
  std::move(gaps.begin() + gap + 1, gaps.begin() + n_gaps, gaps.begin() + gap);
  --n_gaps;
  if (start > whole.begin) remember(gap++, {whole.begin, start, whole.before});
  if (start + length < whole.end) remember(gap, {start + length, whole.end, item});
}

void Lane::remember(int32_t at, Gap gap) {
  if (n_gaps == kMostGaps) {
    if (at == 0) return;
    std::move(gaps.begin() + 1, gaps.begin() + at, gaps.begin());
    gaps[at - 1] = gap;
    return;
  }
  std::move_backward(gaps.begin() + at, gaps.begin() + n_gaps, gaps.begin() + n_gaps + 1);
  gaps[at] = gap;
  ++n_gaps;
}

Timeline::Timeline(const CompactDevices& problem, bool fills_gaps)
    : problem_(&problem),
      n_devices_(problem.n_devices()),
      fills_gaps_(fills_gaps),
      has_contention_(problem.source->has_contention),
      devices_(problem.n_devices()),
      links_(static_cast<size_t>(problem.n_devices()) * problem.n_devices()),
      arrival_(static_cast<size_t>(problem.n_tensors()) * problem.n_devices()),
      made_on_(problem.n_tensors()),
      device_(problem.n_ops()),
      start_(problem.n_ops()),
      end_(problem.n_ops()),
      next_op_(problem.n_ops()),
      busy_until_(problem.n_devices()),
      busy_source_(problem.n_devices()) {}

void Timeline::clear() {
  time_ = 0;
  for (Lane& lane : devices_) lane.clear();
  for (Lane& lane : links_) lane.clear();
  std::fill(device_.begin(), device_.end(), -1);
  sent_.clear();
  next_send_.clear();
  for (const int32_t t : problem_->inputs) {
    made_on_[t] = -1;
    std::fill_n(arrival_.begin() + static_cast<int64_t>(t) * n_devices_, n_devices_, 0);
  }
}

// When a tensor that is ready at `source` then would be on `target`.
int64_t Timeline::arrival_by_link(int32_t tensor, int32_t source, int32_t target, int64_t ready) const {
  const int64_t length = problem_->transfer(tensor, source, target);
  if (!has_contention_) return ready + length;
  int32_t gap;
  return links_[static_cast<int64_t>(source) * n_devices_ + target].find(ready, length, gap) + length;
}

void Timeline::find_ends(int32_t op, std::span<int64_t> ends) {
  n_devices_ == 2 ? find_ends_on<2>(op, ends.data()) : find_ends_on<0>(op, ends.data());
}

template <int kDevices>
void Timeline::find_ends_on(int32_t op, int64_t* ends) {
  const CompactDevices& p = *problem_;
  const int32_t devices = kDevices > 0 ? kDevices : n_devices_;
  for (int32_t d = 0; d < devices; ++d) {
    ends[d] = 0;
    busy_source_[d] = -1;
  }
  for (const int32_t t : p.reads(op)) {
    const int64_t* there = arrival_.data() + static_cast<int64_t>(t) * devices;
    const int32_t source = made_on_[t];
    for (int32_t d = 0; d < devices; ++d) {
      int64_t arrival = there[d];
      if (arrival < 0) {
        const bool is_busy = busy_source_[d] == source;
        const int64_t ready = is_busy ? std::max(there[source], busy_until_[d]) : there[source];
        arrival = arrival_by_link(t, source, d, ready);
        if (has_contention_) {
          busy_source_[d] = source;
          busy_until_[d] = arrival;
        }
      }
      ends[d] = std::max(ends[d], arrival);
    }
  }
  for (const int32_t u : p.controls(op)) {
    const int64_t* latency = p.source->latency.data() + static_cast<int64_t>(device_[u]) * devices;
    for (int32_t d = 0; d < devices; ++d) ends[d] = std::max(ends[d], end_[u] + latency[d]);
  }
  const int64_t* durations = p.durations(op);
  for (int32_t d = 0; d < devices; ++d) {
    const Lane& lane = devices_[d];
    int32_t gap;
    ends[d] = (fills_gaps_ ? lane.find(ends[d], durations[d], gap) : std::max(ends[d], lane.free)) + durations[d];
  }
}

void Timeline::send(int32_t tensor, int32_t target) {
  const int32_t source = made_on_[tensor];
  const int64_t row = static_cast<int64_t>(tensor) * n_devices_;
  const int64_t length = problem_->transfer(tensor, source, target);
  int64_t start = arrival_[row + source];
  const auto number = static_cast<int32_t>(sent_.size());
  next_send_.push_back(-1);
  if (has_contention_) {
    Lane& link = links_[static_cast<int64_t>(source) * n_devices_ + target];
    int32_t gap;
    start = link.find(start, length, gap);
    link.add(number, start, length, gap, next_send_);
  }
  arrival_[row + target] = start + length;
  sent_.push_back({tensor, source, target, start, start + length});
}

void Timeline::send_missing(int32_t op, int32_t device, std::span<const uint32_t> urgency) {
  missing_.clear();
  for (const int32_t t : problem_->reads(op)) {
    if (made_on_[t] < 0) {
      made_on_[t] = device;
      for (int32_t d = 0; d < n_devices_; ++d) {
        if (d != device) arrival_[static_cast<int64_t>(t) * n_devices_ + d] = -1;
      }
    } else if (!has(t, device)) {
      missing_.push_back(t);
    }
  }
  if (missing_.size() > 1) {
    const auto rank = [&](int32_t t) {
      return std::tuple(urgency.empty() ? 0 : ~urgency[t],
                        arrival_[static_cast<int64_t>(t) * n_devices_ + made_on_[t]], t);
    };
    std::sort(missing_.begin(), missing_.end(), [&](int32_t a, int32_t b) { return rank(a) < rank(b); });
  }
  for (const int32_t t : missing_) send(t, device);
}

void Timeline::put(int32_t op, int32_t device, std::span<const uint32_t> urgency) {
  n_devices_ == 2 ? put_on<2>(op, device, urgency) : put_on<0>(op, device, urgency);
}

template <int kDevices>
void Timeline::put_on(int32_t op, int32_t device, std::span<const uint32_t> urgency) {
  const CompactDevices& p = *problem_;
  const int32_t devices = kDevices > 0 ? kDevices : n_devices_;
  bool is_all_there = true;
  int64_t ready = 0;
  for (const int32_t t : p.reads(op)) {
    const int64_t there = arrival_[static_cast<int64_t>(t) * devices + device];
    is_all_there &= there >= 0 && made_on_[t] >= 0;
    ready = std::max(ready, there);
  }
  if (!is_all_there) {
    send_missing(op, device, urgency);
    ready = 0;
    for (const int32_t t : p.reads(op)) {
      ready = std::max(ready, arrival_[static_cast<int64_t>(t) * devices + device]);
    }
  }
  for (const int32_t u : p.controls(op)) {
    ready = std::max(ready, end_[u] + p.source->latency[static_cast<int64_t>(device_[u]) * devices + device]);
  }
  const int64_t length = p.durations(op)[device];
  Lane& lane = devices_[device];
  int32_t gap = -1;
  const int64_t start = fills_gaps_ ? lane.find(ready, length, gap) : std::max(ready, lane.free);
  const int64_t end = start + length;
  lane.add(op, start, length, gap, next_op_);
  device_[op] = device;
  start_[op] = start;
  end_[op] = end;
  time_ = std::max(time_, end);
  for (const int32_t t : p.writes(op)) {
    int64_t* there = arrival_.data() + static_cast<int64_t>(t) * devices;
    for (int32_t d = 0; d < devices; ++d) there[d] = d == device ? end : -1;
    made_on_[t] = device;
  }
}

void Timeline::start_op(int32_t op, int32_t device, int64_t now) {
  const int64_t length = problem_->durations(op)[device];
  devices_[device].append(op, now, length, next_op_);
  device_[op] = device;
  start_[op] = now;
  end_[op] = now + length;
  time_ = std::max(time_, end_[op]);
  for (const int32_t t : problem_->writes(op)) made_on_[t] = device;
}

void Timeline::start_send(int32_t tensor, int32_t source, int32_t target, int64_t now) {
  const int64_t length = problem_->transfer(tensor, source, target);
  const auto number = static_cast<int32_t>(sent_.size());
  next_send_.push_back(-1);
  links_[static_cast<int64_t>(source) * n_devices_ + target].append(number, now, length, next_send_);
  sent_.push_back({tensor, source, target, now, now + length});
}

DeviceSchedule Timeline::schedule() const {
  DeviceSchedule schedule;
  schedule.placement = device_;
  schedule.order.resize(device_.size());
  std::iota(schedule.order.begin(), schedule.order.end(), 0);
  std::sort(schedule.order.begin(), schedule.order.end(), [&](int32_t a, int32_t b) {
    return start_[a] != start_[b] ? start_[a] < start_[b] : a < b;
  });
  std::vector<Sent> sent = sent_;
  std::sort(sent.begin(), sent.end(), [](const Sent& a, const Sent& b) {
    return std::tie(a.start, a.source, a.target, a.tensor) <
           std::tie(b.start, b.source, b.target, b.tensor);
  });
  for (const Sent& s : sent) schedule.sends.push_back({s.tensor, s.source, s.target});
  schedule.home.assign(problem_->n_tensors(), -1);
  for (const int32_t t : problem_->inputs) schedule.home[t] = std::max(made_on_[t], 0);
  return schedule;
}

}  // namespace regal
