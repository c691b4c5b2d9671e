#include "posattn/base/random.h"
#include "posattn/kernels/cuda/choose.h"
#include "posattn/kernels/cuda/lanes.cuh"

namespace posattn::cuda {
namespace {

// A thread takes a row.
__global__ void __launch_bounds__(block_threads)
    choose_kernel(ChoiceShape shape, Rows<const float> weights, Rows<float> chosen,
                  const SlotStep* steps) {
  const int slot = blockIdx.y;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const int64_t of_sample = static_cast<int64_t>(shape.heads) * shape.nodes;
  if (rests(steps, slot) || row >= shape.samples * of_sample) return;
  const float* a = weights.data + slot * weights.slot_stride + row * weights.stride;
  float* to = chosen.data + slot * chosen.slot_stride + row * chosen.stride;
  int read = 0;
  if (shape.drawn) {
    const int64_t sample = shape.first_sample + row / of_sample;
    const int64_t place = (sample * shape.layers + shape.layer) * of_sample + row % of_sample;
    const SlotStep& step = steps[slot];
    const uint32_t word =
        philox({0, static_cast<uint32_t>(place), step.number,
                static_cast<uint32_t>(Purpose::attention_draws)},
               static_cast<uint32_t>(step.seed), static_cast<uint32_t>(step.seed >> 32))[0];
    const float u = static_cast<float>(word >> 8) * 0x1p-24f;
    float sum = 0;
    for (int j = 0; j < shape.nodes && sum <= u; ++j) {
      if (a[j] > 0) read = j;
      sum += a[j];
    }
  } else {
    for (int j = 1; j < shape.nodes; ++j) {
      if (a[j] > a[read]) read = j;
    }
  }
  for (int j = 0; j < shape.nodes; ++j) to[j] = j == read ? 1.0f : 0.0f;
}

}  // namespace

void enqueue_choose(const ChoiceShape& shape, Rows<const float> weights, Rows<float> chosen,
                    const SlotStep* steps, cudaStream_t stream) {
  const int64_t rows = shape.samples * shape.heads * shape.nodes;
  launch(choose_kernel, blocks(rows, block_threads, shape.slots), dim3(block_threads), 0, stream,
         shape, weights, chosen, steps);
}

}  // namespace posattn::cuda
