#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace regal {

// A few threads that wait between batches. The caller is worker 0; one worker needs no thread.
class Workers {
 public:
  // A task gets its number and the worker that runs it; false refuses it and ends the batch.
  using Task = std::function<bool(int64_t task, int worker)>;

  explicit Workers(int count);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int count() const { return static_cast<int>(threads_.size()) + 1; }

  // Runs tasks 0, 1, ... Returns e <= tasks so that exactly the tasks before e are done and
  // count; a few later ones may have run, and are to be ignored.
  int64_t run(int64_t tasks, const Task& task);

 private:
  void wait_for_batches(int worker);
  void work(int worker);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t batch_ = 0;
  int busy_ = 0;
  bool is_closing_ = false;
  const Task* task_ = nullptr;
  int64_t tasks_ = 0;
  std::atomic<int64_t> next_{0};
  std::atomic<int64_t> refused_{0};
};

}  // namespace regal
