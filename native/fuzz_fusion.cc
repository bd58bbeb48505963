// Decoded kernels: every op once, legal groups, an order that runs, times recomputed; any threads.
#include "fuzz_fusion.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "fusion_features.h"
#include "fusion_search.h"

namespace regal::fuzz {
namespace {

struct FusionRows {
  std::vector<int64_t> edges, reads, producers, view_of, has_layouts, output_layouts, storages, tensor_bytes, bytes;
  std::vector<int64_t> inputs, workspace, in_place, pairs, anchors, apart, rules, alone, work, launch, read, write, convert;
  int64_t n_devices = 1, most_ops = 64;
  FusionInput view() const {
    return {n_devices, most_ops, edges,   reads, producers, view_of, has_layouts, output_layouts,
            storages,  tensor_bytes, bytes, inputs, workspace, in_place, pairs,   anchors,
            apart,     rules,    alone,   work,  launch,    read,    write,       convert};
  }
};

FusionRows random_rows(Dice& dice) {
  FusionRows rows;
  rows.n_devices = 1 + dice.upto(2);
  rows.most_ops = dice.pick<int64_t>({2, 3, 64});
  const int32_t n = dice.upto(9);
  const auto add_tensor = [&](int64_t producer, int64_t view) {
    rows.producers.push_back(producer);
    rows.view_of.push_back(view);
    rows.has_layouts.push_back(dice.upto(1));
    rows.output_layouts.push_back(dice.one_in(5) ? dice.upto(2) - 1 : -2);
    rows.tensor_bytes.push_back(dice.upto(4));
    if (view >= 0) {
      rows.storages.push_back(rows.storages[view]);
    } else {
      rows.storages.push_back(dice.one_in(6) ? -1 : static_cast<int64_t>(rows.bytes.size()));
      if (rows.storages.back() >= 0) rows.bytes.push_back(rows.tensor_bytes.back());
    }
    for (int64_t d = 0; d < rows.n_devices; ++d) {
      rows.read.push_back(dice.upto(3));
      rows.write.push_back(dice.upto(3));
      rows.convert.push_back(1 + dice.upto(3));
    }
    return static_cast<int64_t>(rows.producers.size()) - 1;
  };
  add_tensor(-1, -1);
  if (rows.storages[0] >= 0) rows.inputs.push_back(rows.storages[0]);
  for (int32_t v = 0; v < n; ++v) {
    std::set<int64_t> reads;
    for (int32_t i = dice.upto(2); i >= 0; --i) reads.insert(dice.upto(static_cast<int64_t>(rows.producers.size()) - 1));
    for (const int64_t t : reads) {
      rows.reads.insert(rows.reads.end(), {v, t});
      const int64_t maker = rows.producers[t];
      if (maker >= 0 && !dice.one_in(4)) rows.pairs.insert(rows.pairs.end(), {maker, v});
    }
    if (v > 0 && dice.one_in(6)) rows.edges.insert(rows.edges.end(), {dice.upto(v - 1), v});
    const bool is_view = dice.one_in(5);
    for (int32_t i = dice.upto(1); i >= 0; --i) {
      const int64_t made = add_tensor(v, is_view ? *reads.begin() : -1);
      if (!is_view && dice.one_in(3) && rows.storages[made] >= 0 && rows.storages[*reads.begin()] >= 0) {
        rows.in_place.insert(rows.in_place.end(), {v, *reads.begin(), made});
      }
    }
    rows.workspace.push_back(dice.upto(2));
    rows.rules.push_back(dice.upto(2));
    if (dice.one_in(4)) rows.anchors.push_back(v);
    if (dice.one_in(5)) rows.apart.push_back(v);
    const int32_t forbidden = dice.one_in(4) ? dice.upto(rows.n_devices - 1) : -1;
    for (int64_t d = 0; d < rows.n_devices; ++d) {
      for (int l = 0; l < kLayouts; ++l) {
        rows.alone.push_back(rows.n_devices > 1 && d == forbidden ? kForbidden : 2 + dice.upto(6));
        rows.work.push_back(dice.upto(4));
      }
    }
  }
  for (int64_t d = 0; d < rows.n_devices; ++d) rows.launch.push_back(dice.upto(3));
  return rows;
}

void spoil(FusionRows& rows, Dice& dice) {
  auto& row = *dice.pick<std::vector<int64_t>*>(
      {&rows.edges, &rows.reads, &rows.producers, &rows.view_of, &rows.has_layouts, &rows.output_layouts, &rows.storages,
       &rows.tensor_bytes, &rows.bytes, &rows.inputs, &rows.workspace, &rows.in_place, &rows.pairs, &rows.anchors,
       &rows.rules, &rows.alone, &rows.work, &rows.launch, &rows.read, &rows.write, &rows.convert});
  if (row.empty() || dice.one_in(3)) {
    row.push_back(dice.upto(3));
  } else {
    row[dice.upto(static_cast<int64_t>(row.size()) - 1)] =
        dice.pick<int64_t>({-3, -1, 0, 1, 7, 1000, INT64_MAX, INT64_MIN, int64_t{1} << 60});
  }
}

FusionDevices random_devices(const FusionProblem& p, Dice& dice) {
  FusionDevices devices;
  const int64_t count = p.n_devices;
  for (int32_t v = 0; v < p.n_ops; ++v) {
    devices.groups.push_back(v);
    if (dice.one_in(4)) devices.resident_users.insert(devices.resident_users.end(), {v, 0});
  }
  devices.resident_bytes = {2};
  for (int32_t t = 0; t < p.n_tensors; ++t) devices.is_sendable.push_back(1);
  devices.capacity.assign(count, dice.one_in(3) ? 6 : kUnlimited);
  for (int64_t i = 0; i < count * count; ++i) devices.link_classes.push_back(i % (count + 1) == 0 ? -1 : 0);
  for (int32_t t = 0; count > 1 && t < p.n_tensors; ++t) devices.transfers.push_back(1 + dice.upto(2));
  for (int64_t i = 0; i < count * count; ++i) devices.latency.push_back(i % (count + 1) == 0 ? 0 : 1);
  devices.has_contention = dice.upto(1) == 1;
  return devices;
}

void judge_decoded(const FusionProblem& p, const Decoded& found) {
  std::vector<int32_t> kernel_of(p.n_ops, -1), place(found.kernels.size(), -1);
  for (size_t i = 0; i < found.order.size(); ++i) place[found.order[i]] = static_cast<int32_t>(i);
  expect(std::ranges::find(place, -1) == place.end(), "every kernel is in the order");
  for (size_t k = 0; k < found.kernels.size(); ++k) {
    const auto& ops = found.kernels[k].ops;
    expect(static_cast<int32_t>(ops.size()) <= std::max(p.most_ops, 1), "a kernel is not too large");
    for (const int32_t v : ops) {
      expect(kernel_of[v] < 0, "every op is in one kernel");
      kernel_of[v] = static_cast<int32_t>(k);
      expect(p.rule[v] != LayoutRule::Fixed || found.kernels[k].layout == 0, "what is fixed is contiguous");
    }
  }
  for (int32_t v = 0; v < p.n_ops; ++v) {
    expect(kernel_of[v] >= 0, "every op is in a kernel");
    for (const int32_t w : p.successors[v]) {
      expect(place[kernel_of[v]] <= place[kernel_of[w]], "kernels run after what they need");
    }
    for (const int32_t w : p.consumers[v]) {
      const auto fusible = p.fusible[v];
      expect(kernel_of[v] != kernel_of[w] || std::binary_search(fusible.begin(), fusible.end(), w),
             "only pairs that are listed share a kernel");
    }
  }
}

}  // namespace

void judge_fusion(Dice& dice) {
  FusionRows rows = random_rows(dice);
  const bool is_spoiled = dice.one_in(4);
  if (is_spoiled) spoil(rows, dice);
  FusionProblem problem;
  const FusionVerdict verdict = build_fusion_problem(rows.view(), problem);
  expect(is_spoiled || verdict.fault == FusionFault::None, "a legal fusion problem is accepted");
  if (verdict.fault != FusionFault::None) return;
  const FusionDevices devices = random_devices(problem, dice);
  expect(fits(problem, devices), "its devices fit");
  const FusionDevices* several = problem.n_devices > 1 ? &devices : nullptr;
  const Objective objective = dice.pick<Objective>({{1, 0}, {0, 1}, {0.5, 2}});
  FusionDecoder decoder(problem, objective, dice.one_in(3) ? 5 : kUnlimited, several);
  Genes genes(decoder.layout().size);
  for (uint32_t& gene : genes) gene = dice.one_in(4) ? kNeutralKey : static_cast<uint32_t>(dice.word());
  const Decoded found = decoder.decode_fully(genes);
  expect(found.score.value == decoder.decode_fully(genes).score.value, "equal keys give equal plans");
  judge_decoded(problem, found);
  for (const float value : fusion_features(problem).columns) {
    expect(std::abs(value) <= 20, "features are finite and small");
  }
  std::vector<int64_t> searched;
  for (int64_t g = 0; g < decoder.layout().size; ++g) {
    if (!dice.one_in(3)) searched.push_back(g);
  }
  const FusionTask task{objective, kUnlimited, several, {1 + dice.upto(30)}, searched, genes};
  const std::atomic<bool> cancelled{false};
  FusionBrkgaSettings settings{{}, task, genes};
  settings.genetic.population = 4;
  settings.genetic.elites = 1;
  settings.genetic.mutants = 1;
  settings.genetic.seed = dice.word();
  const FusionSearchResult one = run_fusion_brkga(problem, settings, cancelled);
  settings.genetic.threads = 3;
  expect(one.genes == run_fusion_brkga(problem, settings, cancelled).genes, "threads change nothing");
  const Score start = FusionDecoder(problem, objective, kUnlimited, several).decode(genes);
  expect(!start.is_better_than(one.score), "a search is no worse than its start");
  const FusionSearchResult climbed = run_fusion_local(problem, task, dice.word(), cancelled);
  expect(!start.is_better_than(climbed.score), "nor is a climb");
  expect(climbed.evaluations <= std::max<int64_t>(task.stop.evaluations, 1), "a climb keeps to its budget");
}

}  // namespace regal::fuzz
