#include "bindings.h"
#include "offsets_sections.h"
#include "offsets_solve.h"
#include "offsets_windows.h"

using namespace nb::literals;
using regal::Branching;
using regal::GreedyRule;
using regal::OffsetInputFault;
using regal::OffsetOptions;
using regal::OffsetProblem;
using regal::OffsetResult;
using regal::OffsetStatus;
using regal::Preference;
using regal::TreeOptions;

namespace {

OffsetResult solve(const OffsetProblem& problem, int64_t capacity, int64_t nodes, double seconds, int64_t seed,
                   const Cancel* cancel) {
  OffsetOptions options;
  options.capacity = capacity;
  options.limits = {nodes, seconds, cancel == nullptr ? nullptr : &cancel->is_set};
  options.seed = static_cast<uint64_t>(seed);
  nb::gil_scoped_release unlocked;
  return regal::solve_offsets(problem, options);
}

// Rows of buffers: bytes, alignment, fixed; rows of pieces: buffer, first step, last step, low, high.
OffsetResult solve_windowed(Rows<3> buffers, Rows<5> pieces, int64_t capacity, int64_t nodes, double seconds,
                            const Cancel* cancel) {
  regal::WindowProblem problem;
  const auto buffer_rows = span_of(buffers), piece_rows = span_of(pieces);
  for (size_t i = 0; i < buffer_rows.size(); i += 3) {
    problem.bytes.push_back(buffer_rows[i]);
    problem.alignment.push_back(buffer_rows[i + 1]);
    problem.fixed.push_back(buffer_rows[i + 2]);
  }
  for (size_t i = 0; i < piece_rows.size(); i += 5) {
    problem.pieces.push_back({static_cast<int32_t>(piece_rows[i]), piece_rows[i + 1], piece_rows[i + 2],
                              piece_rows[i + 3], piece_rows[i + 4]});
  }
  nb::gil_scoped_release unlocked;
  return regal::solve_windows(problem, capacity,
                              {nodes, seconds, cancel == nullptr ? nullptr : &cancel->is_set});
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
      .def_ro("first_clashing", &OffsetProblem::first_clashing)
      .def_ro("second_clashing", &OffsetProblem::second_clashing);
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

void bind_tree(nb::module_& module) {
  nb::enum_<Branching>(module, "OffsetBranching")
      .value("LOWEST", Branching::Lowest)
      .value("FEWEST_CHOICES", Branching::FewestChoices);
  nb::enum_<Preference>(module, "OffsetPreference")
      .value("WIDTH_AREA_TOTAL", Preference::WidthAreaTotal)
      .value("TOTAL_AREA_WIDTH", Preference::TotalAreaWidth)
      .value("TOTAL_WIDTH_AREA", Preference::TotalWidthArea)
      .value("SIZE_WIDTH", Preference::SizeWidth)
      .value("RANDOM", Preference::Random);
  nb::class_<TreeOptions>(module, "OffsetTreeOptions")
      .def(nb::init<>())
      .def_rw("decompose", &TreeOptions::decompose)
      .def_rw("raise_floors", &TreeOptions::raise_floors)
      .def_rw("skip_twins", &TreeOptions::skip_twins)
      .def_rw("must_block", &TreeOptions::must_block)
      .def_rw("order_stacks", &TreeOptions::order_stacks)
      .def_rw("not_first", &TreeOptions::not_first);
  module.def(
      "search_offset_tree",
      [](const OffsetProblem& problem, int64_t capacity, const TreeOptions& tree, Branching branching,
         Preference preference, int64_t seed, int64_t nodes) {
        nb::gil_scoped_release unlocked;
        return regal::search_tree(problem, capacity, tree, {branching, preference, static_cast<uint64_t>(seed), 0.0},
                                  {nodes, 0, nullptr});
      },
      "problem"_a, "capacity"_a, "options"_a, "branching"_a, "preference"_a, "seed"_a = 0, "nodes"_a = 0,
      "One run of the complete search with chosen switches: for tests and ablations.");
}

}  // namespace

void bind_offsets(nb::module_& module) {
  bind_tree(module);
  bind_problem_of_offsets(module);
  nb::enum_<OffsetStatus>(module, "OffsetStatus")
      .value("OPTIMAL", OffsetStatus::Optimal)
      .value("INFEASIBLE", OffsetStatus::Infeasible)
      .value("LIMIT", OffsetStatus::Limit);
  nb::class_<OffsetResult>(module, "OffsetResult")
      .def_ro("status", &OffsetResult::status)
      .def_prop_ro("offsets", [](const OffsetResult& r) { return array_of(r.offsets); },
                   nb::rv_policy::move)
      .def_ro("arena_bytes", &OffsetResult::arena_bytes)
      .def_ro("lower_bound", &OffsetResult::lower_bound)
      .def_ro("fullest_step", &OffsetResult::fullest_step)
      .def_ro("fullest_bytes", &OffsetResult::fullest_bytes)
      .def_ro("nodes", &OffsetResult::nodes);
  nb::enum_<GreedyRule>(module, "OffsetGreedyRule")
      .value("SIZE", GreedyRule::Size)
      .value("SIZE_LATER_FIRST", GreedyRule::SizeLaterFirst)
      .value("AREA", GreedyRule::Area)
      .value("LIFETIME", GreedyRule::Lifetime)
      .value("START", GreedyRule::Start)
      .value("WIDTH_AREA_TOTAL", GreedyRule::WidthAreaTotal)
      .value("TOTAL_AREA_WIDTH", GreedyRule::TotalAreaWidth)
      .value("TOTAL_WIDTH_AREA", GreedyRule::TotalWidthArea)
      .value("PEAK_SIZE", GreedyRule::PeakSize)
      .value("HINT", GreedyRule::Hint);
  module.def(
      "place_greedily",
      [](const OffsetProblem& problem, GreedyRule rule, bool best_fit, int64_t capacity) {
        nb::gil_scoped_release unlocked;
        const auto fit = best_fit ? regal::FitRule::Best : regal::FitRule::First;
        return regal::place_greedily(problem, rule, fit, capacity);
      },
      "problem"_a, "rule"_a, "best_fit"_a = false, "capacity"_a = regal::kFree,
      "Places buffers in the order of one rule; what would pass the capacity gets -1.");
  module.def("solve_windows", &solve_windowed, "buffers"_a, "pieces"_a, "capacity"_a, "nodes"_a,
             "seconds"_a, "cancel"_a = nb::none(),
             "Places (n, 3) buffers [bytes, alignment, fixed] that consist of (k, 5) pieces "
             "[buffer, first step, last step, low, high]; rows must be checked already.");
  module.def("solve_offsets", &solve, "problem"_a, "capacity"_a, "nodes"_a, "seconds"_a, "seed"_a,
             "cancel"_a = nb::none(),
             "Places all buffers; capacity -1 asks for the smallest arena, 0 nodes or seconds for no limit.");
}
