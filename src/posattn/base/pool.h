// Objects that calls borrow, so that each call has one to itself. As many are made, and kept, as
// were ever borrowed at the same time.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>
#ifndef __wasm__
#include <mutex>
#endif

namespace posattn {

// A mutex. WebAssembly has one thread and a standard library without mutexes: there it is nothing.
#ifdef __wasm__
struct Mutex {};
struct Lock {
  explicit Lock(Mutex&) {}
};
#else
using Mutex = std::mutex;
using Lock = std::lock_guard<std::mutex>;
#endif

template <class T>
class Pool {
 public:
  struct GiveBack {
    Pool* pool;
    void operator()(T* object) const {
      const Lock lock(pool->mutex_);
      pool->free_.emplace_back(object);  // there is room for all of them, so this does not throw
    }
  };
  using Borrowed = std::unique_ptr<T, GiveBack>;  // goes back when it ends, before the pool does

  // The one that was given back last, else a new T(of...).
  template <class... Of>
  Borrowed borrow(const Of&... of) {
    {
      const Lock lock(mutex_);
      if (!free_.empty()) {
        std::unique_ptr<T> last = std::move(free_.back());
        free_.pop_back();
        return Borrowed(last.release(), {this});
      }
    }
    auto made = std::make_unique<T>(of...);
    const Lock lock(mutex_);
    free_.reserve(made_ + 1);
    ++made_;
    return Borrowed(made.release(), {this});
  }

 private:
  Mutex mutex_;
  std::vector<std::unique_ptr<T>> free_;
  std::size_t made_ = 0;
};

}  // namespace posattn
