#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings.h"
#include "device_brkga.h"
#include "device_decode.h"
#include "device_es.h"
#include "device_local.h"

using namespace nb::literals;
using regal::CompactDevices;
using regal::DeviceDecoder;
using regal::DeviceProblem;
using regal::Score;
using Keys = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
namespace {
std::vector<int32_t> narrow(const int64_t* values, size_t count) { return {values, values + count}; }
}

void bind_device_search(nb::module_& module) {
  nb::enum_<DeviceDecoder>(module, "DeviceDecoder", "How keys become a schedule; see device_decode.h.")
      .value("RAW", DeviceDecoder::Raw)
      .value("RAW_LIST", DeviceDecoder::RawList)
      .value("EFT", DeviceDecoder::Eft)
      .value("INHERIT", DeviceDecoder::Inherit);
  module.def("decode_device", [](const DeviceProblem& p, DeviceDecoder d, double per_ns, double per_byte, Keys keys) {
    const CompactDevices c(p);
    regal::ScheduleDecoder dec(c, {per_ns, per_byte}, d);
    regal::Genes g(keys.data(), keys.data() + keys.size());
    Score s = dec.decode(g);
    return std::make_pair(s, dec.schedule());
  });
  module.def("decode_many", [](const DeviceProblem& p, DeviceDecoder d, double per_ns, double per_byte, Keys keys, int count) {
    const CompactDevices c(p);
    regal::ScheduleDecoder dec(c, {per_ns, per_byte}, d);
    regal::Genes g(keys.data(), keys.data() + keys.size());
    double total = 0;
    for (int i = 0; i < count; ++i) { for (int k = 0; k < 32; ++k) { g[(i * 977 + k * 31) % g.size()] ^= 0x12345678u * (i + 1); } total += dec.decode(g).value; }
    return total;
  });
  module.def("n_genes", [](const DeviceProblem& p, DeviceDecoder d) { return regal::GeneLayout(p, d).size; });
  module.def("device_brkga", [](const DeviceProblem& p, DeviceDecoder d, double per_ns, double per_byte, int population, int elites, int mutants, double bias,
     bool with_neutral, uint64_t seed, int threads, int64_t evaluations, double seconds, Table placements, Table orders) {
    auto pl = narrow(placements.data(), placements.size()), od = narrow(orders.data(), orders.size());
    nb::gil_scoped_release unlocked;
    const CompactDevices c(p);
    regal::DeviceBrkgaSettings s;
    s.decoder = d; s.objective = {per_ns, per_byte};
    s.genetic.population = population; s.genetic.elites = elites; s.genetic.mutants = mutants; s.genetic.elite_bias = bias;
    s.genetic.seed = seed; s.genetic.threads = threads; s.with_neutral = with_neutral;
    s.stop.evaluations = evaluations; s.stop.seconds = seconds;
    s.seeds = {pl, od};
    std::atomic<bool> no{false};
    auto r = regal::run_device_brkga(c, s, no);
    return std::make_tuple(r.schedule, r.score, r.evaluations);
  });
  using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  module.def("device_es", [](const DeviceProblem& p, DeviceDecoder d, double per_ns, double per_byte, Reals mean, Reals dev, double step, int population,
     uint64_t seed, int threads, int64_t evaluations, double seconds, int kept) {
    regal::DeviceEsResult r;
    {
    nb::gil_scoped_release unlocked;
    const CompactDevices c(p);
    regal::DeviceEsSettings s;
    s.decoder = d; s.objective = {per_ns, per_byte}; s.mean = {mean.data(), mean.size()}; s.deviation = {dev.data(), dev.size()}; s.step = step; s.population = population;
    s.seed = seed; s.threads = threads; s.kept = kept; s.stop.evaluations = evaluations; s.stop.seconds = seconds;
    std::atomic<bool> no{false};
    r = regal::run_device_es(c, s, no);
    }
    std::vector<std::vector<uint32_t>> g = r.best_genes;
    return std::make_tuple(r.found.schedule, r.found.score, r.found.evaluations, g, r.step);
  });
  module.def("usual_deviation", [](const DeviceProblem& p, DeviceDecoder d) { const CompactDevices c(p); return regal::FeatureKeys(c, d).usual_deviation(); });
  module.def("feature_names", []() { std::vector<std::string> n; for (auto& i : regal::feature_infos()) n.push_back(i.name); return n; });
  module.def("device_local", [](const DeviceProblem& p, DeviceDecoder d, double per_ns, double per_byte, Keys start, bool annealing, uint64_t seed, int64_t evaluations) {
    nb::gil_scoped_release unlocked;
    const CompactDevices c(p);
    regal::DeviceLocalSettings s;
    s.decoder = d; s.objective = {per_ns, per_byte}; s.is_annealing = annealing; s.seed = seed; s.stop.evaluations = evaluations;
    s.start.assign(start.data(), start.data() + start.size());
    std::atomic<bool> no{false};
    auto r = regal::run_device_local(c, s, no);
    return std::make_tuple(r.found.schedule, r.found.score, r.found.evaluations, r.genes);
  });
}
