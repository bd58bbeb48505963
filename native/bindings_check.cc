#include "bindings.h"
#include "check.h"

using namespace nb::literals;
using regal::OffsetFault;
using regal::OrderFault;

void bind_check(nb::module_& module) {
  nb::enum_<OrderFault>(module, "OrderFault")
      .value("NONE", OrderFault::None)
      .value("NOT_A_PERMUTATION", OrderFault::NotAPermutation)
      .value("READER_TOO_EARLY", OrderFault::ReaderTooEarly)
      .value("IN_PLACE_NOT_ALLOWED", OrderFault::InPlaceNotAllowed)
      .value("IN_PLACE_NOT_LAST", OrderFault::InPlaceNotLast)
      .value("IN_PLACE_TWICE", OrderFault::InPlaceTwice);
  nb::class_<regal::OrderVerdict>(module, "OrderVerdict")
      .def_ro("fault", &regal::OrderVerdict::fault)
      .def_ro("first", &regal::OrderVerdict::first)
      .def_ro("second", &regal::OrderVerdict::second)
      .def_ro("peak_bytes", &regal::OrderVerdict::peak_bytes);
  module.def(
      "check_order",
      [](const regal::OrderProblem& problem, Ints order, Rows<3> in_place) {
        nb::gil_scoped_release unlocked;
        return regal::check_order(problem, span_of(order), span_of(in_place));
      },
      "problem"_a, "order"_a, "in_place"_a,
      "Judges an order and its in-place rows (op, in storage, out storage); recomputes the peak.");

  nb::enum_<OffsetFault>(module, "OffsetFault")
      .value("NONE", OffsetFault::None)
      .value("EMPTY", OffsetFault::Empty)
      .value("INVERTED", OffsetFault::Inverted)
      .value("NEGATIVE", OffsetFault::Negative)
      .value("MISALIGNED", OffsetFault::Misaligned)
      .value("PAST_END", OffsetFault::PastEnd)
      .value("OVERLAP", OffsetFault::Overlap);
  nb::class_<regal::OffsetVerdict>(module, "OffsetVerdict")
      .def_ro("fault", &regal::OffsetVerdict::fault)
      .def_ro("first", &regal::OffsetVerdict::first)
      .def_ro("second", &regal::OffsetVerdict::second);
  static_assert(sizeof(regal::Buffer) == 4 * sizeof(int64_t));
  module.def(
      "check_offsets",
      [](Rows<4> rows, int64_t arena_bytes, int64_t alignment) {
        nb::gil_scoped_release unlocked;
        const auto* first = reinterpret_cast<const regal::Buffer*>(rows.data());
        return regal::check_offsets({first, rows.shape(0)}, arena_bytes, alignment);
      },
      "rows"_a, "arena_bytes"_a, "alignment"_a = 1,
      "Checks (n, 4) int64 rows [first_step, last_step, bytes, offset].");
}
