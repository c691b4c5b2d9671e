// A mutex. WebAssembly has one thread and a standard library without mutexes: there it is nothing.
#pragma once

#ifndef __wasm__
#include <mutex>
#endif

namespace posattn {

#ifdef __wasm__
struct Mutex {};
struct Lock {
  explicit Lock(Mutex&) {}
};
#else
using Mutex = std::mutex;
using Lock = std::lock_guard<std::mutex>;
#endif

}  // namespace posattn
