#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "bindings_interrupt.h"
#include "fusion_features.h"
#include "fusion_search.h"

using namespace nb::literals;
using regal::FusedKernel;
using regal::FusionDecoder;
using regal::FusionDevices;
using regal::FusionFault;
using regal::FusionGenes;
using regal::FusionProblem;
using regal::FusionSearchResult;
using regal::FusionVerdict;
using regal::Objective;
using regal::Score;
using GeneRow = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using GeneRows = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using GeneArray = nb::ndarray<nb::numpy, uint32_t, nb::ndim<1>>;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Found = std::tuple<GeneArray, Score, int64_t, bool>;

namespace {

Found found_of(std::pair<FusionSearchResult, bool> found) {
  auto& [result, was_interrupted] = found;
  return {array_of(std::move(result.genes)), result.score, result.evaluations, was_interrupted};
}

void require_devices(const FusionProblem& problem, const FusionDevices* devices) {
  if (devices != nullptr && !regal::fits(problem, *devices)) throw nb::value_error("fusion: the devices do not fit");
}

void require_genes(const FusionProblem& problem, const FusionDevices* devices, size_t count) {
  require_devices(problem, devices);
  if (static_cast<int64_t>(count) != FusionGenes(problem, devices != nullptr).size) {
    throw nb::value_error("fusion: one gene per producer, sensitive op and op, and one weight are needed");
  }
}

// `size`: the genes of a whole chromosome.
void require_searched(size_t size, Ints searched) {
  int64_t last = -1;
  for (size_t i = 0; i < searched.size(); ++i) {
    const int64_t gene = searched.data()[i];
    if (gene <= last || gene >= static_cast<int64_t>(size)) throw nb::value_error("fusion: searched genes ascend");
    last = gene;
  }
}

regal::Proposal proposal_of(size_t searched, const Numbers& alpha, const Numbers& beta, const Numbers& bias) {
  for (const Numbers* row : {&alpha, &beta, &bias}) {
    if (row->size() != 0 && row->size() != searched) {
      throw nb::value_error("fusion: a proposal has one number per searched gene");
    }
  }
  if (alpha.size() != beta.size()) throw nb::value_error("fusion: a proposal has alpha and beta, or none of them");
  const auto span = [](const Numbers& row) { return std::span<const double>(row.data(), row.size()); };
  return {span(alpha), span(beta), span(bias)};
}

void bind_fusion_features(nb::module_& module) {
  module.def("fusion_feature_names", [] {
    std::vector<std::tuple<const char*, const char*, const char*>> rows;
    for (const regal::FeatureInfo& info : regal::fusion_feature_infos()) rows.emplace_back(info.name, info.unit, info.meaning);
    return rows;
  }, "(name, unit, meaning) of each column of fusion_features; see fusion_features.h.");
  module.def(
      "fusion_features",
      [](const FusionProblem& problem) {
        regal::FeatureTable table;
        {
          nb::gil_scoped_release unlocked;
          table = regal::fusion_features(problem);
        }
        return std::make_pair(static_cast<int64_t>(regal::fusion_feature_infos().size()), array_of(std::move(table.columns)));
      },
      "problem"_a, "Returns (features, values): column by column, one value per op each.");
}

void bind_fusion_problem(nb::module_& module) {
  nb::enum_<FusionFault>(module, "FusionFault")
      .value("NONE", FusionFault::None)
      .value("BAD_INDEX", FusionFault::BadIndex)
      .value("NEGATIVE_SIZE", FusionFault::NegativeSize)
      .value("BAD_TIME", FusionFault::BadTime)
      .value("TOO_LARGE", FusionFault::TooLarge)
      .value("CYCLE", FusionFault::Cycle)
      .value("BAD_ROW", FusionFault::BadRow);
  nb::class_<FusionVerdict>(module, "FusionVerdict")
      .def_ro("fault", &FusionVerdict::fault)
      .def_ro("guilty", &FusionVerdict::guilty);
  nb::class_<FusionProblem>(module, "FusionNumbers", "Which ops run as one kernel, in which layout?")
      .def_ro("n_ops", &FusionProblem::n_ops)
      .def_ro("n_tensors", &FusionProblem::n_tensors);
  module.def(
      "build_fusion_problem",
      [](int64_t n_devices, int64_t most_ops, Rows<2> edges, Rows<2> reads, Ints producers, Ints view_of,
         Ints has_layouts, Ints output_layouts, Ints storages, Ints tensor_bytes, Ints bytes, Ints input_storages,
         Ints workspace, Rows<3> in_place, Rows<2> pairs, Ints anchors, Ints apart, Ints rules, Ints alone, Ints work, Ints launch,
         Ints read, Ints write, Ints convert) {
        FusionProblem problem;
        const regal::FusionInput input{
            n_devices,          most_ops,           span_of(edges),          span_of(reads),
            span_of(producers), span_of(view_of),   span_of(has_layouts),    span_of(output_layouts),
            span_of(storages),  span_of(tensor_bytes), span_of(bytes),       span_of(input_storages),
            span_of(workspace), span_of(in_place),  span_of(pairs),          span_of(anchors),
            span_of(apart),     span_of(rules),     span_of(alone),     span_of(work),           span_of(launch),
            span_of(read),      span_of(write),     span_of(convert)};
        FusionVerdict verdict;
        {
          nb::gil_scoped_release unlocked;
          verdict = regal::build_fusion_problem(input, problem);
        }
        return std::make_pair(verdict, std::move(problem));
      },
      nb::kw_only(), "n_devices"_a, "most_ops"_a, "edges"_a, "reads"_a, "producers"_a, "view_of"_a, "has_layouts"_a,
      "output_layouts"_a, "storages"_a, "tensor_bytes"_a, "bytes"_a, "input_storages"_a, "workspace"_a, "in_place"_a,
      "pairs"_a, "anchors"_a, "apart"_a, "rules"_a, "alone"_a, "work"_a, "launch"_a, "read"_a, "write"_a, "convert"_a,
      "Builds a problem from rows; see fusion_problem.h.");
  nb::class_<FusionDevices>(module, "FusionDevices", "What several devices add; see fusion_place.h.")
      .def("__init__",
           [](FusionDevices* self, Ints groups, Ints sendable, Ints resident_bytes, Rows<2> resident_users, Ints capacity,
              Ints link_classes, Ints transfers, Ints latency, bool has_contention, bool capacity_counts_live) {
             const auto list = [](const auto& a) { return std::vector<int64_t>(a.data(), a.data() + a.size()); };
             const auto flags = std::vector<uint8_t>(sendable.data(), sendable.data() + sendable.size());
             new (self) FusionDevices{list(groups),       flags,           list(resident_bytes), list(resident_users),
                                      list(capacity),     list(link_classes), list(transfers),   list(latency),
                                      has_contention,     capacity_counts_live};
           },
           nb::kw_only(), "groups"_a, "sendable"_a, "resident_bytes"_a, "resident_users"_a, "capacity"_a,
           "link_classes"_a, "transfers"_a, "latency"_a, "has_contention"_a, "capacity_counts_live"_a);
  nb::class_<FusionGenes>(module, "FusionGenes", "Where each head of a chromosome begins; see fusion_decode.h.")
      .def_ro("fusion", &FusionGenes::fusion)
      .def_ro("layout", &FusionGenes::layout)
      .def_ro("priority", &FusionGenes::priority)
      .def_ro("weight", &FusionGenes::weight)
      .def_ro("size", &FusionGenes::size);
  module.def(
      "fusion_genes",
      [](const FusionProblem& problem, const FusionDevices* devices) {
        require_devices(problem, devices);
        return FusionGenes(problem, devices != nullptr);
      },
      "problem"_a, "devices"_a = nb::none(), "Returns the genes of a problem's chromosomes.");
  module.def(
      "cheapest_layouts",
      [](const FusionProblem& problem, Ints prices) {
        if (prices.size() != static_cast<size_t>(problem.n_ops) * regal::kLayouts) {
          throw nb::value_error("cheapest_layouts: two prices per op are needed");
        }
        regal::LayoutCut cut;
        {
          nb::gil_scoped_release unlocked;
          regal::LayoutPrices rows(problem.n_ops);
          for (int32_t v = 0; v < problem.n_ops; ++v) rows[v] = {prices.data()[2 * v], prices.data()[2 * v + 1]};
          cut = regal::cheapest_layouts(problem, rows);
        }
        return std::make_pair(array_of(std::vector<int64_t>(cut.layouts.begin(), cut.layouts.end())), cut.cost);
      },
      "problem"_a, "prices"_a, "Returns (layouts, cost): a minimum cut; see fusion_layout.h.");
}

void bind_fusion_search(nb::module_& module) {
  module.def(
      "decode_fusion",
      [](const FusionProblem& problem, double per_ns, double per_byte, int64_t capacity, GeneRow genes,
         const FusionDevices* devices) {
        require_genes(problem, devices, genes.size());
        regal::Decoded found;
        {
          nb::gil_scoped_release unlocked;
          found = FusionDecoder(problem, {per_ns, per_byte}, capacity, devices).decode_fully({genes.data(), genes.size()});
        }
        std::vector<std::tuple<std::vector<int32_t>, int32_t, int32_t>> kernels;
        for (FusedKernel& k : found.kernels) kernels.emplace_back(std::move(k.ops), k.tensor, k.layout);
        std::vector<std::tuple<int32_t, int32_t, int32_t, int32_t, int32_t>> pairs;
        for (size_t i = 0; i < found.pair_tensors.size(); ++i) {
          const regal::InPlace& row = found.problem.in_place[i];
          pairs.emplace_back(row.op, row.in, row.out, found.pair_tensors[i].in, found.pair_tensors[i].out);
        }
        std::vector<int64_t> order(found.order.begin(), found.order.end());
        return std::make_tuple(std::move(kernels), array_of(std::move(order)), std::move(found.problem),
                               std::move(pairs), found.score, std::move(found.schedule), std::move(found.rows));
      },
      "problem"_a, "per_ns"_a, "per_byte"_a, "capacity"_a, "genes"_a, "devices"_a = nb::none(),
      "Returns (kernels, order, order problem, pairs, score, schedule, rows). Kernel k, (ops, copied tensor or -1, layout), is\n"
      "op k of the order problem; pairs are (kernel, in storage, out storage, input tensor, output tensor).");
  module.def(
      "fusion_brkga",
      [](const FusionProblem& problem, double per_ns, double per_byte, int64_t capacity, int32_t population,
         int32_t elites, int32_t mutants, double elite_bias, uint64_t seed, int32_t threads, int64_t evaluations,
         double seconds, double stop_value, Ints searched, GeneRow base, GeneRows given, Cancel& cancel,
         const FusionDevices* devices, Numbers alpha, Numbers beta, Numbers gene_bias) {
        require_genes(problem, devices, base.size());
        require_searched(base.size(), searched);
        if (given.shape(0) > 0) require_genes(problem, devices, given.shape(1));
        const regal::FusionBrkgaSettings settings{
            {population, elites, mutants, elite_bias, 0, seed, threads,
             proposal_of(searched.size(), alpha, beta, gene_bias)},
            {{per_ns, per_byte}, capacity, devices, {evaluations, seconds, stop_value}, span_of(searched), {base.data(), base.size()}},
            {given.data(), given.size()}};
        return found_of(run_interruptible<FusionSearchResult>(cancel, [&](const std::atomic<bool>& cancelled) {
          return regal::run_fusion_brkga(problem, settings, cancelled);
        }));
      },
      nb::kw_only(), "problem"_a, "per_ns"_a, "per_byte"_a, "capacity"_a, "population"_a, "elites"_a, "mutants"_a,
      "elite_bias"_a, "seed"_a, "threads"_a, "evaluations"_a, "seconds"_a, "stop_value"_a, "searched"_a, "base"_a,
      "given"_a, "cancel"_a, "devices"_a = nb::none(), "alpha"_a, "beta"_a, "gene_bias"_a,
      "Returns (genes, score, evaluations, was interrupted); see fusion_search.h.");
  module.def(
      "fusion_local",
      [](const FusionProblem& problem, double per_ns, double per_byte, int64_t capacity, uint64_t seed,
         int64_t evaluations, double seconds, double stop_value, Ints searched, GeneRow base, Cancel& cancel,
         const FusionDevices* devices) {
        require_genes(problem, devices, base.size());
        require_searched(base.size(), searched);
        const regal::FusionTask task{{per_ns, per_byte},
                                     capacity,
                                     devices,
                                     {evaluations, seconds, stop_value},
                                     span_of(searched),
                                     {base.data(), base.size()}};
        return found_of(run_interruptible<FusionSearchResult>(cancel, [&](const std::atomic<bool>& cancelled) {
          return regal::run_fusion_local(problem, task, seed, cancelled);
        }));
      },
      nb::kw_only(), "problem"_a, "per_ns"_a, "per_byte"_a, "capacity"_a, "seed"_a, "evaluations"_a, "seconds"_a,
      "stop_value"_a, "searched"_a, "base"_a, "cancel"_a,
      "devices"_a = nb::none(), "Returns (genes, score, evaluations, was interrupted); see fusion_search.h.");
}

}  // namespace

void bind_fusion(nb::module_& module) {
  bind_fusion_features(module);
  bind_fusion_problem(module);
  bind_fusion_search(module);
}
