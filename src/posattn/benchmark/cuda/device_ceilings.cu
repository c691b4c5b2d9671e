#include <algorithm>
#include <vector>

#include "posattn/benchmark/steps.h"
#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn {
namespace {

using cuda::check;
using cuda::DeviceBuffer;

constexpr int chains = 12;  // independent sums, so that no instruction waits for the one before
constexpr int threads = 256;

__global__ void tensor_peak(float* out, int repetitions) {
  float sums[chains][4] = {};
  const float a = 1e-3f * static_cast<float>(threadIdx.x + 1), b = 0.37f - a;
  for (int r = 0; r < repetitions; ++r) {
#pragma unroll
    for (int k = 0; k < chains; ++k) cuda::mma_tf32(sums[k], a, b, a, b, b, a);
  }
  float total = 0;
  for (const auto& part : sums) total += part[0] + part[1] + part[2] + part[3];
  if (total == 123) *out = total;  // never; keeps the sums alive
}

__global__ void fp32_peak(float* out, int repetitions) {
  float sums[chains] = {};
  const float a = 1e-3f * static_cast<float>(threadIdx.x + 1), b = 0.999f;
  for (int r = 0; r < repetitions; ++r) {
#pragma unroll
    for (int k = 0; k < chains; ++k) sums[k] = sums[k] * b + a;
  }
  float total = 0;
  for (const float part : sums) total += part;
  if (total == 123) *out = total;
}

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record() { check(cudaEventRecord(event_, nullptr), "cudaEventRecord"); }
  double seconds_since(const Event& start) {
    check(cudaEventSynchronize(event_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "cudaEventElapsedTime");
    return milliseconds / 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Median time of `work`, which is enqueued on the default stream.
template <class Work>
double median_seconds(const Work& work) {
  constexpr int rounds = 9;
  Event start, end;
  std::vector<double> times;
  work();  // warms up
  for (int r = 0; r < rounds; ++r) {
    start.record();
    work();
    end.record();
    times.push_back(end.seconds_since(start));
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2];
}

}  // namespace

DeviceCeilings measure_device_ceilings() {
  int device = 0;
  cudaDeviceProp properties;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  DeviceCeilings ceilings;
  const int64_t bytes = int64_t{1} << 30;  // many times the second-level cache
  {
    DeviceBuffer<char> from(bytes), to(bytes);
    const double seconds = median_seconds([&] {
      check(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice, nullptr),
            "cudaMemcpyAsync");
    });
    ceilings.copy_bytes = 2.0 * bytes / seconds;
  }
  DeviceBuffer<float> out(1);
  constexpr int repetitions = 4000;
  const unsigned blocks = 2 * static_cast<unsigned>(properties.multiProcessorCount);
  const double steps = 1.0 * blocks * threads * chains * repetitions;
  constexpr double flops_per_mma = 2.0 * 16 * 8 * 8;  // of a warp
  ceilings.tensor_flops =
      steps / 32 * flops_per_mma / median_seconds([&] {
        cuda::launch(tensor_peak, blocks, threads, 0, nullptr, out.data(), repetitions);
      });
  ceilings.fp32_flops =
      2 * steps / median_seconds([&] {
        cuda::launch(fp32_peak, blocks, threads, 0, nullptr, out.data(), repetitions);
      });
  return ceilings;
}

}  // namespace posattn
