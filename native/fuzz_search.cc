// Decoders, searches and proofs: legal orders, true peaks, true bounds, whatever the settings.
#include <algorithm>
#include <atomic>
#include <limits>
#include <set>

#include "beam.h"
#include "bounds.h"
#include "brkga.h"
#include "check.h"
#include "decode.h"
#include "downset.h"
#include "exact_order.h"
#include "fuzz.h"
#include "heuristics.h"
#include "local_search.h"
#include "ready_set.h"

namespace regal::fuzz {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

void expect_true_peak(const OrderProblem& problem, const std::vector<int32_t>& order, int64_t peak) {
  const Slow slow(problem);
  expect(slow.is_legal(wide(order)), "the order is legal");
  expect(slow.peak(order) == peak, "the order has the peak that was claimed");
}

uint32_t random_key(Dice& dice) {
  return dice.one_in(3) ? dice.pick<uint32_t>({0, 1, kNeutralKey - 1, kNeutralKey, ~uint32_t{0}})
                        : static_cast<uint32_t>(dice.word());
}

void judge_decoders(const OrderProblem& problem, const CompactProblem& compact, Dice& dice) {
  OrderDecoder decoder(compact);
  std::vector<uint32_t> keys(problem.n_ops);
  for (uint32_t& key : keys) key = random_key(dice);
  const uint32_t weight = random_key(dice);
  for (const Decoder kind : {Decoder::Raw, Decoder::Dfs, Decoder::Greedy, Decoder::Bent, Decoder::Forced}) {
    const int64_t peak = decoder.decode(kind, keys, weight);
    const std::vector<int32_t> order(decoder.order().begin(), decoder.order().end());
    expect_true_peak(problem, order, peak);
    decoder.decode(dice.pick<Decoder>({Decoder::Raw, Decoder::Dfs, Decoder::Forced}), keys, random_key(dice));
    expect(decoder.decode(kind, keys, weight) == peak, "a decoder forgets what it decoded before");
    expect(std::equal(order.begin(), order.end(), decoder.order().begin()), "and repeats its order");
  }
  for (int32_t kind = 0; kind <= static_cast<int32_t>(Classic::Lpmf); ++kind) {
    const std::vector<int32_t> order = classic_order(problem, static_cast<Classic>(kind));
    expect(Slow(problem).is_legal(wide(order)), "a classic order is legal");
  }
}

void judge_brkga(const OrderProblem& problem, const CompactProblem& compact, Dice& dice) {
  std::vector<int32_t> seeds;
  int64_t best_seed = kNever;
  for (int32_t i = dice.upto(2); i > 0; --i) {
    const std::vector<int32_t> order = random_order(problem, dice);
    seeds.insert(seeds.end(), order.begin(), order.end());
    best_seed = std::min(best_seed, Slow(problem).peak(order));
  }
  const size_t genes = static_cast<size_t>(problem.n_ops) + 1;
  std::vector<double> alpha, beta, bias;
  if (dice.one_in(3)) {
    for (size_t i = 0; i < genes; ++i) {
      alpha.push_back(dice.pick<double>({1e-9, 0.3, 1, 2.5, 1e9}));
      beta.push_back(dice.pick<double>({1e-9, 0.3, 1, 2.5, 1e9}));
    }
  }
  if (dice.one_in(3)) bias.assign(genes, dice.pick<double>({0, 0.5, 1, -1, 2}));
  BrkgaSettings settings;
  settings.decoder = static_cast<Decoder>(dice.upto(4));
  settings.genetic.population = dice.upto(8);
  settings.genetic.elites = dice.upto(9);
  settings.genetic.mutants = dice.upto(9);
  settings.genetic.elite_bias = dice.pick<double>({0, 0.5, 0.7, 1});
  settings.genetic.restart_after = dice.upto(2);
  settings.with_neutral = dice.one_in(2);
  settings.genetic.seed = dice.word();
  settings.stop.evaluations = dice.upto(50);
  settings.stop.peak_bytes = dice.one_in(3) ? peak_bound(problem) : 0;
  settings.seed_orders = seeds;
  settings.genetic.proposal = {alpha, beta, bias};
  const std::atomic<bool> go_on{false};
  const SearchResult one = run_brkga(compact, settings, go_on);
  expect_true_peak(problem, one.order, one.peak_bytes);
  const int64_t most = std::max<int64_t>(1, settings.stop.evaluations);
  expect(one.evaluations >= 1 && one.evaluations <= most, "the budget holds");
  const auto n_seeds = static_cast<int64_t>(seeds.size()) / std::max(1, problem.n_ops);
  expect(one.peak_bytes <= best_seed || n_seeds > one.evaluations, "never worse than a seed");
  if (dice.one_in(4)) {
    settings.genetic.threads = 2 + dice.upto(1);
    const SearchResult more = run_brkga(compact, settings, go_on);
    expect(more.order == one.order && more.evaluations == one.evaluations, "threads change nothing");
  }
}

void judge_local_search(const OrderProblem& problem, const CompactProblem& compact, Dice& dice) {
  const std::vector<int32_t> start = random_order(problem, dice);
  LocalSearchSettings settings;
  settings.is_annealing = dice.one_in(2);
  settings.seed = dice.word();
  settings.stop.evaluations = dice.upto(200);
  settings.start = start;
  const std::atomic<bool> go_on{false};
  const SearchResult found = run_local_search(compact, settings, go_on);
  expect_true_peak(problem, found.order, found.peak_bytes);
  expect(found.peak_bytes <= Slow(problem).peak(start), "local search never loses its start");
  expect(found.evaluations <= std::max<int64_t>(1, settings.stop.evaluations), "local search keeps its budget");
}

void judge_ready_set(Dice& dice) {
  const int32_t n = 1 + dice.upto(dice.one_in(4) ? 400 : 40);
  ReadySet set(n);
  std::vector<ReadyOp> entries;  // the oracle: a list
  const auto entry = [&](int32_t op) {
    const int64_t second = dice.one_in(3) ? ReadySet::kNever : dice.upto(3);
    return ReadyOp{dice.upto(3) - 1, second, static_cast<uint32_t>(dice.upto(2)), op};
  };
  const auto beats = [](const ReadyOp& a, const ReadyOp& b) {
    if (a.first != b.first) return a.first < b.first;
    return a.key != b.key ? a.key > b.key : a.op < b.op;
  };
  const auto beats_second = [&](const ReadyOp& a, const ReadyOp& b) {
    return a.second != b.second ? a.second < b.second : beats(a, b);
  };
  for (int32_t step = 0; step < 3 * n; ++step) {
    const int32_t op = dice.upto(n - 1);
    const auto held = std::find_if(entries.begin(), entries.end(), [&](const ReadyOp& e) { return e.op == op; });
    expect(set.holds(op) == (held != entries.end()), "the set knows what it holds");
    if (held == entries.end()) {
      entries.push_back(entry(op));
      set.insert(entries.back());
    } else if (dice.one_in(2)) {
      set.update(*held = entry(op));
    } else {
      set.remove(op);
      entries.erase(held);
    }
    if (entries.empty() || dice.one_in(2)) continue;
    const ReadyOp first = *std::min_element(entries.begin(), entries.end(), beats);
    const ReadyOp second = *std::min_element(entries.begin(), entries.end(), beats_second);
    const ReadySet::Best best = set.best();
    expect(best.by_first == first.op && best.second == second.second, "the best entry wins");
    expect(second.second == ReadySet::kNever || best.by_second == second.op, "also by the second rank");
    const int64_t limit = dice.upto(4) - 1;
    std::vector<ReadyOp> within;
    for (const ReadyOp& e : entries) {
      if (e.second <= limit) within.push_back(e);
    }
    if (within.empty() && second.second == ReadySet::kNever) continue;
    const int32_t wanted = within.empty() ? second.op : std::min_element(within.begin(), within.end(), beats)->op;
    expect(set.best_within(limit) == wanted, "the best within a limit");
  }
}

void judge_bitset_table(Dice& dice) {
  const size_t words = 1 + dice.upto(2);
  BitsetTable table(words);
  std::set<std::vector<uint64_t>> seen;
  for (int32_t i = dice.upto(200); i > 0; --i) {
    std::vector<uint64_t> bits(words);
    for (uint64_t& word : bits) word = dice.upto(4);
    // Equal hashes for different sets: only a full comparison tells them apart.
    expect(table.insert(bits, bits[0] % 2) == seen.insert(bits).second, "a set is new exactly once");
    expect(table.size() == static_cast<int64_t>(seen.size()), "the table counts its sets");
  }
}

}  // namespace

void judge_sets(Dice& dice) {
  if (dice.one_in(8)) judge_ready_set(dice);
  if (dice.one_in(8)) judge_bitset_table(dice);
}

void judge_searches(const OrderProblem& problem, Dice& dice) {
  const CompactProblem compact(problem);
  judge_decoders(problem, compact, dice);
  judge_brkga(problem, compact, dice);
  judge_local_search(problem, compact, dice);
}

void judge_exact(const OrderProblem& problem, Dice& dice) {
  const int64_t best = Slow(problem).best();
  expect(peak_bound(problem) <= best, "the bound is one");
  const std::vector<int32_t> hint = dice.one_in(2) ? random_order(problem, dice) : std::vector<int32_t>{};
  Effort enough(1'000'000);
  const ExactOrder proven = solve_exact(problem, hint, enough);
  expect_true_peak(problem, proven.order, proven.peak_bytes);
  expect(proven.peak_bytes == best && proven.lower_bound == best, "the exact search proves the optimum");
  Effort little(dice.upto(30));
  const ExactOrder cut = solve_exact(problem, hint, little);
  expect_true_peak(problem, cut.order, cut.peak_bytes);
  expect(cut.lower_bound <= best, "an unfinished proof holds");
  expect(hint.empty() || cut.peak_bytes <= Slow(problem).peak(hint), "never worse than the hint");
  expect(little.spent() <= 30, "the effort holds");
  Effort beam_effort(dice.one_in(3) ? dice.upto(20) : 1'000'000);
  const std::vector<int32_t> beam = beam_order(problem, 1 + dice.upto(4), dice.one_in(2) ? best : 0, beam_effort);
  if (!beam.empty()) expect_true_peak(problem, beam, Slow(problem).peak(beam));
  else expect(problem.n_ops == 0 || beam_effort.is_over(), "a beam ends empty only without effort");
}

}  // namespace regal::fuzz
