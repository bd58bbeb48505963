#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <utility>

#include "beam.h"
#include "bindings.h"
#include "bounds.h"
#include "cut_bound.h"
#include "exact_order.h"
#include "order_within.h"
#include "reduce.h"
#include "twins.h"
#include "window.h"

using namespace nb::literals;
using regal::Effort;
using regal::OrderProblem;

namespace {

std::vector<int32_t> ops_of(const Ints& order) { return {order.data(), order.data() + order.size()}; }

nb::ndarray<nb::numpy, int64_t, nb::ndim<1>> array_of_ops(const std::vector<int32_t>& order) {
  return array_of(std::vector<int64_t>(order.begin(), order.end()));
}

Effort effort_of(int64_t max_states, std::optional<double> seconds, const Cancel* cancel,
                 int64_t limit = int64_t{1} << 62) {
  auto deadline = Effort::Clock::time_point::max();
  if (seconds) {
    deadline = Effort::Clock::now() +
               std::chrono::duration_cast<Effort::Clock::duration>(std::chrono::duration<double>(*seconds));
  }
  return Effort(max_states, cancel != nullptr ? &cancel->is_set : nullptr, deadline, limit);
}

struct ExactAnswer {
  regal::ExactOrder found;
  int64_t states;
};

}  // namespace

void bind_exact(nb::module_& module) {
  nb::class_<ExactAnswer>(module, "ExactAnswer")
      .def_prop_ro("order", [](const ExactAnswer& answer) { return array_of_ops(answer.found.order); },
                   nb::rv_policy::move)
      .def_prop_ro("peak_bytes", [](const ExactAnswer& answer) { return answer.found.peak_bytes; })
      .def_prop_ro("lower_bound", [](const ExactAnswer& answer) { return answer.found.lower_bound; })
      .def_ro("states", &ExactAnswer::states);
  module.def(
      "solve_exact",
      [](const OrderProblem& problem, Ints hint, int64_t max_states, int64_t limit,
         std::optional<double> seconds, const Cancel* cancel) {
        nb::gil_scoped_release unlocked;
        Effort effort = effort_of(max_states, seconds, cancel, limit);
        regal::ExactOrder found = regal::solve_exact(problem, ops_of(hint), effort);
        return ExactAnswer{std::move(found), effort.spent()};
      },
      "problem"_a, "hint"_a, "max_states"_a, "limit"_a, "seconds"_a.none(), "cancel"_a.none(),
      "Finds the order of lowest peak and a proven lower bound; `hint` is a legal order or empty.");
  module.def(
      "beam_order",
      [](const OrderProblem& problem, int64_t width, int64_t floor, std::optional<double> seconds,
         const Cancel* cancel) {
        std::vector<int32_t> order;
        {
          nb::gil_scoped_release unlocked;
          Effort effort = effort_of(int64_t{1} << 62, seconds, cancel);
          order = regal::beam_both_ways(problem, regal::reversed(problem), static_cast<int32_t>(width), floor, effort);
          // One direction alone would depend on when the time was up.
          if (effort.is_over()) order.clear();
        }
        return array_of_ops(order);
      },
      "problem"_a, "width"_a, "floor"_a, "seconds"_a.none(), "cancel"_a.none(),
      "Beam over downsets; empty if time was up or it was cancelled first.");
  module.def(
      "improve_windows",
      [](const OrderProblem& problem, Ints order, int64_t width, int64_t floor, int64_t max_states_per_window,
         int64_t max_states, int64_t limit, std::optional<double> seconds, const Cancel* cancel) {
        std::vector<int32_t> better;
        int64_t states = 0;
        {
          nb::gil_scoped_release unlocked;
          Effort effort = effort_of(max_states, seconds, cancel, limit);
          better = regal::improve_windows(problem, ops_of(order), static_cast<int32_t>(width), floor,
                                          max_states_per_window, effort);
          states = effort.spent();
        }
        return std::pair(array_of_ops(better), states);
      },
      "problem"_a, "order"_a, "width"_a, "floor"_a, "max_states_per_window"_a, "max_states"_a,
      "limit"_a, "seconds"_a.none(), "cancel"_a.none(),
      "Solves stretches of a legal order around its peak, never worse; returns (order, states).");
  nb::enum_<regal::Answer>(module, "Answer")
      .value("NO", regal::Answer::No)
      .value("YES", regal::Answer::Yes)
      .value("UNKNOWN", regal::Answer::Unknown);
  nb::class_<regal::OrderWithin>(module, "OrderWithin")
      .def_ro("answer", &regal::OrderWithin::answer)
      .def_prop_ro("order", [](const regal::OrderWithin& found) { return array_of_ops(found.order); },
                   nb::rv_policy::move)
      .def_ro("next_budget", &regal::OrderWithin::next_budget);
  module.def(
      "order_within",
      [](const OrderProblem& problem, int64_t budget, int64_t max_states, bool from_the_end, const Cancel* cancel) {
        nb::gil_scoped_release unlocked;
        Effort effort = effort_of(max_states, std::nullopt, cancel);
        const OrderProblem backward = regal::reversed(problem);
        if (!from_the_end) return regal::order_within(problem, backward, budget, effort);
        regal::OrderWithin found = regal::order_within(backward, problem, budget, effort);
        std::reverse(found.order.begin(), found.order.end());
        return found;
      },
      "problem"_a, "budget"_a, "max_states"_a, "from_the_end"_a, "cancel"_a.none(),
      "Answers whether an order has a peak of at most `budget` bytes; NO also holds for every budget\n"
      "below next_budget.");
  module.def(
      "twin_edges",
      [](const OrderProblem& problem) {
        std::vector<int64_t> flat;
        {
          nb::gil_scoped_release unlocked;
          for (const regal::TwinGroup& group : regal::find_twins(problem)) {
            for (size_t i = 0; i + 1 < group.units.size(); ++i) {
              for (size_t j = 0; j < group.units[i].size(); ++j) {
                flat.insert(flat.end(), {group.units[i][j], group.units[i + 1][j]});
              }
            }
          }
        }
        return array_of(std::move(flat));
      },
      "problem"_a, "Flat (earlier op, later op) rows that some best order respects, besides the edges.");
  module.def(
      "cut_bounds",
      [](const OrderProblem& problem, Ints ops) {
        std::vector<int64_t> bounds;
        {
          nb::gil_scoped_release unlocked;
          regal::CutBound cut(problem);
          for (const int32_t op : ops_of(ops)) bounds.push_back(cut.during(op));
        }
        return array_of(std::move(bounds));
      },
      "problem"_a, "ops"_a, "Per op of `ops`: the least bytes live during its step in any order.");
  module.def(
      "peak_bound",
      [](const OrderProblem& problem) {
        nb::gil_scoped_release unlocked;
        return regal::peak_bound(problem);
      },
      "problem"_a, "A proven lower bound of the peak of every order.");
}
