// The one place where the functions of playground.h leave what they have to tell, and how errors
// become a text there.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/base/error.h"

namespace posattn::playground {

struct Answer {
  std::string text;
  std::vector<double> numbers;
};
Answer& answer();

// -1, with the error that is being caught as the text.
int32_t failure();

// body() with an empty answer to fill; what it throws becomes the answer.
template <class Body>
int32_t answered(const Body& body) {
  answer() = {};
  try {
    return body();
  } catch (...) {
    return failure();
  }
}

// Things that a page holds by number.
template <class T>
class Handles {
 public:
  explicit Handles(const char* noun) : noun_(noun) {}

  int32_t add(std::unique_ptr<T> item) {
    for (size_t i = 0; i < items_.size(); ++i) {
      if (items_[i]) continue;
      items_[i] = std::move(item);
      return static_cast<int32_t>(i);
    }
    items_.push_back(std::move(item));
    return static_cast<int32_t>(items_.size()) - 1;
  }

  T& at(int32_t handle) {
    if (handle < 0 || static_cast<size_t>(handle) >= items_.size() || !items_[handle]) {
      throw Error(ExitCode::usage, "no " + std::string(noun_) + " " + std::to_string(handle),
                  "a handle that is in use");
    }
    return *items_[handle];
  }

  void remove(int32_t handle) {
    if (handle >= 0 && static_cast<size_t>(handle) < items_.size()) items_[handle].reset();
  }

 private:
  const char* noun_;
  std::vector<std::unique_ptr<T>> items_;
};

}  // namespace posattn::playground
