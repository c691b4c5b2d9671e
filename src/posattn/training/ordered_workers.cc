#include "posattn/training/ordered_workers.h"

#include <algorithm>

namespace posattn {

OrderedWorkers::OrderedWorkers(std::size_t workers, std::size_t lanes, std::size_t most_waiting)
    : most_waiting_(std::max<std::size_t>(1, most_waiting)), waiting_(lanes), busy_(lanes) {
  for (std::size_t worker = 0; worker < std::max<std::size_t>(1, workers); ++worker) {
    threads_.emplace_back([this](const std::stop_token& ending) { work(ending); });
  }
}

void OrderedWorkers::add(std::size_t lane, Task task) {
  std::unique_lock lock(mutex_);
  space_.wait(lock, [this] { return count_ < most_waiting_; });
  waiting_[lane].push_back(std::move(task));
  ++count_;
  if (busy_[lane] || waiting_[lane].size() > 1) return;  // its turn comes after the one before
  ready_.push_back(lane);
  work_.notify_one();
}

void OrderedWorkers::work(const std::stop_token& ending) {
  std::unique_lock lock(mutex_);
  for (;;) {
    // A lane that is busy becomes ready again through the worker that has it.
    if (!work_.wait(lock, ending, [this] { return !ready_.empty(); })) return;
    const std::size_t lane = ready_.front();
    ready_.pop_front();
    const Task task = std::move(waiting_[lane].front());
    waiting_[lane].pop_front();
    --count_;
    busy_[lane] = true;
    lock.unlock();
    space_.notify_one();
    task();
    lock.lock();
    busy_[lane] = false;
    if (waiting_[lane].empty()) continue;
    ready_.push_back(lane);
    work_.notify_one();
  }
}

}  // namespace posattn
