#include <nanobind/stl/pair.h>

#include "bindings.h"
#include "problem.h"
#include "simulate.h"

using namespace nb::literals;
using regal::OrderProblem;
using regal::ProblemFault;
using regal::ProblemVerdict;

void bind_problem(nb::module_& module) {
  nb::enum_<ProblemFault>(module, "ProblemFault")
      .value("NONE", ProblemFault::None)
      .value("BAD_INDEX", ProblemFault::BadIndex)
      .value("NEGATIVE_SIZE", ProblemFault::NegativeSize)
      .value("TOO_LARGE", ProblemFault::TooLarge)
      .value("CYCLE", ProblemFault::Cycle)
      .value("BAD_IN_PLACE", ProblemFault::BadInPlace);
  nb::class_<ProblemVerdict>(module, "ProblemVerdict")
      .def_ro("fault", &ProblemVerdict::fault)
      .def_ro("guilty", &ProblemVerdict::guilty);
  nb::class_<OrderProblem>(module, "OrderProblem", "One device, one graph: in which order do the ops run?")
      .def_ro("n_ops", &OrderProblem::n_ops)
      .def_ro("n_storages", &OrderProblem::n_storages);
  module.def(
      "build_problem",
      [](Rows<2> edges, Rows<2> touches, Ints bytes, Ints workspace, Ints inputs, Ints outputs, Rows<3> in_place) {
        OrderProblem problem;
        const regal::OrderInput input{span_of(edges),  span_of(touches), span_of(bytes),   span_of(workspace),
                                      span_of(inputs), span_of(outputs), span_of(in_place)};
        ProblemVerdict verdict;
        {
          nb::gil_scoped_release unlocked;
          verdict = regal::build_problem(input, problem);
        }
        return std::make_pair(verdict, std::move(problem));
      },
      "edges"_a, "touches"_a, "bytes"_a, "workspace"_a, "inputs"_a, "outputs"_a, "in_place"_a,
      "Builds a problem from rows: edges (m, 2) earlier and later op; touches (k, 2) op and storage;\n"
      "bytes per storage; workspace per op; input and output storages; in_place (p, 3) op, in, out storage.");

  nb::class_<regal::Simulation>(module, "Simulation")
      .def_ro("peak_bytes", &regal::Simulation::peak_bytes)
      .def_ro("peak_step", &regal::Simulation::peak_step)
      .def_prop_ro("bytes_at_step", [](const regal::Simulation& s) { return array_of(s.bytes_at_step); }, nb::rv_policy::move)
      .def_prop_ro("in_place", [](const regal::Simulation& s) {
        std::vector<int64_t> flat;
        for (const auto& pair : s.in_place) flat.insert(flat.end(), {pair.op, pair.in, pair.out});
        return array_of(std::move(flat));
      }, nb::rv_policy::move, "Flat (op, in storage, out storage) rows of the pairs that happened.");
  module.def(
      "simulate",
      [](const OrderProblem& problem, Ints order) {
        nb::gil_scoped_release unlocked;
        const std::vector<int32_t> ops(order.data(), order.data() + order.size());
        return regal::simulate(problem, ops);
      },
      "problem"_a, "order"_a, "Runs a legal order (see check_order) step by step.");
}
