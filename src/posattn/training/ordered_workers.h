// A few threads that do tasks of many *lanes*: a lane's tasks one at a time and in order, those of
// different lanes at the same time. The queue is bounded.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace posattn {

class OrderedWorkers {
 public:
  using Task = std::function<void()>;  // may not throw

  // The destructor waits until all tasks are done.
  OrderedWorkers(std::size_t workers, std::size_t lanes, std::size_t most_waiting);

  // Waits while the queue is full.
  void add(std::size_t lane, Task task);

 private:
  void work(const std::stop_token& ending);

  std::size_t most_waiting_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable_any work_;
  std::condition_variable space_;
  std::vector<std::deque<Task>> waiting_;  // by lane
  std::vector<bool> busy_;                 // by lane: a worker has one of its tasks
  std::deque<std::size_t> ready_;          // lanes with a task that may be taken
  std::size_t count_ = 0;                  // of waiting tasks
  std::vector<std::jthread> threads_;      // last: they end first
};

}  // namespace posattn
