#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "bindings.h"
#include "bindings_device_search.h"
#include "bindings_interrupt.h"
#include "device_brkga.h"
#include "device_es.h"
#include "device_local.h"

using namespace nb::literals;
using regal::CompactDevices;
using regal::DeviceDecoder;
using regal::DeviceSchedule;
using regal::GeneLayout;
using regal::Score;

using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using RealRows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;  // (columns, ops)

namespace {

std::span<const double> reals_of(const std::optional<Reals>& values, int64_t size, const char* name) {
  if (!values) return {};
  if (static_cast<int64_t>(values->size()) != size) throw nb::value_error(name);
  return {values->data(), values->size()};
}

std::span<const float> columns_of(const std::optional<Columns>& columns, const CompactDevices& problem) {
  if (!columns) return {};
  if (static_cast<int32_t>(columns->shape(1)) != problem.n_ops()) {
    throw nb::value_error("columns need one value per op");
  }
  return {columns->data(), columns->size()};
}

int64_t n_columns(const std::optional<Columns>& columns) {
  return columns ? static_cast<int64_t>(columns->shape(0)) : 0;
}

// Schedules are the caller's: a wrong one must not be used.
void require_complete(const regal::DeviceProblem& problem, const std::vector<const DeviceSchedule*>& seeds) {
  regal::DeviceFigures figures;
  for (const DeviceSchedule* seed : seeds) {
    if (seed == nullptr || !is_well_formed(problem, *seed) || !simulate_devices(problem, *seed, figures)) {
      throw nb::value_error("a seed does not fit the problem, or is not complete");
    }
  }
}

void bind_brkga(nb::module_& module) {
  module.def(
      "device_brkga",
      [](const CompactDevices& problem, DeviceDecoder decoder, double per_ns, double per_byte,
         int32_t population, int32_t elites, int32_t mutants, double elite_bias, int32_t restart_after,
         bool with_neutral, bool relabels_devices, uint64_t seed, int32_t threads, int64_t evaluations,
         double seconds, double stop_value, const std::vector<const DeviceSchedule*>& seeds, GeneRows chromosomes,
         std::optional<Reals> alpha, std::optional<Reals> beta, std::optional<Reals> gene_bias,
         Cancel& cancel) {
        const GeneLayout layout(*problem.source, decoder);
        if (alpha.has_value() != beta.has_value()) throw nb::value_error("alpha and beta go together");
        require_genes(layout, chromosomes.shape(1));
        require_complete(*problem.source, seeds);
        const char* wrong = "alpha, beta and gene_bias need one value per gene";
        regal::DeviceBrkgaSettings settings;
        settings.decoder = decoder;
        settings.objective = {per_ns, per_byte};
        settings.genetic = {population, elites, mutants, elite_bias, restart_after, seed, threads,
                            {reals_of(alpha, layout.size, wrong), reals_of(beta, layout.size, wrong),
                             reals_of(gene_bias, layout.size, wrong)}};
        settings.with_neutral = with_neutral;
        settings.relabels_devices = relabels_devices;
        settings.stop = {evaluations, seconds, stop_value};
        settings.seeds = seeds;
        settings.chromosomes = {chromosomes.data(), chromosomes.size()};
        auto [result, was_interrupted] = run_interruptible<regal::KeySearchResult>(
            cancel, [&](const std::atomic<bool>& cancelled) {
              return regal::run_device_brkga(problem, settings, cancelled);
            });
        std::vector<regal::Genes> best;
        if (!result.genes.empty()) best.push_back(std::move(result.genes));
        return std::make_tuple(std::move(result.found.schedule), result.found.score,
                               result.found.evaluations, was_interrupted,
                               gene_array(best));
      },
      nb::kw_only(), "problem"_a, "decoder"_a, "per_ns"_a, "per_byte"_a, "population"_a, "elites"_a,
      "mutants"_a, "elite_bias"_a, "restart_after"_a, "with_neutral"_a, "relabels_devices"_a, "seed"_a,
      "threads"_a, "evaluations"_a, "seconds"_a, "stop_value"_a, "seeds"_a, "chromosomes"_a, "alpha"_a = nb::none(), "beta"_a = nb::none(), "gene_bias"_a = nb::none(), "cancel"_a,
      "Returns (schedule, score, evaluations, was interrupted, its chromosome as a row if it has one); see\n"
      "device_brkga.h.");
}

void bind_es(nb::module_& module) {
  module.def(
      "device_es",
      [](const CompactDevices& problem, DeviceDecoder decoder, double per_ns, double per_byte,
         std::optional<Reals> deviation, std::optional<RealRows> starts,
         double step, int32_t population, int32_t kept, uint64_t seed, int32_t threads, int64_t evaluations, double seconds,
         double stop_value, std::optional<Columns> columns, Cancel& cancel) {
        const int64_t weights = regal::FeatureKeys::n_weights(*problem.source, n_columns(columns));
        regal::DeviceEsSettings settings;
        settings.extra = columns_of(columns, problem);
        settings.decoder = decoder;
        settings.objective = {per_ns, per_byte};
        settings.deviation = reals_of(deviation, weights, "deviation needs one value per weight");
        if (starts && static_cast<int64_t>(starts->shape(1)) != weights) {
          throw nb::value_error("starts need one value per weight");
        }
        if (starts) settings.starts = {starts->data(), starts->size()};
        settings.step = step;
        settings.population = population;
        settings.kept = kept;
        settings.seed = seed;
        settings.threads = threads;
        settings.stop = {evaluations, seconds, stop_value};
        auto [result, was_interrupted] = run_interruptible<regal::DeviceEsResult>(
            cancel, [&](const std::atomic<bool>& cancelled) {
              return regal::run_device_es(problem, settings, cancelled);
            });
        return std::make_tuple(std::move(result.found.schedule), result.found.score,
                               result.found.evaluations, was_interrupted, gene_array(result.best_genes),
                               array_of(std::move(result.weights)),
                               array_of(std::move(result.mean)), result.step);
      },
      nb::kw_only(), "problem"_a, "decoder"_a, "per_ns"_a, "per_byte"_a,
      "deviation"_a = nb::none(), "starts"_a = nb::none(), "step"_a, "population"_a, "kept"_a, "seed"_a, "threads"_a,
      "evaluations"_a, "seconds"_a, "stop_value"_a, "columns"_a = nb::none(), "cancel"_a,
      "Returns (schedule, score, evaluations, was interrupted, best chromosomes, weights of the\n"
      "best, mean, step); see device_es.h.");
}

void bind_weight_scores(nb::module_& module) {
  module.def(
      "device_weight_scores",
      [](const CompactDevices& problem, DeviceDecoder decoder, double per_ns, double per_byte,
         RealRows weights, int32_t threads, std::optional<Columns> columns) {
        const int64_t size = regal::FeatureKeys::n_weights(*problem.source, n_columns(columns));
        if (static_cast<int64_t>(weights.shape(1)) != size) {
          throw nb::value_error("weights need one value per weight");
        }
        const std::span<const float> extra = columns_of(columns, problem);
        nb::gil_scoped_release unlocked;
        return regal::weight_scores(problem, decoder, {per_ns, per_byte}, extra,
                                    {weights.data(), weights.size()}, threads);
      },
      "problem"_a, "decoder"_a, "per_ns"_a, "per_byte"_a, "weights"_a, "threads"_a = 1,
      "columns"_a = nb::none(),
      "Returns what each row of weights decodes to; see device_es.h.");
}

void bind_local(nb::module_& module) {
  module.def(
      "device_local_search",
      [](const CompactDevices& problem, DeviceDecoder decoder, double per_ns, double per_byte,
         GeneRow start, bool is_annealing, double critical, double region, double relocate,
         double release, double shift, double reach, uint64_t seed, int32_t threads,
         int64_t evaluations, double seconds, double stop_value, Cancel& cancel) {
        require_genes(GeneLayout(*problem.source, decoder), start.size());
        regal::DeviceLocalSettings settings;
        settings.decoder = decoder;
        settings.objective = {per_ns, per_byte};
        settings.is_annealing = is_annealing;
        settings.mix = {critical, region, relocate, release, shift, reach};
        settings.seed = seed;
        settings.threads = threads;
        settings.stop = {evaluations, seconds, stop_value};
        settings.start = {start.data(), start.size()};
        auto [result, was_interrupted] = run_interruptible<regal::KeySearchResult>(
            cancel, [&](const std::atomic<bool>& cancelled) {
              return regal::run_device_local(problem, settings, cancelled);
            });
        return std::make_tuple(std::move(result.found.schedule), result.found.score,
                               result.found.evaluations, was_interrupted, gene_array({result.genes}));
      },
      nb::kw_only(), "problem"_a, "decoder"_a, "per_ns"_a, "per_byte"_a, "start"_a, "is_annealing"_a,
      "critical"_a, "region"_a, "relocate"_a, "release"_a, "shift"_a, "reach"_a, "seed"_a, "threads"_a,
      "evaluations"_a, "seconds"_a, "stop_value"_a, "cancel"_a,
      "Returns (schedule, score, evaluations, was interrupted, its chromosome as a row); see device_local.h.");
}

}  // namespace

void bind_device_search(nb::module_& module) {
  bind_device_decode(module);
  bind_brkga(module);
  bind_es(module);
  bind_weight_scores(module);
  bind_local(module);
}
