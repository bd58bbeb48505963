#include "device_compact.h"

#include <algorithm>
#include <array>

#include "heuristics.h"

namespace regal {
namespace {

// Each is the best on some of the training graphs.
constexpr std::array kClassics{Classic::Safe, Classic::DfsLarge, Classic::DfsSmall, Classic::Dfs, Classic::XlaDfs,
                               Classic::FileOrder};

// Whether sending the tensor takes at least the latency of a control edge on every link.
bool covers_latency(const DeviceProblem& problem, int32_t tensor) {
  const int32_t devices = problem.n_devices;
  for (int32_t a = 0; a < devices; ++a) {
    for (int32_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      if (problem.transfer_of(tensor, a, b) < problem.latency[a * devices + b]) return false;
    }
  }
  return true;
}

bool is_implied(const DeviceProblem& problem, int32_t earlier, int32_t later) {
  return std::ranges::any_of(problem.reads[later], [&](int32_t t) {
    return problem.producer[t] == earlier && covers_latency(problem, t);
  });
}

void append_storages(const DeviceProblem& problem, std::span<const int32_t> tensors,
                     std::vector<int32_t>& storages) {
  for (const int32_t t : tensors) {
    if (problem.storage[t] >= 0) storages.push_back(problem.storage[t]);
  }
}

void append_sorted(std::vector<int32_t>& row, std::vector<int32_t>& rows) {
  std::ranges::sort(row);
  row.erase(std::unique(row.begin(), row.end()), row.end());
  rows.insert(rows.end(), row.begin(), row.end());
}

}  // namespace

CompactDevices::CompactDevices(const DeviceProblem& problem, std::span<const int32_t> given)
    : source(&problem),
      n_ops_(problem.n_ops),
      n_devices_(problem.n_devices),
      n_tensors_(problem.n_tensors) {
  fill_rows();
  fill_times();
  fill_relatives();
  fill_memory();
  fill_one_device(given);
}

void CompactDevices::fill_rows() {
  const DeviceProblem& p = *source;
  const auto append = [](std::span<const int32_t> row, std::vector<int32_t>& rows) {
    rows.insert(rows.end(), row.begin(), row.end());
  };
  const auto mark = [&] {
    const auto size = [](const std::vector<int32_t>& rows) { return static_cast<int32_t>(rows.size()); };
    rows_.push_back({size(reads_), size(controls_), size(successors_), size(writes_), size(touches_),
                     size(begins_)});
  };
  std::vector<int32_t> row;
  std::vector<std::pair<int32_t, int32_t>> controlled_pairs;
  for (int32_t v = 0; v < n_ops_; ++v) {
    mark();
    append(p.reads[v], reads_);
    for (const int32_t u : p.control[v]) {
      if (is_implied(p, u, v)) continue;
      controls_.push_back(u);
      controlled_pairs.emplace_back(u, v);
    }
    append(p.successors[v], successors_);
    append(p.writes[v], writes_);
    row.clear();
    append_storages(p, p.writes[v], row);
    std::vector<int32_t> touched = row;
    append_sorted(row, begins_);
    append_storages(p, p.reads[v], touched);
    append_sorted(touched, touches_);
  }
  mark();
  controlled = csr_of(std::move(controlled_pairs), n_ops_);
  for (int32_t t = 0; t < n_tensors_; ++t) {
    if (p.producer[t] < 0) inputs.push_back(t);
    if (p.is_output[t] && p.storage[t] >= 0) outputs.push_back(t);
  }
  waiting.resize(n_ops_);
  for (int32_t v = 0; v < n_ops_; ++v) {
    waiting[v] = static_cast<int32_t>(p.predecessors[v].size());
    if (waiting[v] == 0) sources.push_back(v);
  }
  topological = sources;
  std::vector<int32_t> left = waiting;
  for (size_t i = 0; i < topological.size(); ++i) {
    for (const int32_t w : successors(topological[i])) {
      if (--left[w] == 0) topological.push_back(w);
    }
  }
}

void CompactDevices::fill_times() {
  const DeviceProblem& p = *source;
  mean_duration.resize(n_ops_);
  for (int32_t v = 0; v < n_ops_; ++v) {
    int64_t total = 0, count = 0;
    for (int32_t d = 0; d < n_devices_; ++d) {
      if (!may_run(v)[d]) continue;
      total += durations(v)[d];
      ++count;
    }
    mean_duration[v] = total / std::max<int64_t>(count, 1);
  }
  mean_transfer.assign(n_tensors_, 0);
  std::vector<int64_t> links(p.n_link_classes, 0);
  int64_t latency = 0;
  const int64_t pairs = static_cast<int64_t>(n_devices_) * (n_devices_ - 1);
  for (size_t i = 0; i < p.link_class.size(); ++i) {
    if (p.link_class[i] >= 0) ++links[p.link_class[i]];
    latency += p.latency[i];
  }
  if (pairs > 0) latency /= pairs;
  for (int32_t t = 0; t < n_tensors_ && pairs > 0; ++t) {
    // A sum over all links may leave int64; each share does not.
    for (int32_t link = 0; link < p.n_link_classes; ++link) {
      const int64_t time = p.transfer[static_cast<int64_t>(link) * n_tensors_ + t];
      mean_transfer[t] += time / pairs * links[link] + time % pairs * links[link] / pairs;
    }
  }
  upward_rank.assign(n_ops_, 0);
  for (auto it = topological.rbegin(); it != topological.rend(); ++it) {
    const int32_t v = *it;
    int64_t longest = 0;
    for (const int32_t t : writes(v)) {
      for (const int32_t w : p.readers[t]) {
        longest = std::max(longest, mean_transfer[t] + upward_rank[w]);
      }
    }
    for (const int32_t w : successors(v)) longest = std::max(longest, upward_rank[w]);
    upward_rank[v] = mean_duration[v] + longest;
  }
}

void CompactDevices::fill_relatives() {
  const DeviceProblem& p = *source;
  heaviest.assign(n_ops_, -1);
  sibling.assign(n_ops_, -1);
  for (int32_t v = 0; v < n_ops_; ++v) {
    int64_t most = -1;
    for (const int32_t t : reads(v)) {
      if (p.producer[t] < 0 || mean_transfer[t] <= most) continue;
      most = mean_transfer[t];
      heaviest[v] = p.producer[t];
    }
  }
  for (int32_t v = 0; v < n_ops_; ++v) {
    int64_t most = -1;
    int32_t reader = -1;
    for (const int32_t t : writes(v)) {
      for (const int32_t w : p.readers[t]) {
        if (mean_transfer[t] <= most) continue;
        most = mean_transfer[t];
        reader = w;
      }
    }
    if (reader < 0) continue;
    most = -1;
    for (const int32_t t : reads(reader)) {
      if (p.producer[t] < 0 || p.producer[t] == v || mean_transfer[t] <= most) continue;
      most = mean_transfer[t];
      sibling[v] = p.producer[t];
    }
  }
}

void CompactDevices::fill_memory() {
  const DeviceProblem& p = *source;
  private_bytes.assign(n_ops_, 0);
  int64_t total = 0, most_workspace = 0;
  for (int32_t r = 0; r < p.n_residents; ++r) {
    total += p.resident_bytes[r];
    if (p.resident_users[r].size() == 1) private_bytes[p.resident_users[r][0]] += p.resident_bytes[r];
  }
  if (p.capacity_counts_live) {
    for (const int64_t bytes : p.bytes) total += bytes;
    for (const int64_t bytes : p.workspace) most_workspace = std::max(most_workspace, bytes);
  }
  for (const int64_t capacity : p.capacity) capacity_may_bind |= total + most_workspace > capacity;
}

void CompactDevices::fill_one_device(std::span<const int32_t> given) {
  const DeviceProblem& p = *source;
  std::vector<int64_t> edges, touched, present, kept, pairs;
  for (int32_t v = 0; v < n_ops_; ++v) {
    for (const int32_t u : p.predecessors[v]) edges.insert(edges.end(), {u, v});
    for (const int32_t s : touches(v)) touched.insert(touched.end(), {v, s});
  }
  for (const int32_t t : inputs) {
    if (p.storage[t] >= 0) present.push_back(p.storage[t]);
  }
  for (const int32_t t : outputs) kept.push_back(p.storage[t]);
  for (const InPlace& pair : p.in_place) pairs.insert(pairs.end(), {pair.op, pair.in, pair.out});
  // What is a legal problem on several devices is one here.
  build_problem({edges, touched, p.bytes, p.workspace, present, kept, pairs}, order_problem_);
  one_device_ = std::make_unique<CompactProblem>(order_problem_);
  reference.assign(given.begin(), given.end());
  if (!reference.empty() || n_ops_ == 0) return;
  int64_t least = -1;
  std::vector<int32_t> left;
  for (const Classic classic : kClassics) {
    std::vector<int32_t> order = classic_order(order_problem_, classic);
    const int64_t peak = one_device_->peak_of(order, left);
    if (least >= 0 && peak >= least) continue;
    least = peak;
    reference = std::move(order);
  }
}

}  // namespace regal
