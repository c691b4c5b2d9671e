// Loops on several threads; without OpenMP on one.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "posattn/base/watch.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace posattn {

// The calling thread's place among those of the parallel region, from 0.
inline int thread_index() {
#ifdef _OPENMP
  return omp_get_thread_num();
#else
  return 0;
#endif
}

// body(0) .. body(count - 1) on `threads` threads, the next free one taking the next. An exception
// must not leave a parallel region: the first one is thrown again behind it, and what had not begun
// is left out. The caller's watch may end the loop in the same way.
template <class Body>
void parallel_for(int64_t count, [[maybe_unused]] int threads, const Body& body) {
  std::exception_ptr problem;
  std::atomic<bool> failed = false;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t i = 0; i < count; ++i) {
    if (failed.load(std::memory_order_relaxed)) continue;
    try {
      Watch::look();
      body(i);
    } catch (...) {
#pragma omp critical(posattn_parallel_for)
      if (!problem) problem = std::current_exception();
      failed = true;
    }
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace posattn
