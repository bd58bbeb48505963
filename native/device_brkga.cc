#include "device_brkga.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "device_decode.h"

namespace regal {
namespace {

constexpr int32_t kLevels = 9;
constexpr int32_t kMostRelabeled = 32;  // more devices than that keep their numbers

class ScheduleModel {
 public:
  struct Value {
    Score score;
    std::array<uint8_t, kMostRelabeled> new_name;  // per device
    bool is_renamed;
  };

  ScheduleModel(const CompactDevices& problem, const DeviceBrkgaSettings& settings)
      : problem_(problem), settings_(settings), layout_(*problem.source, settings.decoder) {
    const int workers = Genetic<ScheduleModel>::workers_of(settings.genetic);
    for (int i = 0; i < workers; ++i) {
      decoders_.emplace_back(problem, settings.objective, settings.decoder);
    }
    const auto& classes = problem.source->device_class;
    has_equals_ = settings.relabels_devices && problem.n_devices() <= kMostRelabeled &&
                  std::adjacent_find(classes.begin(), classes.end()) != classes.end();
  }

  KeySearchResult run(const std::atomic<bool>& cancelled);

  size_t n_genes() const { return static_cast<size_t>(layout_.size); }
  int32_t n_given() const { return n_neutral() + n_chromosomes() + n_seeds(); }
  void give(int32_t i, Genes& genes) const;
  Value evaluate(const Genes& genes, int worker);
  static bool is_better(const Value& a, const Value& b) { return a.score.is_better_than(b.score); }
  bool is_enough(const Value& value) const { return settings_.stop.is_reached(value.score); }
  bool keep(const Genes& genes, const Value& value);
  void tidy(Genes& genes, const Value& value) const;

 private:
  bool evaluate_seeds(const Deadline& deadline, int64_t most);
  void name_by_first_use(const Timeline& timeline, Value& value) const;
  // The levels of Inherit decide so much that the plain heuristic is one of several.
  int32_t n_neutral() const {
    if (!settings_.with_neutral) return 0;
    return settings_.decoder == DeviceDecoder::Inherit ? kLevels : 1;
  }
  int32_t n_chromosomes() const {
    const auto genes = static_cast<int64_t>(settings_.chromosomes.size());
    return genes == 0 ? 0 : static_cast<int32_t>(genes / layout_.size);
  }
  int32_t n_seeds() const { return static_cast<int32_t>(settings_.seeds.size()); }
  bool is_best(const Score& score) const {
    return best_.schedule.order.empty() || score.is_better_than(best_.score);
  }

  const CompactDevices& problem_;
  const DeviceBrkgaSettings& settings_;
  GeneLayout layout_;
  std::vector<ScheduleDecoder> decoders_;  // one per worker
  bool has_equals_;
  KeySearchResult result_;
  DeviceSearchResult& best_ = result_.found;
};

KeySearchResult ScheduleModel::run(const std::atomic<bool>& cancelled) {
  const Deadline deadline(settings_.stop.seconds, cancelled);
  const int64_t most = std::max<int64_t>(settings_.stop.evaluations, 1);
  if (!evaluate_seeds(deadline, most)) return std::move(result_);
  Genetic genetic(*this, settings_.genetic, deadline, best_.evaluations, most);
  best_.evaluations = genetic.run();
  return std::move(result_);
}

bool ScheduleModel::evaluate_seeds(const Deadline& deadline, int64_t most) {
  for (int32_t i = 0; i < n_seeds(); ++i) {
    if (best_.evaluations == most || (i > 0 && deadline.has_passed())) return false;
    const DeviceSchedule& schedule = *settings_.seeds[i];
    const Score score = decoders_[0].score_of(schedule);
    if (is_best(score)) {
      best_.schedule = schedule;
      best_.score = score;
      result_.genes.clear();
    }
    ++best_.evaluations;
    if (settings_.stop.is_reached(best_.score)) return false;
  }
  return best_.evaluations < most;
}

void ScheduleModel::give(int32_t i, Genes& genes) const {
  if (i < n_neutral()) {
    std::fill(genes.begin(), genes.end(), kNeutralKey);
    if (n_neutral() > 1) {
      genes[layout_.weight + kWaitWeight] = static_cast<uint32_t>(int64_t{UINT32_MAX} * i / (kLevels - 1));
    }
    return;
  }
  i -= n_neutral();
  if (i < n_chromosomes()) {
    const auto row = settings_.chromosomes.subspan(static_cast<size_t>(i * layout_.size), genes.size());
    std::copy(row.begin(), row.end(), genes.begin());
    return;
  }
  i -= n_chromosomes();
  decoders_[0].encode(settings_.seeds[i]->placement, settings_.seeds[i]->order, genes);
}

ScheduleModel::Value ScheduleModel::evaluate(const Genes& genes, int worker) {
  ScheduleDecoder& decoder = decoders_[worker];
  Value value{decoder.decode(genes), {}, false};
  if (has_equals_) name_by_first_use(decoder.timeline(), value);
  return value;
}

bool ScheduleModel::keep(const Genes& genes, const Value& value) {
  if (!is_best(value.score)) return false;
  decoders_[0].decode(genes);
  best_.schedule = decoders_[0].schedule();
  best_.score = value.score;
  result_.genes = genes;
  return true;
}

// The devices of a class, in the sequence of their first ops, get its numbers in ascending order.
void ScheduleModel::name_by_first_use(const Timeline& timeline, Value& value) const {
  const int32_t devices = problem_.n_devices();
  const auto& classes = problem_.source->device_class;
  std::array<uint8_t, kMostRelabeled> by_use;
  std::iota(by_use.begin(), by_use.begin() + devices, uint8_t{0});
  std::stable_sort(by_use.begin(), by_use.begin() + devices, [&](uint8_t a, uint8_t b) {
    const int32_t first = timeline.first_on(a), other = timeline.first_on(b);
    if (first < 0 || other < 0) return first >= 0 && other < 0;
    if (timeline.start_of(first) != timeline.start_of(other)) {
      return timeline.start_of(first) < timeline.start_of(other);
    }
    return first < other;
  });
  std::array<uint8_t, kMostRelabeled> next{};  // per class: the lowest number that may be free
  for (int32_t i = 0; i < devices; ++i) {
    const int32_t which = classes[by_use[i]];
    while (classes[next[which]] != which) ++next[which];
    value.new_name[by_use[i]] = next[which]++;
  }
  for (int32_t d = 0; d < devices; ++d) value.is_renamed |= value.new_name[d] != d;
}

void ScheduleModel::tidy(Genes& genes, const Value& value) const {
  if (!value.is_renamed) return;
  const int32_t devices = problem_.n_devices();
  std::array<uint32_t, kMostRelabeled> row;
  for (int64_t i = layout_.affinity; i < layout_.colocation; i += devices) {
    for (int32_t d = 0; d < devices; ++d) row[value.new_name[d]] = genes[i + d];
    std::copy_n(row.begin(), devices, genes.begin() + i);
  }
}

}  // namespace

KeySearchResult run_device_brkga(const CompactDevices& problem, const DeviceBrkgaSettings& settings,
                                 const std::atomic<bool>& cancelled) {
  return ScheduleModel(problem, settings).run(cancelled);
}

}  // namespace regal
