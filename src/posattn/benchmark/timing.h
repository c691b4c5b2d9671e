// Timing for benchmarks: medians of repeated measurements with their spread, and the machine's
// peak.
#pragma once

#include <functional>

namespace posattn {

struct Timing {
  double median = 0, lower_quartile = 0, upper_quartile = 0;  // seconds
  int repetitions = 0;
};

// Runs `action` a few times unmeasured, then `repetitions` times (more when `seconds` is not over).
Timing time_repeated(const std::function<void()>& action, int repetitions, double seconds);

// Fused multiply-adds in all threads at once for about `seconds`: GFLOP/s.
double measure_peak_gflops(int threads, double seconds);

// The most memory this process has held so far, in bytes.
double peak_memory_bytes();

}  // namespace posattn
