#pragma once
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

namespace regal {

// Static memory allocation: every buffer has a lifetime and a size, and gets one byte offset.
//
// Conventions, stated once. Steps are inclusive. Bytes are half-open. A *section* is a maximal
// set of buffers that are live together; sections are numbered in time order and every buffer
// covers one or more runs [begin, end) of them (several when it has gaps). Two buffers meet if
// they share a section; then their bytes must be disjoint.

struct SectionRun {
  int32_t begin;
  int32_t end;
};

inline constexpr int64_t kFree = -1;  // no fixed offset, no hint, not placed

struct OffsetProblem {
  int32_t n = 0;
  int32_t n_sections = 0;
  std::vector<int64_t> bytes;       // per buffer, > 0
  std::vector<int64_t> padded;      // bytes rounded up to what divides every alignment
  std::vector<int64_t> alignment;   // per buffer, >= 1
  std::vector<int64_t> width;       // per buffer: steps of its lifetime, gaps included
  std::vector<int64_t> fixed;       // per buffer: its required offset, or kFree
  std::vector<int64_t> hint;        // per buffer: a wish that orders the first try, or kFree
  std::vector<uint8_t> is_reserved; // per buffer: a forbidden byte range, does not count as arena
  std::vector<int64_t> run_start;   // buffer -> its runs, flat
  std::vector<SectionRun> runs;     // ascending per buffer, disjoint
  std::vector<int64_t> section_step;  // a step at which the section's buffers are all live
  int64_t unit = 1;       // divides every offset of a pushed-down solution
  int64_t pad_slack = 0;  // sums of `padded` may pass the capacity by this much
  int64_t lower_bound = 0;  // proven: no placement ends lower
  int32_t first_clashing = -1;  // two fixed buffers that overlap; then nothing is possible
  int32_t second_clashing = -1;

  bool has_clash() const { return first_clashing >= 0; }
  std::span<const SectionRun> runs_of(int64_t buffer) const {
    return {runs.data() + run_start[buffer],
            static_cast<size_t>(run_start[buffer + 1] - run_start[buffer])};
  }
  int32_t first_section(int64_t buffer) const { return runs[run_start[buffer]].begin; }
  int32_t end_section(int64_t buffer) const { return runs[run_start[buffer + 1] - 1].end; }
};

// Where a buffer is inactive: steps [first, last], both included.
struct OffsetGap {
  int32_t buffer;
  int64_t first_step;
  int64_t last_step;
};

struct OffsetInput {
  std::span<const int64_t> first_step;
  std::span<const int64_t> last_step;
  std::span<const int64_t> bytes;
  std::span<const int64_t> alignment;
  std::span<const int64_t> fixed;
  std::span<const int64_t> hint;
  std::span<const int64_t> gaps;      // (g, 3): buffer, first step, last step
  std::span<const int64_t> reserved;  // (r, 2): forbidden bytes [low, high) at all steps
};

enum class OffsetInputFault { None, BadLength, Empty, Inverted, BadAlignment, BadOffset, BadGap, TooLarge };

struct OffsetInputVerdict {
  OffsetInputFault fault = OffsetInputFault::None;
  int64_t guilty = -1;
};

enum class OffsetStatus {
  Optimal,     // proven: no placement ends lower (or, given a capacity, it fits)
  Infeasible,  // proven: nothing fits into the capacity
  Limit,       // the search stopped first; offsets, if there are any, are legal
};

struct OffsetResult {
  OffsetStatus status = OffsetStatus::Limit;
  std::vector<int64_t> offsets;  // empty when no placement fits the capacity
  int64_t arena_bytes = 0;       // max of offset + bytes
  int64_t lower_bound = 0;       // proven: no placement ends lower
  int64_t fullest_step = 0;      // a step with the most live bytes
  int64_t fullest_bytes = 0;     // the live bytes there
  int64_t nodes = 0;             // search nodes and placed orders; the measure of the budget
};

// When to stop. `nodes` is deterministic, the other two are not.
struct OffsetLimits {
  int64_t nodes = 0;
  double seconds = 0;                        // 0: no limit
  const std::atomic<bool>* cancel = nullptr; // may be null
};

// Every trick of the tree search; each can be switched off, the answer stays the same.
struct TreeOptions {
  bool decompose = true;     // solve parts that no unplaced buffer connects one by one
  bool raise_floors = true;  // a section starts at its lowest unplaced buffer
  bool skip_twins = true;    // equal buffers are interchangeable
  bool must_block = true;    // a buffer lies higher than it fits only if something blocks it
  // Buffers of equal lifetime that touch are interchangeable: good for proofs, but the first
  // placement is found later, since the many equal ones are no longer all allowed.
  bool order_stacks = false;
  bool not_first = false;  // what cannot be the lowest of a section lies on another: fewer, slower nodes
};

}  // namespace regal
