#include "device_simulate.h"

#include <algorithm>
#include <utility>

namespace regal {
namespace {

struct Constraint {
  int64_t before;  // node: ops first, then sends
  int64_t after;
  int64_t lag;  // ns between the end of `before` and the start of `after`
};

// The nodes that wait for each other, and how long each takes.
struct Network {
  std::vector<int64_t> duration;
  std::vector<Constraint> constraints;
};

// (tensor, target) -> send, or -1.
class SendTable {
 public:
  SendTable(const DeviceProblem& problem, const DeviceSchedule& schedule)
      : devices_(problem.n_devices) {
    for (size_t k = 0; k < schedule.sends.size(); ++k) {
      const Send& send = schedule.sends[k];
      rows_.emplace_back(key(send.tensor, send.target), static_cast<int64_t>(k));
    }
    std::sort(rows_.begin(), rows_.end());
  }
  int64_t find(int32_t tensor, int32_t target) const {
    const std::pair<int64_t, int64_t> wanted{key(tensor, target), 0};
    const auto row = std::lower_bound(rows_.begin(), rows_.end(), wanted);
    return row != rows_.end() && row->first == wanted.first ? row->second : -1;
  }

 private:
  int64_t key(int64_t tensor, int64_t target) const { return tensor * devices_ + target; }
  int64_t devices_;
  std::vector<std::pair<int64_t, int64_t>> rows_;
};

int32_t maker_of(const DeviceProblem& problem, const DeviceSchedule& schedule, int32_t tensor) {
  const int32_t op = problem.producer[tensor];
  return op >= 0 ? schedule.placement[op] : schedule.home[tensor];
}

// Adds "one after another" for items that share a lane.
void add_chain(std::vector<int64_t>& last_in_lane, int64_t lane, int64_t node, Network& network) {
  if (last_in_lane[lane] >= 0) network.constraints.push_back({last_in_lane[lane], node, 0});
  last_in_lane[lane] = node;
}

// Returns false when a reader has no send that brings its tensor.
bool build_network(const DeviceProblem& problem, const DeviceSchedule& schedule, Network& network) {
  const int64_t n = problem.n_ops, devices = problem.n_devices;
  std::vector<int64_t> last_op(devices, -1), last_send(devices * devices, -1);
  network.duration.resize(n + schedule.sends.size());
  for (const int32_t v : schedule.order) {
    network.duration[v] = problem.duration_of(v, schedule.placement[v]);
    add_chain(last_op, schedule.placement[v], v, network);
  }
  for (size_t k = 0; k < schedule.sends.size(); ++k) {
    const Send& send = schedule.sends[k];
    const int64_t node = n + static_cast<int64_t>(k);
    network.duration[node] = problem.transfer_of(send.tensor, send.source, send.target);
    if (problem.has_contention) add_chain(last_send, send.source * devices + send.target, node, network);
    if (problem.producer[send.tensor] >= 0) {
      network.constraints.push_back({problem.producer[send.tensor], node, 0});
    }
  }
  const SendTable sends(problem, schedule);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    const int32_t here = schedule.placement[v];
    for (const int32_t t : problem.reads[v]) {
      if (maker_of(problem, schedule, t) != here) {
        const int64_t send = sends.find(t, here);
        if (send < 0) return false;
        network.constraints.push_back({n + send, v, 0});
      } else if (problem.producer[t] >= 0) {
        network.constraints.push_back({problem.producer[t], v, 0});
      }
    }
    for (const int32_t earlier : problem.control[v]) {
      const int64_t latency = problem.latency[schedule.placement[earlier] * devices + here];
      network.constraints.push_back({earlier, v, latency});
    }
  }
  return true;
}

// Everything as early as possible; false for a circle.
bool find_times(const Network& network, std::vector<int64_t>& start, std::vector<int64_t>& end) {
  const auto nodes = static_cast<int64_t>(network.duration.size());
  std::vector<int64_t> waiting(nodes, 0), first_row(nodes + 1, 0);
  for (const Constraint& row : network.constraints) {
    ++waiting[row.after];
    ++first_row[row.before + 1];
  }
  for (int64_t i = 0; i < nodes; ++i) first_row[i + 1] += first_row[i];
  std::vector<int64_t> fill(first_row.begin(), first_row.end() - 1);
  std::vector<const Constraint*> rows(network.constraints.size());
  for (const Constraint& row : network.constraints) rows[fill[row.before]++] = &row;

  start.assign(nodes, 0);
  end.assign(nodes, 0);
  std::vector<int64_t> ready;
  for (int64_t i = 0; i < nodes; ++i) {
    if (waiting[i] == 0) ready.push_back(i);
  }
  int64_t done = 0;
  while (!ready.empty()) {
    const int64_t node = ready.back();
    ready.pop_back();
    ++done;
    end[node] = start[node] + network.duration[node];
    for (int64_t i = first_row[node]; i < first_row[node + 1]; ++i) {
      const Constraint& row = *rows[i];
      start[row.after] = std::max(start[row.after], end[node] + row.lag);
      if (--waiting[row.after] == 0) ready.push_back(row.after);
    }
  }
  return done == nodes;
}

// When the instances of storages on devices live: [first, last), empty where last is 0.
struct Lives {
  int64_t devices;
  std::vector<int64_t> first, last;
  Lives(int64_t storages, int64_t n)
      : devices(n), first(storages * n, INT64_MAX), last(storages * n, 0) {}
  void begin(int64_t storage, int64_t device, int64_t time) {
    int64_t& at = first[storage * devices + device];
    at = std::min(at, time);
  }
  void keep(int64_t storage, int64_t device, int64_t time) {
    int64_t& at = last[storage * devices + device];
    at = std::max(at, time);
  }
};

Lives lives_of(const DeviceProblem& problem, const DeviceSchedule& schedule,
               const DeviceFigures& figures) {
  Lives lives(problem.n_storages, problem.n_devices);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    const int32_t here = schedule.placement[v];
    for (const int32_t t : problem.reads[v]) {
      if (problem.storage[t] >= 0) lives.keep(problem.storage[t], here, figures.op_end[v]);
    }
    for (const int32_t t : problem.writes[v]) {
      if (problem.storage[t] < 0) continue;
      lives.begin(problem.storage[t], here, figures.op_start[v]);
      lives.keep(problem.storage[t], here, figures.op_end[v]);
    }
  }
  for (size_t k = 0; k < schedule.sends.size(); ++k) {
    const Send& send = schedule.sends[k];
    const int32_t storage = problem.storage[send.tensor];
    if (storage < 0) continue;
    lives.begin(storage, send.target, figures.send_start[k]);
    lives.keep(storage, send.target, figures.send_end[k]);
    lives.keep(storage, send.source, figures.send_end[k]);
  }
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.storage[t] < 0) continue;
    const int32_t maker = maker_of(problem, schedule, t);
    if (problem.producer[t] < 0) lives.begin(problem.storage[t], maker, 0);
    if (problem.is_output[t]) lives.keep(problem.storage[t], maker, figures.time);
  }
  return lives;
}

// Whether `op` touches `in` last and `out` first on its device: nothing else touches them there
// during the op, nothing touches `in` later, nothing touched `out` earlier.
class InPlaceRule {
 public:
  InPlaceRule(const DeviceProblem& problem, const DeviceSchedule& schedule,
              const DeviceFigures& figures)
      : problem_(problem), schedule_(schedule), figures_(figures) {
    std::vector<std::pair<int32_t, int32_t>> rows;
    for (size_t k = 0; k < schedule.sends.size(); ++k) {
      rows.emplace_back(schedule.sends[k].tensor, static_cast<int32_t>(k));
    }
    sends_of_ = csr_of(std::move(rows), problem.n_tensors);
  }

  bool is_last(int32_t op, int32_t storage) const {
    return all_others(op, storage, [&](int64_t, int64_t end) { return end <= figures_.op_start[op]; });
  }
  bool is_first(int32_t op, int32_t storage) const {
    return all_others(op, storage, [&](int64_t start, int64_t) { return start >= figures_.op_end[op]; });
  }

 private:
  // Whether `holds(start, end)` for all that touches the instance on the device of `op`, but `op`.
  template <typename Holds>
  bool all_others(int32_t op, int32_t storage, const Holds& holds) const {
    const int32_t here = schedule_.placement[op];
    const auto op_holds = [&](int32_t v) {
      return v == op || schedule_.placement[v] != here ||
             holds(figures_.op_start[v], figures_.op_end[v]);
    };
    for (const int32_t t : problem_.tensors_of[storage]) {
      if (problem_.producer[t] >= 0 && !op_holds(problem_.producer[t])) return false;
      for (const int32_t v : problem_.readers[t]) {
        if (!op_holds(v)) return false;
      }
      for (const int32_t k : sends_of_[t]) {
        const Send& send = schedule_.sends[k];
        const bool is_here = send.source == here || send.target == here;
        if (is_here && !holds(figures_.send_start[k], figures_.send_end[k])) return false;
      }
    }
    return true;
  }

  const DeviceProblem& problem_;
  const DeviceSchedule& schedule_;
  const DeviceFigures& figures_;
  Csr sends_of_;
};

// Pairs are tried in order; a storage takes part once per op; pairs past the 64th never happen.
std::vector<InPlace> in_place_of(const DeviceProblem& problem, const DeviceSchedule& schedule,
                                 const DeviceFigures& figures) {
  const InPlaceRule rule(problem, schedule, figures);
  std::vector<InPlace> taken;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    const auto first_taken = static_cast<int64_t>(taken.size());
    const int64_t last = std::min(problem.in_place_of[v + 1], problem.in_place_of[v] + 64);
    for (int64_t i = problem.in_place_of[v]; i < last; ++i) {
      const InPlace& pair = problem.in_place[i];
      const bool is_free = std::none_of(taken.begin() + first_taken, taken.end(), [&](const InPlace& other) {
        return other.in == pair.in || other.out == pair.out;
      });
      if (is_free && rule.is_last(v, pair.in) && rule.is_first(v, pair.out)) taken.push_back(pair);
    }
  }
  return taken;
}

struct Change {
  int64_t time;
  int64_t bytes;
};

int64_t highest(std::vector<Change>& changes) {
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  int64_t live = 0, peak = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].bytes;
    const bool is_last_of_time = i + 1 == changes.size() || changes[i + 1].time > changes[i].time;
    if (is_last_of_time) peak = std::max(peak, live);
  }
  return peak;
}

void find_memory(const DeviceProblem& problem, const DeviceSchedule& schedule,
                 DeviceFigures& figures) {
  const int64_t devices = problem.n_devices;
  std::vector<std::vector<Change>> changes(devices);
  const auto count = [&](int64_t device, int64_t start, int64_t end, int64_t bytes) {
    if (start >= end) return;
    changes[device].push_back({start, bytes});
    changes[device].push_back({end, -bytes});
  };
  const Lives lives = lives_of(problem, schedule, figures);
  for (int64_t i = 0; i < problem.n_storages * devices; ++i) {
    count(i % devices, lives.first[i], lives.last[i], problem.bytes[i / devices]);
  }
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    count(schedule.placement[v], figures.op_start[v], figures.op_end[v], problem.workspace[v]);
  }
  // Both storages of a pair are live during the op; together they count once.
  for (const InPlace& pair : figures.in_place) {
    count(schedule.placement[pair.op], figures.op_start[pair.op], figures.op_end[pair.op],
          -problem.bytes[pair.in]);
  }
  figures.peak.resize(devices);
  for (int64_t d = 0; d < devices; ++d) figures.peak[d] = highest(changes[d]);

  figures.resident.assign(devices, 0);
  for (int32_t r = 0; r < problem.n_residents; ++r) {
    std::vector<int32_t> users;
    for (const int32_t v : problem.resident_users[r]) users.push_back(schedule.placement[v]);
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (const int32_t d : users) figures.resident[d] += problem.resident_bytes[r];
  }
  figures.overflow = 0;
  for (int64_t d = 0; d < devices; ++d) {
    const int64_t live = problem.capacity_counts_live ? figures.peak[d] : 0;
    const int64_t used = figures.resident[d] + live;
    if (used > problem.capacity[d]) figures.overflow += used - problem.capacity[d];
  }
}

}  // namespace

int64_t DeviceFigures::most() const {
  return peak.empty() ? 0 : *std::max_element(peak.begin(), peak.end());
}

bool is_well_formed(const DeviceProblem& problem, const DeviceSchedule& schedule) {
  const auto n = static_cast<size_t>(problem.n_ops);
  if (schedule.placement.size() != n || schedule.order.size() != n) return false;
  if (schedule.home.size() != static_cast<size_t>(problem.n_tensors)) return false;
  const auto is_device = [&](int32_t d) { return d >= 0 && d < problem.n_devices; };
  std::vector<uint8_t> is_seen(n, 0);
  for (const int32_t v : schedule.order) {
    if (v < 0 || v >= problem.n_ops || is_seen[v]) return false;
    is_seen[v] = 1;
  }
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (!is_device(schedule.placement[v]) || !problem.may_run_on(v, schedule.placement[v])) return false;
  }
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.producer[t] < 0 ? !is_device(schedule.home[t]) : schedule.home[t] != -1) return false;
  }
  return std::all_of(schedule.sends.begin(), schedule.sends.end(), [&](const Send& send) {
    return send.tensor >= 0 && send.tensor < problem.n_tensors && is_device(send.source) &&
           is_device(send.target) && send.source != send.target;
  });
}

bool simulate_devices(const DeviceProblem& problem, const DeviceSchedule& schedule,
                      DeviceFigures& figures) {
  figures = {};
  Network network;
  std::vector<int64_t> start, end;
  if (!build_network(problem, schedule, network) || !find_times(network, start, end)) return false;
  const int64_t n = problem.n_ops;
  figures.op_start.assign(start.begin(), start.begin() + n);
  figures.op_end.assign(end.begin(), end.begin() + n);
  figures.send_start.assign(start.begin() + n, start.end());
  figures.send_end.assign(end.begin() + n, end.end());
  for (const int64_t op_end : figures.op_end) figures.time = std::max(figures.time, op_end);
  figures.in_place = in_place_of(problem, schedule, figures);
  find_memory(problem, schedule, figures);
  return true;
}

Score score_of(const DeviceFigures& figures, const Objective& objective) {
  const int64_t peak = figures.most();
  return {figures.overflow, objective.value(figures.time, peak), figures.time, peak};
}

}  // namespace regal
