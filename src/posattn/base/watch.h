// Long work that a caller may end before its time, as Python does on Ctrl-C.
#pragma once

#include <chrono>
#include <functional>
#include <utility>

namespace posattn {

// While one exists, loops that its thread runs ask now and then whether to go on. To end the work,
// `ask` throws what the caller wants to see.
class Watch {
 public:
  using Ask = std::function<void()>;

  explicit Watch(Ask ask) : ask_(std::move(ask)), outer_(current_) { current_ = this; }
  ~Watch() { current_ = outer_; }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Loops that may run for seconds call this in every iteration. Without a watch it does nothing.
  static void look() {
    if (current_ != nullptr) current_->ask_if_due();
  }

 private:
  using Clock = std::chrono::steady_clock;

  void ask_if_due() {
    const Clock::time_point now = Clock::now();
    if (now < due_) return;
    if (due_ != Clock::time_point{}) ask_();
    due_ = now + std::chrono::milliseconds(100);
  }

  Ask ask_;
  Watch* outer_;
  Clock::time_point due_;  // set when somebody looks first
  static inline thread_local Watch* current_ = nullptr;
};

}  // namespace posattn
