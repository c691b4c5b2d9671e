#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/normalisation.h"

namespace posattn::cuda {
namespace {

constexpr double norm_epsilon = 1e-5;

// Mean and 1 / deviation of a row that `lanes` lanes share; in double, as on the CPU: differences
// from the mean may be small.
template <int lanes>
struct Moments {
  __device__ Moments(const float* x, int32_t columns, int lane) {
    double sum = 0, square = 0;
    for (int c = lane; c < columns; c += lanes) sum += x[c];
    mean = sum_of_lanes<lanes>(sum) / columns;
    for (int c = lane; c < columns; c += lanes) square += (x[c] - mean) * (x[c] - mean);
    inverse = 1 / sqrt(sum_of_lanes<lanes>(square) / columns + norm_epsilon);
  }
  __device__ double normalised(float x) const { return (x - mean) * inverse; }
  double mean, inverse;
};

template <int lanes>
__global__ void __launch_bounds__(block_threads)
    layer_norm_kernel(int64_t rows, int32_t columns, Rows<const float> x, SlotVector gain,
                      SlotVector shift, Rows<float> y, const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % lanes;
  if (rests(steps, slot)) return;
  const OwnRow<lanes> own(rows);
  const float* from = own.of(x);
  const Moments<lanes> moments(from, columns, lane);
  if (own.surplus) return;
  const float* gains = gain.data + slot * gain.slot_stride;
  const float* shifts = shift.data + slot * shift.slot_stride;
  float* to = own.of(y);
  for (int c = lane; c < columns; c += lanes) {
    to[c] = static_cast<float>(gains[c] * moments.normalised(from[c]) + shifts[c]);
  }
}

template <int lanes>
__global__ void __launch_bounds__(block_threads)
    layer_norm_gradient_kernel(int64_t rows, int32_t columns, Rows<const float> x, SlotVector gain,
                               Rows<float> dy, Rows<float> terms, const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % lanes;
  if (rests(steps, slot)) return;
  const OwnRow<lanes> own(rows);
  const float* from = own.of(x);
  const Moments<lanes> moments(from, columns, lane);
  const float* gains = gain.data + slot * gain.slot_stride;
  float* d = own.of(dy);
  double mean = 0, slope = 0;  // of g = gain dy, and of g with the normalised x
  for (int c = lane; c < columns; c += lanes) {
    const double g = static_cast<double>(gains[c]) * d[c];
    mean += g;
    slope += g * moments.normalised(from[c]);
  }
  mean = sum_of_lanes<lanes>(mean) / columns;
  slope = sum_of_lanes<lanes>(slope) / columns;
  if (own.surplus) return;
  float* term = own.of(terms);
  for (int c = lane; c < columns; c += lanes) {
    const double g = static_cast<double>(gains[c]) * d[c], normal = moments.normalised(from[c]);
    term[c] = static_cast<float>(d[c] * normal);
    d[c] = static_cast<float>((g - mean - normal * slope) * moments.inverse);
  }
}

}  // namespace

void enqueue_layer_norm(int slots, int64_t rows, int32_t columns, Rows<const float> x,
                        SlotVector gain, SlotVector shift, Rows<float> y, const SlotStep* steps,
                        cudaStream_t stream) {
  with_lanes(columns, [&](auto lanes, int rows_at_once) {
    launch(layer_norm_kernel<decltype(lanes)::value>, blocks(rows, rows_at_once, slots),
           dim3(block_threads), 0, stream, rows, columns, x, gain, shift, y, steps);
  });
}

void enqueue_layer_norm_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> x,
                                 SlotVector gain, Rows<float> dy, Rows<float> terms,
                                 const SlotStep* steps, cudaStream_t stream) {
  with_lanes(columns, [&](auto lanes, int rows_at_once) {
    launch(layer_norm_gradient_kernel<decltype(lanes)::value>, blocks(rows, rows_at_once, slots),
           dim3(block_threads), 0, stream, rows, columns, x, gain, dy, terms, steps);
  });
}

}  // namespace posattn::cuda
