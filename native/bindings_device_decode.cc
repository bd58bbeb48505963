#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>

#include <nanobind/stl/optional.h>

#include "bindings.h"
#include "bindings_device_search.h"
#include "device_compact.h"
#include "device_decode.h"
#include "device_heads.h"

using namespace nb::literals;
using regal::CompactDevices;
using regal::DeviceDecoder;
using regal::DeviceProblem;
using regal::DeviceSchedule;
using regal::FeatureKeys;
using regal::GeneLayout;
using regal::Score;

namespace {

std::vector<int32_t> narrow(Ints values) { return {values.data(), values.data() + values.size()}; }

void require_order(const DeviceProblem& problem, const std::vector<int32_t>& order) {
  std::vector<uint8_t> is_listed(problem.n_ops, 0);
  if (order.size() != is_listed.size()) throw nb::value_error("an order holds each op once");
  for (const int32_t op : order) {
    if (op < 0 || op >= problem.n_ops || is_listed[op]) throw nb::value_error("an order holds each op once");
    for (const int32_t earlier : problem.predecessors[op]) {
      if (!is_listed[earlier]) throw nb::value_error("an op comes before one that it depends on");
    }
    is_listed[op] = 1;
  }
}

void bind_problem_and_layout(nb::module_& module) {
  nb::enum_<DeviceDecoder>(module, "DeviceDecoder", "How keys become a schedule; see device_decode.h.")
      .value("RAW", DeviceDecoder::Raw)
      .value("RAW_LIST", DeviceDecoder::RawList)
      .value("EFT", DeviceDecoder::Eft)
      .value("INHERIT", DeviceDecoder::Inherit);
  nb::class_<CompactDevices>(module, "CompactDevices",
                             "A problem as the searches read it; see device_compact.h.")
      .def("__init__",
           [](CompactDevices* self, const DeviceProblem& problem, std::optional<Ints> reference) {
             const std::vector<int32_t> order = reference ? narrow(*reference) : std::vector<int32_t>();
             if (reference) require_order(problem, order);
             nb::gil_scoped_release unlocked;
             new (self) CompactDevices(problem, order);
           },
           "problem"_a, "reference"_a = nb::none(), nb::keep_alive<1, 2>(),
           "`reference`: a legal order that needs few bytes on one device; None: the best classic one.")
      .def_prop_ro("problem", [](const CompactDevices& p) -> const DeviceProblem& { return *p.source; },
                   nb::rv_policy::reference_internal)
      .def_prop_ro("n_ops", &CompactDevices::n_ops)
      .def_prop_ro("n_devices", &CompactDevices::n_devices)
      .def_prop_ro("reference", [](const CompactDevices& p) {
        return array_of(std::vector<int64_t>(p.reference.begin(), p.reference.end()));
      }, nb::rv_policy::move)
      .def_prop_ro("order_problem", &CompactDevices::order_problem, nb::rv_policy::reference_internal,
                   "The same graph, all on one device.");
  module.attr("GENE_WEIGHTS") = static_cast<int>(regal::kGeneWeights);
  nb::class_<GeneLayout>(module, "GeneLayout", "Where each head of a chromosome begins; see device_genes.h.")
      .def(nb::init<const DeviceProblem&, DeviceDecoder>(), "problem"_a, "decoder"_a)
      .def_ro("priority", &GeneLayout::priority)
      .def_ro("affinity", &GeneLayout::affinity)
      .def_ro("colocation", &GeneLayout::colocation)
      .def_ro("wait", &GeneLayout::wait)
      .def_ro("transfer", &GeneLayout::transfer)
      .def_ro("weight", &GeneLayout::weight)
      .def_ro("size", &GeneLayout::size);
}

void bind_decoders(nb::module_& module) {
  module.def(
      "decode_schedule",
      [](const CompactDevices& problem, DeviceDecoder decoder, double per_ns, double per_byte, GeneRow genes) {
        require_genes(GeneLayout(*problem.source, decoder), genes.size());
        nb::gil_scoped_release unlocked;
        regal::ScheduleDecoder decoding(problem, {per_ns, per_byte}, decoder);
        const Score score = decoding.decode({genes.data(), genes.data() + genes.size()});
        return std::make_pair(decoding.schedule(), score);
      },
      "problem"_a, "decoder"_a, "per_ns"_a, "per_byte"_a, "genes"_a,
      "Decodes one uint32 chromosome; returns (schedule, score). Without weight per byte and without a\n"
      "capacity that could bind, memory is not measured: overflow and peak of the score are 0.");
  module.def(
      "decoded_values",
      [](const CompactDevices& problem, DeviceDecoder decoder, double per_ns, double per_byte, GeneRows rows) {
        require_genes(GeneLayout(*problem.source, decoder), rows.shape(1));
        std::vector<double> values;
        nb::gil_scoped_release unlocked;
        regal::ScheduleDecoder decoding(problem, {per_ns, per_byte}, decoder);
        regal::Genes genes;
        for (size_t i = 0; i < rows.shape(0); ++i) {
          const uint32_t* row = rows.data() + i * rows.shape(1);
          genes.assign(row, row + rows.shape(1));
          values.push_back(decoding.decode(genes).value);
        }
        return values;
      },
      "problem"_a, "decoder"_a, "per_ns"_a, "per_byte"_a, "genes"_a,
      "The values of chromosomes, one per row, on one thread.");
  module.def(
      "encode_schedule",
      [](const CompactDevices& problem, DeviceDecoder decoder, const DeviceSchedule& schedule) {
        if (!regal::is_well_formed(*problem.source, schedule)) throw nb::value_error("the schedule does not fit");
        regal::Genes genes;
        regal::ScheduleDecoder(problem, {}, decoder).encode(schedule.placement, schedule.order, genes);
        return gene_array({genes});
      },
      "problem"_a, "decoder"_a, "schedule"_a,
      "One row: the chromosome that comes as close to the schedule as the decoder can.");
}

void bind_features(nb::module_& module) {
  module.def("device_feature_names", [] {
    std::vector<std::tuple<std::string, std::string, std::string>> rows;
    for (const regal::FeatureInfo& info : regal::feature_infos()) rows.emplace_back(info.name, info.unit, info.meaning);
    return rows;
  }, "(name, unit, meaning) of each feature; see device_features.h.");
  module.def(
      "device_features",
      [](const CompactDevices& problem) {
        auto* kept = new std::vector<float>();
        {
          nb::gil_scoped_release unlocked;
          const regal::FeatureTable table = regal::device_features(problem);
          const auto features = static_cast<int32_t>(regal::feature_infos().size());
          kept->reserve(table.columns.size());
          for (int32_t v = 0; v < table.n_ops; ++v) {
            for (int32_t j = 0; j < features; ++j) kept->push_back(table.column(j)[v]);
          }
        }
        nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
        return nb::ndarray<nb::numpy, float, nb::ndim<2>>(
            kept->data(), {static_cast<size_t>(problem.n_ops()), regal::feature_infos().size()}, owner);
      },
      "problem"_a, "(ops, features) table, standardized per graph.");
  module.def(
      "usual_deviation",
      [](const DeviceProblem& problem, int64_t columns) {
        return FeatureKeys::usual_deviation(problem, std::max<int64_t>(columns, 0));
      },
      "problem"_a, "columns"_a = 0,
      "How far each weight of the feature keys is worth searching; see device_heads.h.");
  module.def(
      "feature_keys",
      [](const CompactDevices& problem, DeviceDecoder decoder,
         nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu> weights) {
        if (static_cast<int64_t>(weights.size()) != FeatureKeys::n_weights(*problem.source)) {
          throw nb::value_error("one weight per head and feature, and one per weight gene");
        }
        regal::Genes genes;
        FeatureKeys(problem, decoder).fill({weights.data(), weights.size()}, genes);
        return gene_array({genes});
      },
      "problem"_a, "decoder"_a, "weights"_a, "One row: the chromosome of these weights; see device_heads.h.");
}

}  // namespace

void bind_device_decode(nb::module_& module) {
  bind_problem_and_layout(module);
  bind_decoders(module);
  bind_features(module);
}
