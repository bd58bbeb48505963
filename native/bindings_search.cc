#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>

#include "bindings.h"
#include "bindings_interrupt.h"
#include "brkga.h"
#include "compact.h"
#include "decode.h"
#include "heuristics.h"
#include "local_search.h"
#include "search.h"

using namespace nb::literals;
using regal::BrkgaSettings;
using regal::CompactProblem;
using regal::Decoder;
using regal::OrderProblem;
using regal::SearchResult;
using Keys = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Genes = nb::ndarray<const uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Orders = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Array = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
using Found = std::tuple<Array, int64_t, int64_t, bool>;

namespace {

std::vector<int32_t> narrow(const int64_t* values, size_t count) { return {values, values + count}; }

std::vector<int64_t> wide(const std::vector<int32_t>& values) { return {values.begin(), values.end()}; }

Found tuple_of(std::pair<SearchResult, bool> found) {
  auto& [result, was_interrupted] = found;
  return {array_of(wide(result.order)), result.peak_bytes, result.evaluations, was_interrupted};
}

std::tuple<Array, Array, Array, Array, Array, Array, Array> rows_of(const OrderProblem& problem) {
  std::vector<int64_t> edges, touches, inputs, outputs, in_place;
  for (int32_t v = 0; v < problem.n_ops; ++v) {
    for (const int32_t u : problem.predecessors[v]) edges.insert(edges.end(), {u, v});
    for (const int32_t s : problem.touched[v]) touches.insert(touches.end(), {v, s});
  }
  for (int32_t s = 0; s < problem.n_storages; ++s) {
    if (problem.is_input[s]) inputs.push_back(s);
    if (problem.is_output[s]) outputs.push_back(s);
  }
  for (const auto& pair : problem.in_place) {
    in_place.insert(in_place.end(), {pair.op, pair.in, pair.out});
  }
  return {array_of(std::move(edges)),  array_of(std::move(touches)), array_of(problem.bytes),
          array_of(problem.workspace), array_of(std::move(inputs)),  array_of(std::move(outputs)),
          array_of(std::move(in_place))};
}

std::span<const double> reals_of(const std::optional<Reals>& values) {
  if (!values) return {};
  return {values->data(), values->size()};
}

}  // namespace

void bind_search(nb::module_& module) {
  nb::enum_<Decoder>(module, "Decoder", "How keys become an order; see decode.h.")
      .value("RAW", Decoder::Raw)
      .value("DFS", Decoder::Dfs)
      .value("GREEDY", Decoder::Greedy)
      .value("BENT", Decoder::Bent)
      .value("FORCED", Decoder::Forced);
  nb::class_<Cancel>(module, "Cancel", "Ends a running search from another thread.")
      .def(nb::init<>())
      .def("cancel", [](Cancel& self) { self.is_set = true; })
      .def_prop_ro("is_cancelled", [](const Cancel& self) { return self.is_set.load(); });
  nb::enum_<regal::Classic>(module, "Classic", "A classic order; see heuristics.h.")
      .value("FILE_ORDER", regal::Classic::FileOrder)
      .value("BFS", regal::Classic::Bfs)
      .value("DFS", regal::Classic::Dfs)
      .value("DFS_LARGE", regal::Classic::DfsLarge)
      .value("DFS_SMALL", regal::Classic::DfsSmall)
      .value("XLA_DFS", regal::Classic::XlaDfs)
      .value("ORT_DEFAULT", regal::Classic::OrtDefault)
      .value("GREEDY_MEMORY", regal::Classic::GreedyMemory)
      .value("XLA_LIST", regal::Classic::XlaList)
      .value("SAFE", regal::Classic::Safe)
      .value("LPMF", regal::Classic::Lpmf);
  module.def(
      "classic_order",
      [](const OrderProblem& problem, regal::Classic classic) {
        std::vector<int64_t> order;
        {
          nb::gil_scoped_release unlocked;
          order = wide(regal::classic_order(problem, classic));
        }
        return array_of(std::move(order));
      },
      "problem"_a, "classic"_a, "Returns a legal order.");
  module.def(
      "peak_of",
      [](const OrderProblem& problem, Ints order) {
        nb::gil_scoped_release unlocked;
        std::vector<int32_t> left;
        return CompactProblem(problem).peak_of(narrow(order.data(), order.size()), left);
      },
      "problem"_a, "order"_a, "Peak bytes of a legal order, as the searches compute it.");
  module.def(
      "decode",
      [](const OrderProblem& problem, Decoder decoder, Keys keys, uint32_t weight) {
        if (static_cast<int32_t>(keys.size()) != problem.n_ops) {
          throw nb::value_error("decode: one key per op is needed");
        }
        int64_t peak = 0;
        std::vector<int32_t> order;
        {
          nb::gil_scoped_release unlocked;
          const CompactProblem compact(problem);
          regal::OrderDecoder decoding(compact);
          peak = decoding.decode(decoder, {keys.data(), keys.size()}, weight);
          order.assign(decoding.order().begin(), decoding.order().end());
        }
        return std::make_tuple(array_of(wide(order)), peak);
      },
      "problem"_a, "decoder"_a, "keys"_a, "weight"_a = regal::kNeutralKey,
      "Decodes uint32 keys (higher = earlier); returns (order, peak bytes).");
  module.def("problem_rows", &rows_of, "problem"_a,
             "Returns (edges, touches, bytes, workspace, inputs, outputs, in_place): what\n"
             "build_problem takes, flat, sorted and without repeats.");
  module.def(
      "peaks_of",
      [](const OrderProblem& problem, Orders orders) {
        if (static_cast<int32_t>(orders.shape(1)) != problem.n_ops) {
          throw nb::value_error("peaks_of: one column per op is needed");
        }
        std::vector<int64_t> peaks(orders.shape(0));
        {
          nb::gil_scoped_release unlocked;
          const CompactProblem compact(problem);
          const std::vector<int32_t> flat = narrow(orders.data(), orders.size());
          std::vector<int32_t> left;
          for (size_t i = 0; i < peaks.size(); ++i) {
            peaks[i] = compact.peak_of({flat.data() + i * problem.n_ops, orders.shape(1)}, left);
          }
        }
        return array_of(std::move(peaks));
      },
      "problem"_a, "orders"_a, "Peak bytes of each row of legal orders, on one thread.");
  module.def(
      "decoded_peaks",
      [](const OrderProblem& problem, Decoder decoder, Genes genes) {
        const size_t columns = genes.shape(1);
        if (columns != static_cast<size_t>(problem.n_ops) + 1) {
          throw nb::value_error("decoded_peaks: one column per op and one for the weight are needed");
        }
        std::vector<int64_t> peaks(genes.shape(0));
        {
          nb::gil_scoped_release unlocked;
          const CompactProblem compact(problem);
          regal::OrderDecoder decoding(compact);
          for (size_t i = 0; i < peaks.size(); ++i) {
            const uint32_t* row = genes.data() + i * columns;
            peaks[i] = decoding.decode(decoder, {row, columns - 1}, row[columns - 1]);
          }
        }
        return array_of(std::move(peaks));
      },
      "problem"_a, "decoder"_a, "genes"_a,
      "Peak bytes of each row of uint32 genes (keys, then the bend weight), on one thread.");
  module.def(
      "brkga",
      [](const OrderProblem& problem, Decoder decoder, int32_t population, int32_t elites,
         int32_t mutants, double elite_bias, int32_t restart_after, bool with_neutral, uint64_t seed,
         int32_t threads, int64_t evaluations, double seconds, int64_t stop_at, Orders seed_orders,
         std::optional<Reals> alpha, std::optional<Reals> beta, std::optional<Reals> gene_bias,
         Cancel& cancel) {
        const auto genes = static_cast<size_t>(problem.n_ops) + 1;
        for (const auto* values : {&alpha, &beta, &gene_bias}) {
          if (*values && (*values)->size() != genes) {
            throw nb::value_error("brkga: alpha, beta and gene_bias need one value per op and one more");
          }
        }
        if (alpha.has_value() != beta.has_value()) throw nb::value_error("brkga: alpha and beta go together");
        if (seed_orders.shape(0) > 0 && static_cast<int32_t>(seed_orders.shape(1)) != problem.n_ops) {
          throw nb::value_error("brkga: a seed order holds each op once");
        }
        const std::vector<int32_t> seeds = narrow(seed_orders.data(), seed_orders.size());
        const BrkgaSettings settings{
            decoder,
            {population, elites, mutants, elite_bias, restart_after, seed, threads,
             {reals_of(alpha), reals_of(beta), reals_of(gene_bias)}},
            with_neutral,
            {evaluations, seconds, stop_at},
            seeds};
        return tuple_of(run_interruptible<SearchResult>(cancel, [&](const std::atomic<bool>& cancelled) {
          return regal::run_brkga(CompactProblem(problem), settings, cancelled);
        }));
      },
      nb::kw_only(), "problem"_a, "decoder"_a, "population"_a, "elites"_a, "mutants"_a, "elite_bias"_a,
      "restart_after"_a, "with_neutral"_a, "seed"_a, "threads"_a, "evaluations"_a, "seconds"_a,
      "stop_at"_a, "seed_orders"_a, "alpha"_a = nb::none(), "beta"_a = nb::none(),
      "gene_bias"_a = nb::none(), "cancel"_a,
      "Returns (order, peak bytes, evaluations, was interrupted); see brkga.h.");
  module.def(
      "local_search",
      [](const OrderProblem& problem, Ints start, bool is_annealing, uint64_t seed, int64_t evaluations,
         double seconds, int64_t stop_at, Cancel& cancel) {
        if (static_cast<int32_t>(start.size()) != problem.n_ops) {
          throw nb::value_error("local_search: the start holds each op once");
        }
        const std::vector<int32_t> order = narrow(start.data(), start.size());
        const regal::LocalSearchSettings settings{is_annealing, seed, {evaluations, seconds, stop_at}, order};
        return tuple_of(run_interruptible<SearchResult>(cancel, [&](const std::atomic<bool>& cancelled) {
          return regal::run_local_search(CompactProblem(problem), settings, cancelled);
        }));
      },
      nb::kw_only(), "problem"_a, "start"_a, "is_annealing"_a, "seed"_a, "evaluations"_a, "seconds"_a,
      "stop_at"_a, "cancel"_a, "Returns (order, peak bytes, evaluations, was interrupted).");
}
