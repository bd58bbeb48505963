#include "threads.h"

#include <algorithm>

namespace regal {

Workers::Workers(int count) {
  for (int worker = 1; worker < count; ++worker) {
    threads_.emplace_back([this, worker] { wait_for_batches(worker); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    is_closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

int64_t Workers::run(int64_t tasks, const Task& task) {
  task_ = &task;
  tasks_ = tasks;
  next_ = 0;
  refused_ = tasks;
  if (threads_.empty()) {
    work(0);
    return refused_;
  }
  {
    const std::lock_guard lock(mutex_);
    busy_ = static_cast<int>(threads_.size());
    ++batch_;
  }
  changed_.notify_all();
  work(0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
  return refused_;
}

void Workers::wait_for_batches(int worker) {
  int64_t seen = 0;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_closing_ || batch_ != seen; });
      if (is_closing_) return;
      seen = batch_;
    }
    work(worker);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) changed_.notify_all();
  }
}

// Numbers are handed out in sequence. Those below the lowest refused one were all handed out
// and not refused, so they are done when every worker has returned.
void Workers::work(int worker) {
  while (true) {
    const int64_t task = next_.fetch_add(1);
    if (task >= std::min<int64_t>(tasks_, refused_.load())) return;
    if ((*task_)(task, worker)) continue;
    int64_t lowest = refused_.load();
    while (task < lowest && !refused_.compare_exchange_weak(lowest, task)) {
    }
    return;
  }
}

}  // namespace regal
