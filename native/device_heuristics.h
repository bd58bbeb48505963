#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "device_problem.h"
#include "device_simulate.h"

namespace regal {

// Schedules that need no search. Each rule gives one or several; all respect colocation, allowed
// devices and control edges, and keep away from devices that are full while another is not.
enum class DeviceRule {
  SingleDevice,  // everything on one device, each device in turn
  RoundRobin,    // groups in turn over the devices
  FileOrder,     // stretches of the file's order, cut by work, traffic and live bytes
  Dfs,           // the same of a depth-first order
  Bfs,           // the same of the order by levels
  MTopo,         // Baechi's m-TOPO: devices filled with bytes one after another
  MEtf,          // Baechi's m-ETF: ETF, and ETF over ops put together with their only readers
  Etf,           // earliest start of all ready ops and devices
  Sct,           // ETF in which a device waits for the favorite child of its last op: see Favorites
  Heft,          // upward rank, earliest finish, inserted into gaps
  Cpop,          // the critical path on one device
  Peft,          // HEFT with a look ahead: the optimistic cost table
  GreedyMemory,  // where the peak grows least; or after the inputs until a device holds too much
};

inline constexpr DeviceRule kDeviceRules[] = {
    DeviceRule::SingleDevice, DeviceRule::RoundRobin, DeviceRule::FileOrder, DeviceRule::Dfs,
    DeviceRule::Bfs,          DeviceRule::MTopo,      DeviceRule::Etf,       DeviceRule::MEtf,
    DeviceRule::Sct,          DeviceRule::Heft,       DeviceRule::Cpop,      DeviceRule::Peft,
    DeviceRule::GreedyMemory};

struct NamedSchedule {
  std::string name;         // of the rule and its variant, as "dfs/work 1.25/list"
  DeviceSchedule schedule;  // complete
  Score score;
};

// All schedules of the rules, best first, without repeats; equal devices are numbered by first
// use. Costs O(n log n) per schedule, about 100 of them for all rules. `evaluations`: how many
// schedules were simulated.
std::vector<NamedSchedule> heuristic_schedules(const DeviceProblem& problem,
                                               std::span<const DeviceRule> rules,
                                               const Objective& objective, int64_t& evaluations);

// m-SCT of Baechi: ETF in which a device waits for the favorite child of its last op (-1: none).
NamedSchedule favorite_schedule(const DeviceProblem& problem, std::span<const int32_t> favorites,
                                bool puts_together, const Objective& objective);

// In which order the ops of a placement run.
enum class PlacementOrder {
  File, Dfs, Levels, LeastMemory, SafeMemory,
  List,  // list scheduling by the longest way to the end, with the transfers of the placement
};

// Complete schedules of placements (op -> device), judged. With `fits` an op moves where its
// group is, or to another device where its own may not run it or is full.
std::vector<NamedSchedule> placed_schedules(const DeviceProblem& problem,
                                            std::span<const std::vector<int32_t>> placements,
                                            PlacementOrder order, bool fits,
                                            const Objective& objective, int threads);

// The best of the random schedules number first .. first + count - 1 of this seed: groups on
// devices that may run them, ready ops in random order. Number k is the same for every call.
NamedSchedule random_schedule(const DeviceProblem& problem, const Objective& objective,
                              uint64_t seed, int64_t first, int64_t count, int threads);

}  // namespace regal
