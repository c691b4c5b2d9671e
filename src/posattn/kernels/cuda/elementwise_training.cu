#include "posattn/kernels/cuda/adam.cuh"
#include "posattn/kernels/cuda/elementwise_training.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr int block_threads = 256;

// One block per (node, slot).
__global__ void __launch_bounds__(block_threads)
    squared_error_kernel(ErrorShape shape, const float* targets, const uint8_t* counted,
                         const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                         double* partial) {
  __shared__ double sums[block_threads];
  const int node = blockIdx.x, slot = blockIdx.y;
  const SlotStep step = steps[slot];
  if (step.samples == 0) return;
  const int count = shape.sample_stride * shape.columns;
  const int64_t slot_node = static_cast<int64_t>(slot) * shape.nodes + node;
  const float* target = targets + slot_node * count;
  const uint8_t* count_column = counted + slot_node * shape.columns;
  float* y = outputs + slot * output_slot_stride + static_cast<int64_t>(node) * count;
  double sum = 0;
  for (int i = threadIdx.x; i < count; i += block_threads) {
    const bool counts = node < step.real_nodes && i / shape.columns < step.samples &&
                        count_column[i % shape.columns] != 0;
    const float error = counts ? y[i] - target[i] : 0.0f;
    sum += static_cast<double>(error) * error;
    y[i] = 2 * step.loss_scale * error;
  }
  sums[threadIdx.x] = sum;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) partial[slot_node] = sums[0];
}

__global__ void __launch_bounds__(block_threads)
    loss_kernel(ErrorShape shape, const SlotStep* steps, const double* partial, double* losses) {
  const int slot = blockIdx.x * block_threads + threadIdx.x;
  if (slot >= shape.slots || steps[slot].samples == 0) return;
  double sum = 0;
  for (int node = 0; node < shape.nodes; ++node) {
    sum += partial[static_cast<int64_t>(slot) * shape.nodes + node];
  }
  losses[slot] = static_cast<double>(steps[slot].loss_scale) * sum;
}

__global__ void __launch_bounds__(block_threads)
    adam_kernel(int64_t size, const AdamNumbers<float>* numbers, const uint8_t* trained,
                const SlotStep* steps, const float* gradient, float* first, float* second,
                float* weights) {
  const int slot = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= size || (steps && steps[slot].samples == 0) || (trained && !trained[i])) return;
  const int64_t place = slot * size + i;
  step_adam(numbers[slot], gradient[place], first[place], second[place], weights[place]);
}

}  // namespace

void enqueue_squared_error(const ErrorShape& shape, const float* targets, const uint8_t* counted,
                           const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                           double* partial, double* losses, cudaStream_t stream) {
  launch(squared_error_kernel, dim3(shape.nodes, shape.slots), dim3(block_threads), 0, stream,
         shape, targets, counted, steps, outputs, output_slot_stride, partial);
  launch(loss_kernel, dim3(static_cast<unsigned>(ceil_div(shape.slots, block_threads))),
         dim3(block_threads), 0, stream, shape, steps, partial, losses);
}

void enqueue_adam(int slots, int64_t size, const AdamNumbers<float>* numbers,
                  const uint8_t* trained, const SlotStep* steps, const float* gradient,
                  float* first, float* second, float* weights, cudaStream_t stream) {
  launch(adam_kernel, dim3(static_cast<unsigned>(ceil_div(size, block_threads)), slots),
         dim3(block_threads), 0, stream, size, numbers, trained, steps, gradient, first, second,
         weights);
}

}  // namespace posattn::cuda
