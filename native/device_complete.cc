#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "device_simulate.h"

namespace regal {
namespace {

enum class Kind { OpEnds, SendEnds, ControlArrives };

struct Event {
  int64_t time;
  Kind kind;
  int64_t id;  // op that ends, started send, op that waits for the control edge
  bool operator>(const Event& other) const {
    return std::tie(time, kind, id) > std::tie(other.time, other.kind, other.id);
  }
};

template <typename T>
using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<T>>;

// Runs a placement and an order from event to event, and lets the links choose what they send.
class Runner {
 public:
  Runner(const DeviceProblem& problem, DeviceSchedule& schedule)
      : problem_(problem),
        schedule_(schedule),
        position_(problem.n_ops),
        waits_(problem.n_ops),
        queue_(problem.n_devices),
        next_(problem.n_devices, 0),
        is_busy_(problem.n_devices, 0),
        ready_(static_cast<size_t>(problem.n_devices) * problem.n_devices),
        link_is_busy_(static_cast<size_t>(problem.n_devices) * problem.n_devices, 0) {
    for (int32_t i = 0; i < problem.n_ops; ++i) position_[schedule.order[i]] = i;
    for (const int32_t v : schedule.order) queue_[schedule.placement[v]].push_back(v);
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      waits_[v] = static_cast<int64_t>(problem.reads[v].size() + problem.control[v].size());
    }
  }

  void run() {
    for (int32_t t = 0; t < problem_.n_tensors; ++t) {
      if (problem_.producer[t] < 0) appear(t, schedule_.home[t]);
    }
    for (int32_t d = 0; d < problem_.n_devices; ++d) idle_devices_.push_back(d);
    start_all();
    while (!events_.empty()) {
      now_ = events_.top().time;
      while (!events_.empty() && events_.top().time == now_) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
      }
      start_all();
    }
  }

  // What was sent, as (start, source, target, tensor).
  const std::vector<std::tuple<int64_t, int32_t, int32_t, int32_t>>& started() const { return started_; }

 private:
  int64_t link_of(int32_t source, int32_t target) const {
    return static_cast<int64_t>(source) * problem_.n_devices + target;
  }

  // Tensor `t` is there on `device`, where it was made: its readers there can have it, and the
  // links to its other readers too.
  void appear(int32_t t, int32_t device) {
    arrive(t, device);
    std::vector<std::pair<int32_t, int32_t>> first_reader;  // target, position
    for (const int32_t v : problem_.readers[t]) {
      if (schedule_.placement[v] != device) first_reader.emplace_back(schedule_.placement[v], position_[v]);
    }
    std::sort(first_reader.begin(), first_reader.end());
    int32_t last = -1;
    for (const auto& [target, position] : first_reader) {
      if (target == last) continue;
      last = target;
      ready_[link_of(device, target)].emplace(position, t);
      idle_links_.emplace_back(device, target);
    }
  }

  void arrive(int32_t t, int32_t device) {
    for (const int32_t v : problem_.readers[t]) {
      if (schedule_.placement[v] == device) get(v);
    }
  }

  void get(int32_t v) {
    if (--waits_[v] == 0) idle_devices_.push_back(schedule_.placement[v]);
  }

  void handle(const Event& event) {
    if (event.kind == Kind::ControlArrives) {
      get(static_cast<int32_t>(event.id));
    } else if (event.kind == Kind::SendEnds) {
      const auto [start, source, target, tensor] = started_[event.id];
      link_is_busy_[link_of(source, target)] = 0;
      idle_links_.emplace_back(source, target);
      arrive(tensor, target);
    } else {
      end_op(static_cast<int32_t>(event.id));
    }
  }

  void end_op(int32_t v) {
    const int32_t here = schedule_.placement[v];
    is_busy_[here] = 0;
    idle_devices_.push_back(here);
    for (const int32_t t : problem_.writes[v]) appear(t, here);
    for (const int32_t later : problem_.successors[v]) {
      const auto controls = problem_.control[later];
      if (!std::binary_search(controls.begin(), controls.end(), v)) continue;
      const int64_t latency = problem_.latency[link_of(here, schedule_.placement[later])];
      events_.push({now_ + latency, Kind::ControlArrives, later});
    }
  }

  void start_all() {
    for (const int32_t d : idle_devices_) {
      if (is_busy_[d] || next_[d] == queue_[d].size()) continue;
      const int32_t v = queue_[d][next_[d]];
      if (waits_[v] > 0) continue;
      ++next_[d];
      is_busy_[d] = 1;
      events_.push({now_ + problem_.duration_of(v, d), Kind::OpEnds, v});
    }
    idle_devices_.clear();
    for (const auto& [source, target] : idle_links_) {
      auto& ready = ready_[link_of(source, target)];
      while (!ready.empty() && !link_is_busy_[link_of(source, target)]) {
        const int32_t t = ready.top().second;
        ready.pop();
        if (problem_.has_contention) link_is_busy_[link_of(source, target)] = 1;
        const int64_t end = now_ + problem_.transfer_of(t, source, target);
        events_.push({end, Kind::SendEnds, static_cast<int64_t>(started_.size())});
        started_.emplace_back(now_, source, target, t);
      }
    }
    idle_links_.clear();
  }

  const DeviceProblem& problem_;
  DeviceSchedule& schedule_;
  std::vector<int32_t> position_;
  std::vector<int64_t> waits_;              // op -> tensors and control edges that are not here yet
  std::vector<std::vector<int32_t>> queue_;  // device -> its ops in order
  std::vector<size_t> next_;
  std::vector<uint8_t> is_busy_;
  std::vector<LeastFirst<std::pair<int32_t, int32_t>>> ready_;  // link -> (position, tensor)
  std::vector<uint8_t> link_is_busy_;
  std::vector<int32_t> idle_devices_;                    // to be looked at once this instant is over
  std::vector<std::pair<int32_t, int32_t>> idle_links_;  // the same
  LeastFirst<Event> events_;
  std::vector<std::tuple<int64_t, int32_t, int32_t, int32_t>> started_;
  int64_t now_ = 0;
};

}  // namespace

void complete_schedule(const DeviceProblem& problem, DeviceSchedule& schedule) {
  schedule.home.assign(problem.n_tensors, -1);
  std::vector<int32_t> position(problem.n_ops);
  for (int32_t i = 0; i < problem.n_ops; ++i) position[schedule.order[i]] = i;
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.producer[t] >= 0) continue;
    int32_t first = -1;
    for (const int32_t v : problem.readers[t]) {
      if (first < 0 || position[v] < position[first]) first = v;
    }
    schedule.home[t] = first < 0 ? 0 : schedule.placement[first];
  }
  Runner runner(problem, schedule);
  runner.run();
  auto started = runner.started();
  std::sort(started.begin(), started.end());
  schedule.sends.clear();
  for (const auto& [start, source, target, tensor] : started) {
    schedule.sends.push_back({tensor, source, target});
  }
}

}  // namespace regal
