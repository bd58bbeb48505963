// Simulation, its incremental forms and the checker, against the definitions.
#include <algorithm>

#include "bounds.h"
#include "check.h"
#include "compact.h"
#include "downset.h"
#include "fuzz.h"
#include "moves.h"
#include "reduce.h"
#include "simulate.h"

namespace regal::fuzz {
namespace {

std::vector<int64_t> flat(const std::vector<InPlace>& pairs) {
  std::vector<int64_t> rows;
  for (const InPlace& pair : pairs) rows.insert(rows.end(), {pair.op, pair.in, pair.out});
  return rows;
}

void judge_walk(const OrderProblem& problem, Dice& dice) {
  const Slow slow(problem);
  Downset done(problem);
  uint32_t ran = 0;
  for (int32_t step = 0; step < 30; ++step) {
    if (dice.one_in(3) && done.size() > 0) {
      ran &= ~(uint32_t{1} << done.order().back());
      done.undo();
    } else if (!done.ready().empty()) {
      const int32_t op = done.ready()[dice.upto(static_cast<int64_t>(done.ready().size()) - 1)];
      const LiveMemory::Effect effect = done.effect_of(op);
      expect(effect.during == slow.during(ran, op, slow.pairs_at(ran, op)), "a step costs what it says");
      ran |= uint32_t{1} << op;
      expect(effect.after == slow.live_after(ran), "a step leaves what it says");
      done.run(op);
    }
    uint32_t ready = 0, can = 0;
    for (const int32_t v : done.ready()) ready |= uint32_t{1} << v;
    for (int32_t v = 0; v < problem.n_ops; ++v) can |= slow.can_run(ran, v) ? uint32_t{1} << v : 0;
    expect(ready == can, "ready ops are those that can run");
    expect(done.bits().empty() ? ran == 0 : done.bits()[0] == ran, "bits are the ops that ran");
    expect(problem.n_ops == 0 || done.live_bytes() == slow.live_after(ran), "live bytes follow the set alone");
  }
}

void judge_moves(const CompactProblem& compact, Dice& dice) {
  MovableOrder movable(compact);
  movable.assign(random_order(*compact.source, dice));
  const Slow slow(*compact.source);
  const auto n = compact.n_ops();
  for (int32_t i = 0; i < 6 && n > 1; ++i) {
    const int32_t begin = dice.upto(n - 1);
    const int32_t end = begin + 1 + dice.upto(n - 1 - begin);
    const int32_t latest = movable.latest_end(begin, end), earliest = movable.earliest_begin(begin, end);
    expect(earliest <= begin && end <= latest && latest <= n && earliest >= 0, "a block may stay where it is");
    const bool is_later = dice.one_in(2);
    if (is_later ? latest == end : earliest == begin) continue;
    const int32_t first = is_later ? begin : earliest + dice.upto(begin - earliest - 1);
    const int32_t middle = is_later ? end : begin;
    const int32_t last = is_later ? end + 1 + dice.upto(latest - end - 1) : end;
    std::vector<int32_t> order(movable.order().begin(), movable.order().end());
    std::rotate(order.begin() + first, order.begin() + middle, order.begin() + last);
    expect(slow.is_legal(wide(order)), "a move keeps predecessors first");
    const MovableOrder::Cost cost = movable.try_move(first, middle, last);
    expect(cost.peak_bytes == slow.peak(order), "a move costs the peak of its order");
    if (dice.one_in(3)) continue;
    movable.accept();
    expect(std::equal(order.begin(), order.end(), movable.order().begin()), "an accepted move is made");
    expect(movable.peak_bytes() == cost.peak_bytes && movable.area() == cost.area, "and costs what was said");
  }
}

}  // namespace

void judge_simulation(const OrderProblem& problem, Dice& dice) {
  const Slow slow(problem);
  const std::vector<int32_t> order = random_order(problem, dice);
  const Simulation simulation = simulate(problem, order);
  const int64_t peak = slow.peak(order);
  expect(simulation.peak_bytes == peak, "simulate() finds the peak");
  const auto highest = std::max_element(simulation.bytes_at_step.begin(), simulation.bytes_at_step.end());
  expect(order.empty() || simulation.peak_step == highest - simulation.bytes_at_step.begin(), "the first peak step");
  std::vector<InPlace> pairs;
  uint32_t ran = 0;
  for (size_t step = 0; step < order.size(); ++step) {
    const std::vector<InPlace> here = slow.pairs_at(ran, order[step]);
    expect(simulation.bytes_at_step[step] == slow.during(ran, order[step], here), "bytes of a step");
    pairs.insert(pairs.end(), here.begin(), here.end());
    ran |= uint32_t{1} << order[step];
  }
  expect(flat(simulation.in_place) == flat(pairs), "in-place pairs are taken in their sequence");

  LiveMemory memory(problem);
  expect(peak_of(order, memory) == peak, "the hot path equals simulate()");
  const CompactProblem compact(problem);
  std::vector<int32_t> left;
  expect(compact.peak_of(order, left) == peak, "the compact form equals simulate()");
  const std::vector<int32_t> turned(order.rbegin(), order.rend());
  const OrderProblem backward = reversed(problem);
  expect(Slow(backward).is_legal(wide(turned)), "an order turned around is legal backwards");
  expect(simulate(backward, turned).peak_bytes == Slow(backward).peak(turned), "simulate() runs backwards");
  expect(problem.in_place.size() > 0 || simulate(backward, turned).peak_bytes == peak, "and finds the same peak");
  const std::vector<int64_t> bounds = op_bounds(problem);
  for (size_t step = 0; step < order.size(); ++step) {
    expect(bounds[order[step]] <= simulation.bytes_at_step[step], "no step is below the bound of its op");
  }
  expect(peak_bound(problem) <= peak, "no peak is below the bound");
  judge_walk(problem, dice);
  judge_moves(compact, dice);
}

void judge_checker(const OrderProblem& problem, Dice& dice) {
  const Slow slow(problem);
  const std::vector<int32_t> good = random_order(problem, dice);
  const std::vector<InPlace> pairs = simulate(problem, good).in_place;
  std::vector<InPlace> kept;
  for (const InPlace& pair : pairs) {
    if (!dice.one_in(3)) kept.push_back(pair);
  }
  const OrderVerdict all = check_order(problem, wide(good), flat(pairs));
  expect(all.fault == OrderFault::None && all.peak_bytes == slow.peak(good), "the checker finds the same peak");
  int64_t peak = 0;
  uint32_t ran = 0;
  for (const int32_t op : good) {
    std::vector<InPlace> here;
    for (const InPlace& pair : kept) {
      if (pair.op == op) here.push_back(pair);
    }
    peak = std::max(peak, slow.during(ran, op, here));
    ran |= uint32_t{1} << op;
  }
  const OrderVerdict some = check_order(problem, wide(good), flat(kept));
  expect(some.fault == OrderFault::None && some.peak_bytes == peak, "also with fewer pairs");

  std::vector<int64_t> bad = wide(good);
  for (int32_t i = dice.upto(2); i >= 0 && !bad.empty(); --i) {
    const auto last = static_cast<int64_t>(bad.size()) - 1;
    if (dice.one_in(2)) std::swap(bad[dice.upto(last)], bad[dice.upto(last)]);
    else if (dice.one_in(3)) bad.pop_back();
    else bad[dice.upto(last)] = dice.pick<int64_t>({-1, 0, 1, problem.n_ops, INT64_MIN, INT64_MAX, 1ll << 32});
  }
  const bool is_legal = static_cast<int32_t>(bad.size()) == problem.n_ops && slow.is_legal(bad);
  expect((check_order(problem, bad, {}).fault == OrderFault::None) == is_legal, "illegal orders are found");

  std::vector<InPlace> wrong = pairs;
  for (int32_t i = dice.upto(2); i >= 0 && problem.n_ops > 0 && problem.n_storages > 0; --i) {
    if (!problem.in_place.empty() && !dice.one_in(4)) wrong.push_back(dice.pick(problem.in_place));
    else wrong.push_back({dice.upto(problem.n_ops - 1), dice.upto(problem.n_storages), dice.upto(problem.n_storages)});
  }
  bool are_legal = true;
  for (size_t i = 0; i < wrong.size(); ++i) {
    const InPlace& pair = wrong[i];
    uint32_t before = 0;
    for (const int32_t op : good) {
      if (op == pair.op) break;
      before |= uint32_t{1} << op;
    }
    const auto is_same = [&](const InPlace& a) { return a.op == pair.op && a.in == pair.in && a.out == pair.out; };
    are_legal = are_legal && std::any_of(problem.in_place.begin(), problem.in_place.end(), is_same) &&
                slow.meets(before, pair) && std::none_of(wrong.begin(), wrong.begin() + i, [&](const InPlace& a) {
                  return a.in == pair.in || a.out == pair.out;
                });
  }
  const OrderVerdict verdict = check_order(problem, wide(good), flat(wrong));
  expect((verdict.fault == OrderFault::None) == are_legal, "illegal pairs are found");
}

void judge_offset_checker(Dice& dice) {
  std::vector<Buffer> buffers;
  const int64_t scale = dice.one_in(4) ? int64_t{1} << 59 : 1;
  for (int32_t i = dice.upto(4); i > 0; --i) {
    const int64_t first = dice.upto(3) - dice.upto(1);
    buffers.push_back({first, first + dice.upto(3) - dice.one_in(9), scale * (1 + dice.upto(3)) - dice.one_in(9),
                       scale * dice.upto(8) - dice.one_in(9)});
    if (dice.one_in(20)) buffers.back().offset = INT64_MAX - dice.upto(3);
    if (dice.one_in(20)) buffers.back().bytes = INT64_MAX - dice.upto(3);
  }
  const int64_t alignment = 1 + dice.upto(2);
  const int64_t arena = dice.one_in(9) ? INT64_MAX - dice.upto(1) : scale * dice.upto(12);
  const auto end_of = [](const Buffer& a) { return static_cast<uint64_t>(a.offset) + static_cast<uint64_t>(a.bytes); };
  bool is_legal = std::all_of(buffers.begin(), buffers.end(), [&](const Buffer& a) {
    return a.bytes > 0 && a.first_step <= a.last_step && a.offset >= 0 && a.offset % alignment == 0 &&
           end_of(a) <= static_cast<uint64_t>(arena);
  });
  for (size_t i = 0; i < buffers.size() && is_legal; ++i) {
    for (size_t j = 0; j < i; ++j) {
      const Buffer &a = buffers[i], &b = buffers[j];
      const bool is_apart =
          end_of(a) <= static_cast<uint64_t>(b.offset) || end_of(b) <= static_cast<uint64_t>(a.offset);
      for (int64_t step = a.first_step; step <= a.last_step; ++step) {
        is_legal = is_legal && (is_apart || step < b.first_step || step > b.last_step);
      }
    }
  }
  expect((check_offsets(buffers, arena, alignment).fault == OffsetFault::None) == is_legal, "wrong offsets are found");
}

}  // namespace regal::fuzz
