#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "bindings.h"

// Runs a search on a thread of its own, while this one lets Python handle signals: Ctrl-C then
// ends the search with the best plan so far instead of losing it.
template <typename Result, typename Search>
std::pair<Result, bool> run_interruptible(Cancel& cancel, const Search& search) {
  Result result;
  bool is_done = false;
  bool was_interrupted = false;
  std::optional<nb::python_error> failure;  // of a signal handler
  std::mutex mutex;
  std::condition_variable finished;
  nb::gil_scoped_release unlocked;
  std::exception_ptr out_of_memory;
  std::thread runner([&] {
    Result own;
    try {
      own = search(cancel.is_set);
    } catch (const std::bad_alloc&) {
      out_of_memory = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    result = std::move(own);
    is_done = true;
    finished.notify_all();
  });
  std::unique_lock lock(mutex);
  while (!finished.wait_for(lock, std::chrono::milliseconds(20), [&] { return is_done; })) {
    lock.unlock();
    {
      nb::gil_scoped_acquire locked;
      if (PyErr_CheckSignals() != 0) {
        if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
          PyErr_Clear();
        } else {
          failure.emplace();
        }
        was_interrupted = true;
        cancel.is_set = true;
      }
    }
    lock.lock();
  }
  lock.unlock();
  runner.join();
  if (out_of_memory) std::rethrow_exception(out_of_memory);
  if (failure) throw *failure;
  return {std::move(result), was_interrupted};
}
