#include "fusion_problem.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

namespace regal {
namespace {

// Sums of all times, and of all sizes with a copy of every tensor, stay below this; with D devices
// below the 4 D-th part, since a problem of several devices counts them per device.
constexpr int64_t kMost = int64_t{1} << 61;

using Pairs = std::vector<std::pair<int32_t, int32_t>>;

class Builder {
 public:
  Builder(const FusionInput& input, FusionProblem& problem) : in_(input), p_(problem) {}

  FusionVerdict run() {
    p_ = {};
    if (!fits()) return {FusionFault::BadRow, -1};
    p_.n_ops = static_cast<int32_t>(in_.workspace.size());
    p_.n_tensors = static_cast<int32_t>(in_.producers.size());
    p_.n_storages = static_cast<int32_t>(in_.bytes.size());
    p_.n_devices = static_cast<int32_t>(in_.n_devices);
    most_ = p_.n_devices == 1 ? kMost : kMost / (4 * p_.n_devices);
    p_.most_ops = static_cast<int32_t>(std::clamp<int64_t>(in_.most_ops, 1, INT32_MAX));
    if (!read_tensors() || !read_edges() || !read_ops() || !read_in_place()) return verdict_;
    if (!check_sizes() || !read_times() || !sort_ops()) return verdict_;
    return {};
  }

 private:
  bool fail(FusionFault fault, size_t guilty) {
    verdict_ = {fault, static_cast<int64_t>(guilty)};
    return false;
  }
  static bool is_within(int64_t value, int64_t lowest, int64_t end) {
    return value >= lowest && value < end;
  }

  bool fits() const {
    const size_t n = in_.workspace.size(), t = in_.producers.size();
    if (in_.n_devices < 1 || in_.n_devices > 256 || n > (size_t{1} << 30) || t > (size_t{1} << 30)) return false;
    const auto d = static_cast<size_t>(in_.n_devices);
    for (const auto* row : {&in_.view_of, &in_.has_layouts, &in_.output_layouts, &in_.storages, &in_.tensor_bytes}) {
      if (row->size() != t) return false;
    }
    for (const auto* table : {&in_.read, &in_.write, &in_.convert}) {
      if (table->size() != t * d) return false;
    }
    return in_.rules.size() == n && in_.alone.size() == n * d * kLayouts &&
           in_.work.size() == n * d * kLayouts && in_.launch.size() == d && in_.bytes.size() < (size_t{1} << 30);
  }

  bool read_tensors() {
    for (size_t t = 0; t < in_.producers.size(); ++t) {
      const int64_t tensors = p_.n_tensors;
      if (!is_within(in_.producers[t], -1, p_.n_ops) || !is_within(in_.view_of[t], -1, tensors) ||
          !is_within(in_.has_layouts[t], 0, 2) || !is_within(in_.output_layouts[t], kNoOutput, kLayouts) ||
          !is_within(in_.storages[t], -1, p_.n_storages)) {
        return fail(FusionFault::BadIndex, t);
      }
      p_.producer.push_back(static_cast<int32_t>(in_.producers[t]));
      p_.view_of.push_back(static_cast<int32_t>(in_.view_of[t]));
      p_.has_layouts.push_back(static_cast<uint8_t>(in_.has_layouts[t]));
      p_.output_layout.push_back(static_cast<int8_t>(in_.output_layouts[t]));
      p_.storage.push_back(static_cast<int32_t>(in_.storages[t]));
      // A view shows a tensor that its own op reads; a copy of one without layouts does not exist.
      if (p_.view_of[t] >= 0 && p_.producer[t] < 0) return fail(FusionFault::BadRow, t);
    }
    p_.tensor_bytes.assign(in_.tensor_bytes.begin(), in_.tensor_bytes.end());
    p_.bytes.assign(in_.bytes.begin(), in_.bytes.end());
    p_.workspace.assign(in_.workspace.begin(), in_.workspace.end());
    p_.is_input.assign(in_.bytes.size(), 0);
    for (size_t i = 0; i < in_.input_storages.size(); ++i) {
      if (!is_within(in_.input_storages[i], 0, p_.n_storages)) return fail(FusionFault::BadIndex, i);
      p_.is_input[in_.input_storages[i]] = 1;
    }
    return true;
  }

  bool read_pairs(std::span<const int64_t> flat, int64_t rows, int64_t columns, Pairs& pairs) {
    for (size_t i = 0; i + 1 < flat.size(); i += 2) {
      if (!is_within(flat[i], 0, rows) || !is_within(flat[i + 1], 0, columns)) {
        return fail(FusionFault::BadIndex, i / 2);
      }
      pairs.emplace_back(static_cast<int32_t>(flat[i]), static_cast<int32_t>(flat[i + 1]));
    }
    return true;
  }

  bool read_edges() {
    Pairs edges, reads, fusible;
    if (!read_pairs(in_.edges, p_.n_ops, p_.n_ops, edges) || !read_pairs(in_.reads, p_.n_ops, p_.n_tensors, reads) ||
        !read_pairs(in_.pairs, p_.n_ops, p_.n_ops, fusible)) {
      return false;
    }
    Pairs writes, readers, consumers;
    for (int32_t t = 0; t < p_.n_tensors; ++t) {
      if (p_.producer[t] >= 0) writes.emplace_back(p_.producer[t], t);
    }
    for (const auto& [op, tensor] : reads) {
      readers.emplace_back(tensor, op);
      if (p_.producer[tensor] < 0) continue;
      consumers.emplace_back(p_.producer[tensor], op);
      edges.emplace_back(p_.producer[tensor], op);
    }
    Pairs back;
    for (const auto& [a, b] : edges) back.emplace_back(b, a);
    p_.reads = csr_of(std::move(reads), p_.n_ops);
    p_.writes = csr_of(std::move(writes), p_.n_ops);
    p_.readers = csr_of(std::move(readers), p_.n_tensors);
    p_.consumers = csr_of(std::move(consumers), p_.n_ops);
    p_.predecessors = csr_of(std::move(back), p_.n_ops);
    p_.successors = csr_of(std::move(edges), p_.n_ops);
    for (size_t i = 0; i < fusible.size(); ++i) {
      const auto row = p_.consumers[fusible[i].first];
      if (!std::binary_search(row.begin(), row.end(), fusible[i].second)) return fail(FusionFault::BadRow, i);
    }
    p_.fusible = csr_of(std::move(fusible), p_.n_ops);
    for (int32_t t = 0; t < p_.n_tensors; ++t) {
      if (p_.view_of[t] < 0) continue;
      const auto row = p_.reads[p_.producer[t]];
      if (!std::binary_search(row.begin(), row.end(), p_.view_of[t])) return fail(FusionFault::BadRow, t);
    }
    return true;
  }

  bool mark(std::span<const int64_t> ops, std::vector<uint8_t>& flags) {
    flags.assign(p_.n_ops, 0);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (!is_within(ops[i], 0, p_.n_ops)) return fail(FusionFault::BadIndex, i);
      flags[ops[i]] = 1;
    }
    return true;
  }

  bool read_ops() {
    if (!mark(in_.anchors, p_.is_anchor) || !mark(in_.apart, p_.is_apart)) return false;
    for (int32_t v = 0; v < p_.n_ops; ++v) {
      if (!is_within(in_.rules[v], 0, 3)) return fail(FusionFault::BadIndex, v);
      p_.rule.push_back(static_cast<LayoutRule>(in_.rules[v]));
      const auto writes = p_.writes[v];
      const auto has_layouts = [&](int32_t t) { return p_.has_layouts[t] != 0; };
      p_.is_view.push_back(!writes.empty() && std::all_of(writes.begin(), writes.end(), [&](int32_t t) {
        return p_.view_of[t] >= 0;
      }));
      p_.is_free.push_back(p_.rule[v] == LayoutRule::Agnostic &&
                           std::none_of(writes.begin(), writes.end(), has_layouts) &&
                           std::none_of(p_.reads[v].begin(), p_.reads[v].end(), has_layouts));
    }
    return true;
  }

  bool read_in_place() {
    for (size_t i = 0; i + 2 < in_.in_place.size(); i += 3) {
      const int64_t op = in_.in_place[i], a = in_.in_place[i + 1], b = in_.in_place[i + 2];
      if (!is_within(op, 0, p_.n_ops) || !is_within(a, 0, p_.n_tensors) || !is_within(b, 0, p_.n_tensors)) {
        return fail(FusionFault::BadIndex, i / 3);
      }
      const auto reads = p_.reads[op];
      if (p_.producer[b] != op || p_.storage[a] < 0 || p_.storage[b] < 0 ||
          !std::binary_search(reads.begin(), reads.end(), static_cast<int32_t>(a))) {
        return fail(FusionFault::BadRow, i / 3);
      }
      p_.in_place.push_back({static_cast<int32_t>(op), static_cast<int32_t>(a), static_cast<int32_t>(b)});
    }
    std::stable_sort(p_.in_place.begin(), p_.in_place.end(),
                     [](const InPlace& a, const InPlace& b) { return a.op < b.op; });
    p_.in_place_of.assign(p_.n_ops + 1, 0);
    for (const InPlace& pair : p_.in_place) ++p_.in_place_of[pair.op + 1];
    for (int32_t v = 0; v < p_.n_ops; ++v) p_.in_place_of[v + 1] += p_.in_place_of[v];
    return true;
  }

  bool check_sizes() {
    int64_t total = 0;
    for (const auto* sizes : {&p_.bytes, &p_.workspace, &p_.tensor_bytes}) {
      for (size_t i = 0; i < sizes->size(); ++i) {
        if ((*sizes)[i] < 0) return fail(FusionFault::NegativeSize, i);
        if ((*sizes)[i] > most_ - total) return fail(FusionFault::TooLarge, i);
        total += (*sizes)[i];
      }
    }
    return true;
  }

  bool add_time(int64_t time, size_t guilty) {
    if (time < 0) return fail(FusionFault::BadTime, guilty);
    if (time > most_ - time_) return fail(FusionFault::TooLarge, guilty);
    time_ += time;
    return true;
  }

  bool read_times() {
    const auto d = static_cast<size_t>(p_.n_devices);
    p_.launch.assign(in_.launch.begin(), in_.launch.end());
    for (const int64_t time : in_.launch) {
      // Every op may be a kernel.
      if (time < 0 || time > most_ / (p_.n_ops + 1)) return fail(FusionFault::BadTime, 0);
      if (!add_time(time * p_.n_ops, 0)) return false;
    }
    for (size_t i = 0; i < in_.alone.size() / kLayouts; ++i) {
      const bool is_allowed = in_.alone[2 * i] != kForbidden;
      for (size_t l = 2 * i; l < 2 * i + 2 && is_allowed; ++l) {
        if (!add_time(in_.alone[l], i / d) || !add_time(in_.work[l], i / d)) return false;
      }
      const int64_t none = kForbidden;
      p_.alone.push_back({in_.alone[2 * i], is_allowed ? in_.alone[2 * i + 1] : none});
      p_.work.push_back({is_allowed ? in_.work[2 * i] : none, is_allowed ? in_.work[2 * i + 1] : none});
    }
    for (int32_t v = 0; v < p_.n_ops; ++v) {
      const auto first = p_.alone.begin() + static_cast<int64_t>(p_.at(v, 0));
      if (std::all_of(first, first + p_.n_devices, [](const auto& row) { return row[0] == kForbidden; })) {
        return fail(FusionFault::BadTime, v);
      }
    }
    for (const auto* table : {&in_.read, &in_.write, &in_.convert}) {
      for (size_t i = 0; i < table->size(); ++i) {
        // A tensor is read once per reader at most.
        const int64_t uses = static_cast<int64_t>(p_.readers[static_cast<int64_t>(i / d)].size()) + 1;
        if ((*table)[i] < 0) return fail(FusionFault::BadTime, i / d);
        if ((*table)[i] > most_ / uses) return fail(FusionFault::TooLarge, i / d);
        if (!add_time((*table)[i] * uses, i / d)) return false;
      }
    }
    p_.read.assign(in_.read.begin(), in_.read.end());
    p_.write.assign(in_.write.begin(), in_.write.end());
    p_.convert.assign(in_.convert.begin(), in_.convert.end());
    return true;
  }

  bool sort_ops() {
    std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> ready;
    std::vector<int32_t> waiting(p_.n_ops);
    for (int32_t v = 0; v < p_.n_ops; ++v) {
      waiting[v] = static_cast<int32_t>(p_.predecessors[v].size());
      if (waiting[v] == 0) ready.push(v);
    }
    while (!ready.empty()) {
      const int32_t v = ready.top();
      ready.pop();
      p_.order.push_back(v);
      for (const int32_t w : p_.successors[v]) {
        if (--waiting[w] == 0) ready.push(w);
      }
    }
    if (static_cast<int32_t>(p_.order.size()) == p_.n_ops) return true;
    const auto stuck = std::find_if(waiting.begin(), waiting.end(), [](int32_t left) { return left > 0; });
    return fail(FusionFault::Cycle, static_cast<size_t>(stuck - waiting.begin()));
  }

  const FusionInput& in_;
  FusionProblem& p_;
  FusionVerdict verdict_;
  int64_t time_ = 0;
  int64_t most_ = kMost;
};

}  // namespace

FusionVerdict build_fusion_problem(const FusionInput& input, FusionProblem& problem) {
  return Builder(input, problem).run();
}

}  // namespace regal
