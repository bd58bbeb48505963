#include "device_problem.h"

#include <algorithm>
#include <map>
#include <utility>

namespace regal {
namespace {

// Every sum of times, and every sum of sizes, stays below this.
constexpr int64_t kMost = int64_t{1} << 61;
constexpr int64_t kMostDevices = 1 << 8;
constexpr DeviceVerdict kGood{};

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

Pairs swapped(const Pairs& pairs) {
  Pairs result;
  result.reserve(pairs.size());
  for (const auto& [a, b] : pairs) result.emplace_back(b, a);
  return result;
}

bool is_index(int64_t value, int64_t rows) { return value >= 0 && value < rows; }

// Adds value * times; false when that passes the limit.
bool add(int64_t& total, int64_t value, int64_t times = 1) {
  if (times == 0) return true;
  if (value > (kMost - total) / times) return false;
  total += value * times;
  return true;
}

// (a, b) rows; returns the first row that is out of range, or -1.
int64_t read_pairs(std::span<const int64_t> flat, int64_t rows, int64_t columns, Pairs& pairs) {
  for (size_t i = 0; i + 1 < flat.size(); i += 2) {
    if (!is_index(flat[i], rows) || !is_index(flat[i + 1], columns)) {
      return static_cast<int64_t>(i / 2);
    }
    pairs.emplace_back(static_cast<int32_t>(flat[i]), static_cast<int32_t>(flat[i + 1]));
  }
  return -1;
}

bool has_right_shape(const DeviceInput& input) {
  const auto n = input.workspace.size();
  const auto devices = static_cast<size_t>(input.n_devices);
  constexpr size_t most_rows = (size_t{1} << 31) - 2;
  if (input.n_devices < 1 || input.n_devices > kMostDevices) return false;
  if (n > most_rows || input.producers.size() > most_rows || input.bytes.size() > most_rows ||
      input.resident_bytes.size() > most_rows) {
    return false;
  }
  const auto tensors = input.producers.size();
  const bool has_whole_classes =
      tensors == 0 ? input.transfers.empty() : input.transfers.size() % tensors == 0;
  return input.durations.size() == n * devices && input.groups.size() == n &&
         input.tensor_storages.size() == tensors && input.capacity.size() == devices &&
         input.link_classes.size() == devices * devices &&
         input.latency.size() == devices * devices && has_whole_classes;
}

// Ops, tensors, edges.
DeviceVerdict read_graph(const DeviceInput& input, DeviceProblem& problem) {
  const int64_t n = problem.n_ops, tensors = problem.n_tensors;
  Pairs reads, writes, controls, before;
  if (const int64_t row = read_pairs(input.reads, n, tensors, reads); row >= 0) {
    return {DeviceFault::BadIndex, row};
  }
  if (const int64_t row = read_pairs(input.controls, n, n, controls); row >= 0) {
    return {DeviceFault::BadIndex, row};
  }
  problem.producer.resize(tensors);
  problem.storage.resize(tensors);
  for (int64_t t = 0; t < tensors; ++t) {
    const int64_t op = input.producers[t], storage = input.tensor_storages[t];
    if (op < -1 || op >= n || storage < -1 || storage >= problem.n_storages) {
      return {DeviceFault::BadIndex, t};
    }
    problem.producer[t] = static_cast<int32_t>(op);
    problem.storage[t] = static_cast<int32_t>(storage);
    if (op >= 0) writes.emplace_back(problem.producer[t], static_cast<int32_t>(t));
  }
  problem.is_output.assign(tensors, 0);
  for (size_t i = 0; i < input.outputs.size(); ++i) {
    if (!is_index(input.outputs[i], tensors)) {
      return {DeviceFault::BadIndex, static_cast<int64_t>(i)};
    }
    problem.is_output[input.outputs[i]] = 1;
  }
  for (const auto& [op, tensor] : reads) {
    if (problem.producer[tensor] >= 0) before.emplace_back(problem.producer[tensor], op);
  }
  before.insert(before.end(), controls.begin(), controls.end());
  Pairs of_storage;
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.storage[t] >= 0) of_storage.emplace_back(problem.storage[t], t);
  }
  problem.readers = csr_of(swapped(reads), tensors);
  problem.reads = csr_of(std::move(reads), n);
  problem.writes = csr_of(std::move(writes), n);
  problem.control = csr_of(swapped(controls), n);
  problem.predecessors = csr_of(swapped(before), n);
  problem.successors = csr_of(std::move(before), n);
  problem.tensors_of = csr_of(std::move(of_storage), problem.n_storages);
  return kGood;
}

DeviceVerdict check_acyclic(const DeviceProblem& problem) {
  std::vector<int32_t> waiting(problem.n_ops);
  std::vector<int32_t> ready;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    waiting[v] = static_cast<int32_t>(problem.predecessors[v].size());
    if (waiting[v] == 0) ready.push_back(v);
  }
  int32_t done = 0;
  while (!ready.empty()) {
    const int32_t v = ready.back();
    ready.pop_back();
    ++done;
    for (const int32_t w : problem.successors[v]) {
      if (--waiting[w] == 0) ready.push_back(w);
    }
  }
  if (done == problem.n_ops) return kGood;
  // Walk backwards from a blocked op, always to a blocked predecessor: that ends in a cycle.
  int32_t v = 0;
  while (waiting[v] == 0) ++v;
  for (int32_t steps = 0; steps < problem.n_ops; ++steps) {
    for (const int32_t u : problem.predecessors[v]) {
      if (waiting[u] > 0) {
        v = u;
        break;
      }
    }
  }
  return {DeviceFault::Cycle, v};
}

// Colocation groups get numbers in the sequence of their first ops.
DeviceVerdict read_groups(const DeviceInput& input, DeviceProblem& problem) {
  std::map<int64_t, int32_t> number_of;
  Pairs members;
  problem.group.resize(problem.n_ops);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    const int64_t name = input.groups[v];
    int32_t group = problem.n_groups;
    if (name >= 0) group = number_of.try_emplace(name, problem.n_groups).first->second;
    if (group == problem.n_groups) ++problem.n_groups;
    problem.group[v] = group;
    members.emplace_back(group, v);
  }
  problem.members = csr_of(std::move(members), problem.n_groups);
  const int32_t devices = problem.n_devices;
  problem.may_run.assign(static_cast<int64_t>(problem.n_groups) * devices, 1);
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    uint8_t* may_run = problem.may_run.data() + static_cast<int64_t>(problem.group[v]) * devices;
    for (int32_t d = 0; d < devices; ++d) {
      if (problem.duration_of(v, d) == kForbidden) may_run[d] = 0;
    }
  }
  for (int64_t g = 0; g < problem.n_groups; ++g) {
    const auto first = problem.may_run.begin() + g * devices;
    if (std::find(first, first + devices, 1) == first + devices) return {DeviceFault::NoDevice, g};
  }
  return kGood;
}

DeviceVerdict read_links(const DeviceInput& input, DeviceProblem& problem) {
  const int64_t devices = problem.n_devices, tensors = problem.n_tensors;
  problem.latency.assign(input.latency.begin(), input.latency.end());
  problem.link_class.resize(devices * devices);
  for (int64_t i = 0; i < devices * devices; ++i) {
    const int64_t link = input.link_classes[i];
    const bool is_diagonal = i / devices == i % devices;
    if (is_diagonal ? link != -1 || input.latency[i] != 0 : link < 0) {
      return {DeviceFault::BadIndex, i};
    }
    if (input.latency[i] < 0) return {DeviceFault::BadTime, i};
    if (link >= kMostDevices * kMostDevices) return {DeviceFault::BadIndex, i};
    problem.link_class[i] = static_cast<int32_t>(link);
    problem.n_link_classes = std::max(problem.n_link_classes, problem.link_class[i] + 1);
  }
  // Without tensors the number of rows of `transfers` cannot be seen, and does not matter.
  if (tensors > 0 && static_cast<int64_t>(input.transfers.size()) / tensors < problem.n_link_classes) {
    return {DeviceFault::BadIndex, -1};
  }
  const auto used = static_cast<int64_t>(problem.n_link_classes) * tensors;
  problem.transfer.assign(input.transfers.begin(), input.transfers.begin() + used);
  return kGood;
}

// No schedule takes longer than all ops on their slowest device, all transfers over their slowest
// links to all devices, and all control edges one after another.
DeviceVerdict check_times(const DeviceProblem& problem) {
  int64_t total = 0;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    int64_t most = 0;
    for (int32_t d = 0; d < problem.n_devices; ++d) {
      const int64_t duration = problem.duration_of(v, d);
      if (duration < 1 && duration != kForbidden) return {DeviceFault::BadTime, v};
      most = std::max(most, duration);
    }
    if (!add(total, most)) return {DeviceFault::TooLarge, v};
  }
  for (int64_t t = 0; t < problem.n_tensors; ++t) {
    int64_t most = 0;
    for (int64_t link = 0; link < problem.n_link_classes; ++link) {
      const int64_t transfer = problem.transfer[link * problem.n_tensors + t];
      if (transfer < 1) return {DeviceFault::BadTime, t};
      most = std::max(most, transfer);
    }
    if (!add(total, most, problem.n_devices)) return {DeviceFault::TooLarge, t};
  }
  const int64_t latency = *std::max_element(problem.latency.begin(), problem.latency.end());
  const auto controls = static_cast<int64_t>(problem.control.item.size());
  if (controls > 0 && !add(total, latency, controls)) return {DeviceFault::TooLarge, -1};
  return kGood;
}

DeviceVerdict check_sizes(const DeviceInput& input, DeviceProblem& problem) {
  problem.workspace.assign(input.workspace.begin(), input.workspace.end());
  problem.bytes.assign(input.bytes.begin(), input.bytes.end());
  problem.resident_bytes.assign(input.resident_bytes.begin(), input.resident_bytes.end());
  problem.capacity.assign(input.capacity.begin(), input.capacity.end());
  int64_t total = 0;
  for (const auto* sizes : {&problem.bytes, &problem.workspace, &problem.resident_bytes}) {
    const int64_t least = sizes == &problem.bytes ? 1 : 0;
    for (size_t i = 0; i < sizes->size(); ++i) {
      const int64_t size = (*sizes)[i];
      if (size < least) return {DeviceFault::NegativeSize, static_cast<int64_t>(i)};
      // Every device may hold an instance, and overflow is a sum over devices.
      if (!add(total, size, problem.n_devices)) {
        return {DeviceFault::TooLarge, static_cast<int64_t>(i)};
      }
    }
  }
  for (int64_t d = 0; d < problem.n_devices; ++d) {
    if (problem.capacity[d] < 0) return {DeviceFault::NegativeSize, d};
  }
  return kGood;
}

DeviceVerdict read_residents(const DeviceInput& input, DeviceProblem& problem) {
  Pairs users;
  if (const int64_t row = read_pairs(input.resident_users, problem.n_ops, problem.n_residents, users);
      row >= 0) {
    return {DeviceFault::BadIndex, row};
  }
  problem.resident_users = csr_of(swapped(users), problem.n_residents);
  problem.residents = csr_of(std::move(users), problem.n_ops);
  return kGood;
}

bool holds(const DeviceProblem& problem, std::span<const int32_t> tensors, int64_t storage) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](int32_t t) { return problem.storage[t] == storage; });
}

DeviceVerdict read_in_place(const DeviceInput& input, DeviceProblem& problem) {
  std::vector<uint8_t> is_given(problem.n_storages), is_kept(problem.n_storages);
  for (int32_t t = 0; t < problem.n_tensors; ++t) {
    if (problem.storage[t] < 0) continue;
    if (problem.producer[t] < 0) is_given[problem.storage[t]] = 1;
    if (problem.is_output[t]) is_kept[problem.storage[t]] = 1;
  }
  for (size_t i = 0; i + 2 < input.in_place.size(); i += 3) {
    const auto row = static_cast<int64_t>(i / 3);
    const int64_t op = input.in_place[i], in = input.in_place[i + 1], out = input.in_place[i + 2];
    if (!is_index(op, problem.n_ops) || !is_index(in, problem.n_storages) ||
        !is_index(out, problem.n_storages)) {
      return {DeviceFault::BadIndex, row};
    }
    const bool legal = in != out && problem.bytes[in] == problem.bytes[out] && !is_kept[in] &&
                       !is_given[out] && holds(problem, problem.reads[op], in) &&
                       holds(problem, problem.writes[op], out);
    if (!legal) return {DeviceFault::BadInPlace, row};
    problem.in_place.push_back({static_cast<int32_t>(op), static_cast<int32_t>(in), static_cast<int32_t>(out)});
  }
  std::stable_sort(problem.in_place.begin(), problem.in_place.end(),
                   [](const InPlace& a, const InPlace& b) { return a.op < b.op; });
  problem.in_place_of.assign(static_cast<size_t>(problem.n_ops) + 1, 0);
  for (const InPlace& pair : problem.in_place) ++problem.in_place_of[pair.op + 1];
  for (int32_t v = 0; v < problem.n_ops; ++v) problem.in_place_of[v + 1] += problem.in_place_of[v];
  return kGood;
}

// Whether nothing changes when `a` and `b` swap names. That is an equivalence: swapping a and c is
// swapping a and b, b and c, a and b.
bool can_be_exchanged(const DeviceProblem& problem, int32_t a, int32_t b) {
  if (problem.capacity[a] != problem.capacity[b]) return false;
  const auto is_equal = [&](int32_t from, int32_t to, int32_t from_too, int32_t to_too) {
    const int64_t devices = problem.n_devices;
    const int64_t i = from * devices + to, j = from_too * devices + to_too;
    return problem.link_class[i] == problem.link_class[j] && problem.latency[i] == problem.latency[j];
  };
  if (!is_equal(a, b, b, a)) return false;
  for (int32_t c = 0; c < problem.n_devices; ++c) {
    if (c != a && c != b && !(is_equal(a, c, b, c) && is_equal(c, a, c, b))) return false;
  }
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    if (problem.duration_of(v, a) != problem.duration_of(v, b)) return false;
  }
  return true;
}

void classify_devices(DeviceProblem& problem) {
  // Graph inputs that nothing reads lie on device 0, which makes that device special.
  bool has_fixed_input = false;
  for (int32_t t = 0; t < problem.n_tensors && !has_fixed_input; ++t) {
    has_fixed_input = problem.producer[t] < 0 && problem.storage[t] >= 0 && problem.readers[t].empty();
  }
  problem.device_class.assign(problem.n_devices, 0);
  int32_t classes = 0;
  std::vector<int32_t> first_of;  // class -> its first device
  for (int32_t d = 0; d < problem.n_devices; ++d) {
    int32_t found = 0;
    while (found < classes && ((first_of[found] == 0 && has_fixed_input) ||
                               !can_be_exchanged(problem, first_of[found], d))) {
      ++found;
    }
    if (found == classes) {
      first_of.push_back(d);
      ++classes;
    }
    problem.device_class[d] = found;
  }
}

}  // namespace

DeviceVerdict build_device_problem(const DeviceInput& input, DeviceProblem& problem) {
  problem = {};
  if (!has_right_shape(input)) return {DeviceFault::BadIndex, -1};
  problem.n_devices = static_cast<int32_t>(input.n_devices);
  problem.n_ops = static_cast<int32_t>(input.workspace.size());
  problem.n_tensors = static_cast<int32_t>(input.producers.size());
  problem.n_storages = static_cast<int32_t>(input.bytes.size());
  problem.n_residents = static_cast<int32_t>(input.resident_bytes.size());
  problem.duration.assign(input.durations.begin(), input.durations.end());
  problem.has_contention = input.has_contention;
  problem.capacity_counts_live = input.capacity_counts_live;

  DeviceVerdict verdict = read_graph(input, problem);
  if (verdict.fault == DeviceFault::None) verdict = check_sizes(input, problem);
  if (verdict.fault == DeviceFault::None) verdict = read_links(input, problem);
  if (verdict.fault == DeviceFault::None) verdict = check_times(problem);
  if (verdict.fault == DeviceFault::None) verdict = check_acyclic(problem);
  if (verdict.fault == DeviceFault::None) verdict = read_groups(input, problem);
  if (verdict.fault == DeviceFault::None) verdict = read_residents(input, problem);
  if (verdict.fault == DeviceFault::None) verdict = read_in_place(input, problem);
  if (verdict.fault == DeviceFault::None) classify_devices(problem);
  return verdict;
}

}  // namespace regal
