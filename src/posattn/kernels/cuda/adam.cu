#include "posattn/kernels/cuda/adam.cuh"
#include "posattn/kernels/cuda/adam.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr int block_threads = 256;

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

void enqueue_adam(int slots, int64_t size, const AdamNumbers<float>* numbers,
                  const uint8_t* trained, const SlotStep* steps, const float* gradient,
                  float* first, float* second, float* weights, cudaStream_t stream) {
  launch(adam_kernel, dim3(static_cast<unsigned>(ceil_div(size, block_threads)), slots),
         dim3(block_threads), 0, stream, size, numbers, trained, steps, gradient, first, second,
         weights);
}

}  // namespace posattn::cuda
