#include <atomic>

#include "bindings.h"
#include "offsets_sections.h"
#include "offsets_solve.h"

using namespace nb::literals;
using regal::OffsetInputFault;
using regal::OffsetOptions;
using regal::OffsetProblem;
using regal::OffsetResult;
using regal::OffsetStatus;

namespace {

// Set from any thread; the search looks at it every few hundred nodes.
struct OffsetCancel {
  std::atomic<bool> is_set = false;
};

OffsetResult solve(const OffsetProblem& problem, int64_t capacity, int64_t nodes, double seconds, int64_t seed,
                   const OffsetCancel* cancel) {
  OffsetOptions options;
  options.capacity = capacity;
  options.limits = {nodes, seconds, cancel == nullptr ? nullptr : &cancel->is_set};
  options.seed = static_cast<uint64_t>(seed);
  nb::gil_scoped_release unlocked;
  return regal::solve_offsets(problem, options);
}

void bind_problem_of_offsets(nb::module_& module) {
  nb::enum_<OffsetInputFault>(module, "OffsetInputFault")
      .value("NONE", OffsetInputFault::None)
      .value("BAD_LENGTH", OffsetInputFault::BadLength)
      .value("EMPTY", OffsetInputFault::Empty)
      .value("INVERTED", OffsetInputFault::Inverted)
      .value("BAD_ALIGNMENT", OffsetInputFault::BadAlignment)
      .value("BAD_OFFSET", OffsetInputFault::BadOffset)
      .value("BAD_GAP", OffsetInputFault::BadGap)
      .value("TOO_LARGE", OffsetInputFault::TooLarge);
  nb::class_<regal::OffsetInputVerdict>(module, "OffsetInputVerdict")
      .def_ro("fault", &regal::OffsetInputVerdict::fault)
      .def_ro("guilty", &regal::OffsetInputVerdict::guilty);
  nb::class_<OffsetProblem>(module, "OffsetProblem")
      .def(nb::init<>())
      .def_ro("lower_bound", &OffsetProblem::lower_bound)
      .def_prop_ro("clash", [](const OffsetProblem& p) { return nb::make_tuple(p.clash[0], p.clash[1]); });
  module.def(
      "build_offset_problem",
      [](OffsetProblem& problem, Ints first_step, Ints last_step, Ints bytes, Ints alignment, Ints fixed,
         Ints hint, Rows<3> gaps, Rows<2> reserved) {
        nb::gil_scoped_release unlocked;
        return regal::build_offset_problem({span_of(first_step), span_of(last_step), span_of(bytes),
                                            span_of(alignment), span_of(fixed), span_of(hint), span_of(gaps),
                                            span_of(reserved)},
                                           problem);
      },
      "problem"_a, "first_step"_a, "last_step"_a, "bytes"_a, "alignment"_a, "fixed"_a, "hint"_a, "gaps"_a,
      "reserved"_a, "Fills the problem; steps are inclusive, -1 means no fixed offset or hint.");
}

}  // namespace

void bind_offsets(nb::module_& module) {
  bind_problem_of_offsets(module);
  nb::class_<OffsetCancel>(module, "OffsetCancel")
      .def(nb::init<>())
      .def("set", [](OffsetCancel& self) { self.is_set = true; });
  nb::enum_<OffsetStatus>(module, "OffsetStatus")
      .value("OPTIMAL", OffsetStatus::Optimal)
      .value("INFEASIBLE", OffsetStatus::Infeasible)
      .value("LIMIT", OffsetStatus::Limit);
  nb::class_<OffsetResult>(module, "OffsetResult")
      .def_ro("status", &OffsetResult::status)
      .def_prop_ro("offsets", [](const OffsetResult& r) { return array_of(r.offsets); })
      .def_ro("arena_bytes", &OffsetResult::arena_bytes)
      .def_ro("lower_bound", &OffsetResult::lower_bound)
      .def_ro("fullest_step", &OffsetResult::fullest_step)
      .def_ro("fullest_bytes", &OffsetResult::fullest_bytes)
      .def_ro("nodes", &OffsetResult::nodes);
  module.def("solve_offsets", &solve, "problem"_a, "capacity"_a, "nodes"_a, "seconds"_a, "seed"_a,
             "cancel"_a = nb::none(),
             "Places all buffers; capacity -1 asks for the smallest arena, 0 nodes or seconds for no limit.");
}
