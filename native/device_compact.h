#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compact.h"
#include "device_problem.h"

namespace regal {

// A DeviceProblem as the hot loops read it: rows of one op lie side by side, and what holds in
// every schedule is computed once. It refers to the problem, which must outlive it.
class CompactDevices {
 public:
  // `reference`: a legal order of few bytes on one device; none given: the best classic one.
  explicit CompactDevices(const DeviceProblem& problem, std::span<const int32_t> reference = {});
  CompactDevices(const CompactDevices&) = delete;
  CompactDevices& operator=(const CompactDevices&) = delete;

  // Where the rows of an op begin; they end where those of the next op begin.
  struct OpRow {
    int32_t reads;
    int32_t controls;
    int32_t successors;
    int32_t writes;
    int32_t touches;
    int32_t begins;
  };

  int32_t n_ops() const { return n_ops_; }
  int32_t n_devices() const { return n_devices_; }
  int32_t n_tensors() const { return n_tensors_; }
  // The same graph, all on one device.
  const OrderProblem& order_problem() const { return order_problem_; }
  const CompactProblem& one_device() const { return *one_device_; }

  std::span<const int32_t> reads(int32_t op) const {  // tensors
    return {reads_.data() + rows_[op].reads, reads_.data() + rows_[op + 1].reads};
  }
  // Predecessors over control edges that no tensor read by the op implies.
  std::span<const int32_t> controls(int32_t op) const {
    return {controls_.data() + rows_[op].controls, controls_.data() + rows_[op + 1].controls};
  }
  std::span<const int32_t> successors(int32_t op) const {  // each once, data or control
    return {successors_.data() + rows_[op].successors, successors_.data() + rows_[op + 1].successors};
  }
  std::span<const int32_t> writes(int32_t op) const {  // tensors
    return {writes_.data() + rows_[op].writes, writes_.data() + rows_[op + 1].writes};
  }
  std::span<const int32_t> touches(int32_t op) const {  // storages read or written, each once
    return {touches_.data() + rows_[op].touches, touches_.data() + rows_[op + 1].touches};
  }
  std::span<const int32_t> begins(int32_t op) const {  // storages written, each once
    return {begins_.data() + rows_[op].begins, begins_.data() + rows_[op + 1].begins};
  }
  const int64_t* durations(int32_t op) const {  // per device
    return source->duration.data() + static_cast<int64_t>(op) * n_devices_;
  }
  const uint8_t* may_run(int32_t op) const {  // per device
    return source->may_run.data() + static_cast<int64_t>(source->group[op]) * n_devices_;
  }
  int64_t transfer(int32_t tensor, int32_t source_device, int32_t target) const {
    const int64_t link = source->link_class[static_cast<int64_t>(source_device) * n_devices_ + target];
    return source->transfer[link * n_tensors_ + tensor];
  }

  const DeviceProblem* source;
  Csr controlled;                      // the inverse of controls()
  std::vector<int32_t> waiting;        // per op: its predecessors
  std::vector<int32_t> sources;        // ops without predecessors
  std::vector<int32_t> topological;    // all ops, predecessors first, by lower id
  std::vector<int32_t> inputs;         // tensors that no op makes
  std::vector<int32_t> outputs;        // tensors that stay to the end and take counted memory
  std::vector<int64_t> mean_duration;  // per op, over the devices that may run it
  std::vector<int64_t> mean_transfer;  // per tensor, over all links; 0 with one device
  std::vector<int64_t> upward_rank;    // per op: the longest way to the end, mean times
  std::vector<int32_t> heaviest;       // per op: producer of the read tensor that takes longest to
                                       // send; -1 if it reads none of an op
  std::vector<int32_t> sibling;        // per op: what its heaviest reader needs most besides; or -1
  std::vector<int64_t> private_bytes;  // per op: residents that no other op uses
  std::vector<int32_t> reference;      // a legal order that is good on one device
  bool capacity_may_bind = false;      // else everything fits on each device at once

 private:
  void fill_rows();
  void fill_times();
  void fill_relatives();
  void fill_memory();
  void fill_one_device(std::span<const int32_t> given);

  OrderProblem order_problem_;
  std::unique_ptr<CompactProblem> one_device_;
  int32_t n_ops_;
  int32_t n_devices_;
  int32_t n_tensors_;
  std::vector<OpRow> rows_;  // n + 1
  std::vector<int32_t> reads_;
  std::vector<int32_t> controls_;
  std::vector<int32_t> successors_;
  std::vector<int32_t> writes_;
  std::vector<int32_t> touches_;
  std::vector<int32_t> begins_;
};

}  // namespace regal
