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

// With g the gradient (training/optimiser.cc has the numbers):
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
//   w = keep w - step_size m / (sqrt(v) / root_correction2 + epsilon)
__global__ void __launch_bounds__(block_threads)
    adam_kernel(int64_t size, const AdamNumbers<float>* numbers, const uint8_t* trained,
                const SlotStep* steps, const float* gradient, float* first, float* second,
                float* weights) {
  const int slot = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (i >= size || (steps && steps[slot].samples == 0) || (trained && !trained[i])) return;
  const AdamNumbers<float> n = numbers[slot];
  const int64_t place = slot * size + i;
  const float w = weights[place], g = gradient[place] + n.decay_to_gradient * w;
  const float m = n.beta1 * first[place] + n.rest1 * g;
  const float v = n.beta2 * second[place] + n.rest2 * g * g;
  first[place] = m;
  second[place] = v;
  weights[place] = n.keep * w - n.step_size * (m / (sqrtf(v) / n.root_correction2 + n.epsilon));
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
