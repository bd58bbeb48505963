#pragma once
#include <cstdint>
#include <vector>

#include "device_problem.h"
#include "device_simulate.h"
#include "fuzz.h"

namespace regal::fuzz {

// What a caller of build_device_problem hands over. All times are multiples of `tick`.
struct DeviceRows {
  int64_t devices = 1;
  int64_t tick = 1;
  std::vector<int64_t> durations, workspace, groups, reads, producers, tensor_storages, outputs, controls, bytes,
      in_place, resident_bytes, resident_users, capacity, link_classes, transfers, latency;
  bool has_contention = true;
  bool capacity_counts_live = true;
  DeviceInput view() const {
    return {devices,    durations,    workspace,      groups,         reads,    producers,
            tensor_storages, outputs, controls,       bytes,          in_place, resident_bytes,
            resident_users, capacity, link_classes,   transfers,      latency,  has_contention,
            capacity_counts_live};
  }
};

DeviceRows legal_device_rows(Dice& dice);
void spoil_devices(DeviceRows& rows, Dice& dice);

// A legal placement, a topological order, homes and sends; links may send in any sequence.
DeviceSchedule random_device_schedule(const DeviceProblem& problem, Dice& dice);

// Tick by tick, from the words of device_problem.h. False: everything waits for something else.
bool slow_devices(const DeviceProblem& problem, const DeviceSchedule& schedule, int64_t tick, DeviceFigures& figures);

void judge_devices(Dice& dice);
void judge_heuristics(const DeviceProblem& problem, Dice& dice);
void judge_annealing(const DeviceProblem& problem, Dice& dice);

}  // namespace regal::fuzz
