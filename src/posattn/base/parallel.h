// Loops on several threads.
#pragma once

#include <cstdint>
#include <exception>

namespace posattn {

// body(0) .. body(count - 1) on `threads` threads, the next free one taking the next. An exception
// must not leave a parallel region: the first one is thrown again behind it.
template <class Body>
void parallel_for(int64_t count, int threads, const Body& body) {
  std::exception_ptr problem;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t i = 0; i < count; ++i) {
    try {
      body(i);
    } catch (...) {
#pragma omp critical(posattn_parallel_for)
      if (!problem) problem = std::current_exception();
    }
  }
  if (problem) std::rethrow_exception(problem);
}

}  // namespace posattn
