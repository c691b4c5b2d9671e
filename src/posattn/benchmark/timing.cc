#include "posattn/benchmark/timing.h"

#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Timing time_repeated(const std::function<void()>& action, int repetitions, double seconds) {
  for (int i = 0; i < 3; ++i) action();
  std::vector<double> times;
  const double begin = now();
  while (static_cast<int>(times.size()) < repetitions || now() - begin < seconds) {
    const double start = now();
    action();
    times.push_back(now() - start);
  }
  std::sort(times.begin(), times.end());
  const size_t n = times.size();
  return {times[n / 2], times[n / 4], times[n - 1 - n / 4], static_cast<int>(n)};
}

double measure_peak_gflops(int threads, double seconds) {
  // Rounds about as long as a training step, and their median, as for the steps themselves.
  std::vector<double> rates;
  const double begin = now();
  while (now() - begin < seconds) {
    double flops = 0;
    const double start = now();
#pragma omp parallel num_threads(threads) reduction(+ : flops)
    flops += tile_kernels().multiply_add_peak(4'000'000);
    rates.push_back(flops / (now() - start) / 1e9);
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  constexpr double unit = 1;
#else
  constexpr double unit = 1024;
#endif
  return static_cast<double>(usage.ru_maxrss) * unit;
}

}  // namespace posattn
