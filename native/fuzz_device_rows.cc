// Random problems and schedules on several devices.
#include <algorithm>

#include "fuzz_devices.h"

namespace regal::fuzz {
namespace {

constexpr int32_t kMostOps = 6;

std::vector<int64_t> make(int64_t count, const auto& value) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(value());
  return values;
}

void add_tensors(DeviceRows& rows, int64_t n, Dice& dice) {
  for (int64_t v = 0; v < n; ++v) {
    for (int32_t i = dice.upto(2); i > 0; --i) rows.producers.push_back(v);
  }
  for (int32_t i = dice.upto(2); i > 0; --i) rows.producers.push_back(-1);
  for (size_t i = rows.producers.size(); i > 1; --i) {
    std::swap(rows.producers[i - 1], rows.producers[dice.upto(static_cast<int64_t>(i) - 1)]);
  }
  const int64_t scale = dice.one_in(8) ? int64_t{1} << 53 : 1;
  for (size_t t = 0; t < rows.producers.size(); ++t) {
    const auto storages = static_cast<int64_t>(rows.bytes.size());
    if (dice.one_in(8)) {
      rows.tensor_storages.push_back(-1);
    } else if (storages > 0 && dice.one_in(4)) {
      rows.tensor_storages.push_back(dice.upto(storages - 1));
    } else {
      rows.tensor_storages.push_back(storages);
      rows.bytes.push_back(scale * (1 + dice.upto(2)));
    }
    if (dice.one_in(5)) rows.outputs.push_back(static_cast<int64_t>(t));
  }
  const int32_t rarity = 1 + dice.upto(3);
  for (int64_t v = 0; v < n; ++v) {
    for (size_t t = 0; t < rows.producers.size(); ++t) {
      if (rows.producers[t] >= v || !dice.one_in(rarity)) continue;
      rows.reads.insert(rows.reads.end(), {v, static_cast<int64_t>(t)});
    }
    for (int64_t u = 0; u < v; ++u) {
      if (dice.one_in(9)) rows.controls.insert(rows.controls.end(), {u, v});
    }
  }
}

void add_pairs(DeviceRows& rows, Dice& dice) {
  const auto tensors = static_cast<int64_t>(rows.producers.size());
  std::vector<uint8_t> is_given(rows.bytes.size()), is_kept(rows.bytes.size());
  for (int64_t t = 0; t < tensors; ++t) {
    if (rows.tensor_storages[t] >= 0 && rows.producers[t] < 0) is_given[rows.tensor_storages[t]] = 1;
  }
  for (const int64_t t : rows.outputs) {
    if (rows.tensor_storages[t] >= 0) is_kept[rows.tensor_storages[t]] = 1;
  }
  for (size_t i = 0; i + 1 < rows.reads.size(); i += 2) {
    const int64_t in = rows.tensor_storages[rows.reads[i + 1]];
    for (int64_t t = 0; t < tensors; ++t) {
      const int64_t out = rows.tensor_storages[t];
      if (rows.producers[t] != rows.reads[i] || in < 0 || out < 0 || in == out) continue;
      if (rows.bytes[in] != rows.bytes[out] || is_kept[in] || is_given[out] || dice.one_in(3)) continue;
      rows.in_place.insert(rows.in_place.end(), {rows.reads[i], in, out});
    }
  }
}

}  // namespace

DeviceRows legal_device_rows(Dice& dice) {
  DeviceRows rows;
  const int64_t n = dice.upto(kMostOps);
  const int64_t devices = 1 + dice.upto(2);
  rows.devices = devices;
  rows.tick = dice.one_in(8) ? int64_t{1} << 51 : 1;
  add_tensors(rows, n, dice);
  add_pairs(rows, dice);
  rows.durations = make(n * devices, [&] { return rows.tick * (1 + dice.upto(2)); });
  rows.groups = make(n, [&] { return dice.one_in(3) ? dice.upto(1) : -1; });
  // Device 0 can run everything, so that no group is without a device.
  for (int64_t i = 0; i < n * devices; ++i) {
    if (i % devices != 0 && dice.one_in(8)) rows.durations[i] = kForbidden;
  }
  rows.workspace = make(n, [&] { return dice.one_in(3) ? dice.upto(3) : 0; });
  rows.resident_bytes = make(dice.upto(2), [&] { return dice.upto(3); });
  for (int64_t r = 0; r < static_cast<int64_t>(rows.resident_bytes.size()); ++r) {
    for (int64_t v = 0; v < n; ++v) {
      if (dice.one_in(3)) rows.resident_users.insert(rows.resident_users.end(), {v, r});
    }
  }
  rows.capacity = make(devices, [&] { return dice.one_in(2) ? kUnlimited : dice.upto(6); });
  for (int64_t i = 0; i < devices * devices; ++i) {
    const bool is_diagonal = i / devices == i % devices;
    rows.link_classes.push_back(is_diagonal ? -1 : dice.upto(1));
    rows.latency.push_back(is_diagonal ? 0 : rows.tick * dice.upto(2));
  }
  rows.transfers = make(2 * static_cast<int64_t>(rows.producers.size()), [&] { return rows.tick * (1 + dice.upto(2)); });
  rows.has_contention = !dice.one_in(3);
  rows.capacity_counts_live = !dice.one_in(3);
  return rows;
}

void spoil_devices(DeviceRows& rows, Dice& dice) {
  std::vector<int64_t>* const columns[] = {
      &rows.durations, &rows.workspace, &rows.groups, &rows.reads, &rows.producers, &rows.tensor_storages,
      &rows.outputs, &rows.controls, &rows.bytes, &rows.in_place, &rows.resident_bytes, &rows.resident_users,
      &rows.capacity, &rows.link_classes, &rows.transfers, &rows.latency};
  for (int32_t i = dice.upto(2); i >= 0; --i) {
    std::vector<int64_t>& column = *columns[dice.upto(15)];
    const auto last = static_cast<int64_t>(column.size()) - 1;
    if (dice.one_in(6)) {
      column.push_back(dice.upto(3));
    } else if (last >= 0 && dice.one_in(6)) {
      column.pop_back();
    } else if (last >= 0) {
      column[dice.upto(last)] = dice.pick<int64_t>(
          {-2, -1, 0, 1, 2, 7, 1 << 20, INT32_MAX, int64_t{1} << 32, int64_t{1} << 60, INT64_MAX, INT64_MIN});
    }
  }
  if (dice.one_in(9)) rows.devices = dice.pick<int64_t>({-1, 0, 1, 2, 3, 1 << 20, INT64_MAX});
}

DeviceSchedule random_device_schedule(const DeviceProblem& problem, Dice& dice) {
  DeviceSchedule schedule;
  std::vector<int32_t> device_of(problem.n_groups);
  for (int64_t g = 0; g < problem.n_groups; ++g) {
    do {
      device_of[g] = dice.upto(problem.n_devices - 1);
    } while (problem.may_run[g * problem.n_devices + device_of[g]] == 0);
  }
  std::vector<uint8_t> is_done(problem.n_ops, 0);
  for (int32_t v = 0; v < problem.n_ops; ++v) schedule.placement.push_back(device_of[problem.group[v]]);
  while (static_cast<int32_t>(schedule.order.size()) < problem.n_ops) {
    const int32_t v = dice.upto(problem.n_ops - 1);
    const auto before = problem.predecessors[v];
    if (is_done[v] || !std::all_of(before.begin(), before.end(), [&](int32_t u) { return is_done[u] != 0; })) continue;
    is_done[v] = 1;
    schedule.order.push_back(v);
  }
  complete_schedule(problem, schedule);
  if (dice.one_in(2)) return schedule;
  // Any sequence of sends is legal as long as nothing waits in a circle.
  for (size_t i = schedule.sends.size(); i > 1; --i) {
    std::swap(schedule.sends[i - 1], schedule.sends[dice.upto(static_cast<int64_t>(i) - 1)]);
  }
  return schedule;
}

}  // namespace regal::fuzz
