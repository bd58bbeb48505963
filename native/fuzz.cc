// regal_fuzz SECONDS FIRST: runs case FIRST, FIRST + 1, ... for so many seconds. Exit 1 on a finding, which
// names its case; `regal_fuzz 0 CASE` repeats it.
#include "fuzz.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "fuzz_devices.h"
#include "fuzz_fusion.h"

namespace regal::fuzz {
namespace {

uint64_t current = 0;

void say_case() { std::fprintf(stderr, "regal_fuzz: case %llu\n", static_cast<unsigned long long>(current)); }

void run_case(uint64_t number) {
  Dice dice(number);
  Rows rows = legal_rows(dice);
  if (dice.one_in(4)) spoil(rows, dice);
  OrderProblem problem;
  if (judge_rows(rows, problem)) {
    judge_simulation(problem, dice);
    judge_checker(problem, dice);
    judge_searches(problem, dice);
    judge_exact(problem, dice);
  }
  judge_sets(dice);
  judge_offset_checker(dice);
  judge_offsets(dice);
  judge_devices(dice);
  judge_fusion(dice);
}

int run(double seconds, uint64_t first) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  for (current = first;; ++current) {
    run_case(current);
    if (std::chrono::duration<double>(Clock::now() - start).count() >= seconds) break;
  }
  std::printf("%llu cases from %llu on: no finding\n", static_cast<unsigned long long>(current - first + 1),
              static_cast<unsigned long long>(first));
  return 0;
}

}  // namespace

void expect(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "regal_fuzz: not true: %s\n", claim);
  say_case();
  std::exit(1);
}

}  // namespace regal::fuzz

// The sanitizers end with abort(), so that SIGABRT can name the case.
extern "C" const char* __asan_default_options() { return "abort_on_error=1"; }
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: regal_fuzz SECONDS FIRST_CASE\n");
    return 2;
  }
  std::signal(SIGABRT, [](int) { regal::fuzz::say_case(); });
  return regal::fuzz::run(std::atof(argv[1]), std::strtoull(argv[2], nullptr, 10));
}
