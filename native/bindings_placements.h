#pragma once
#include <cstdint>
#include <vector>

#include "bindings.h"
#include "device_problem.h"

using Table = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Rows of one device per op. Indices are the caller's: a wrong one must not be used. `may_be_illegal`:
// ops need not be colocated, nor on devices that may run them.
inline std::vector<std::vector<int32_t>> placements_of(const regal::DeviceProblem& problem, Table rows,
                                                       bool may_be_illegal) {
  if (rows.shape(1) != static_cast<size_t>(problem.n_ops)) throw nb::value_error("placements: one device per op");
  std::vector<std::vector<int32_t>> placements(rows.shape(0), std::vector<int32_t>(problem.n_ops));
  for (size_t row = 0; row < rows.shape(0); ++row) {
    for (int32_t v = 0; v < problem.n_ops; ++v) {
      const int64_t device = rows(row, v);
      if (device < 0 || device >= problem.n_devices) throw nb::value_error("placements: not a device");
      placements[row][v] = static_cast<int32_t>(device);
      const int32_t first = problem.members[problem.group[v]][0];
      const bool is_legal = problem.may_run_on(v, placements[row][v]) && placements[row][first] == placements[row][v];
      if (!may_be_illegal && !is_legal) {
        throw nb::value_error("placements: not colocated, or a device may not run an op");
      }
    }
  }
  return placements;
}
