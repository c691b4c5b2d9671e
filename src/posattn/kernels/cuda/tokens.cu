#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/tokens.h"

namespace posattn::cuda {
namespace {

constexpr int warps = block_threads / 32;

// Without a table, rows with a token become zero.
__global__ void __launch_bounds__(block_threads)
    embed_kernel(int64_t rows, int32_t columns, const int32_t* tokens, Rows<const float> table,
                 bool keep, Rows<float> y, const SlotStep* steps) {
  const int slot = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= rows * columns) return;
  const int64_t row = i / columns, column = i % columns;
  const int32_t token = tokens[slot * rows + row];
  if (token < 0 && keep) return;
  y.data[slot * y.slot_stride + row * y.stride + column] =
      token < 0 || !table.data
          ? 0.0f
          : table.data[slot * table.slot_stride + token * table.stride + column];
}

// A block sums 32 columns of one token's rows: a warp looks at 32 rows, the next at the 32 behind
// them, and so on around; then the warps in order.
__global__ void __launch_bounds__(block_threads)
    embed_gradient_kernel(int64_t rows, int32_t columns, const int32_t* tokens,
                          Rows<const float> dy, Rows<float> dtable, bool accumulate,
                          const SlotStep* steps) {
  __shared__ float partial[warps][32];
  const int slot = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (rests(steps, slot)) return;
  const auto wanted = static_cast<int32_t>(blockIdx.x);
  const int column = static_cast<int>(blockIdx.z) * 32 + lane;
  const float* from = dy.data + slot * dy.slot_stride + column;
  float sum = 0;
  for (int64_t first = warp * 32; first < rows; first += block_threads) {
    const int32_t own = first + lane < rows ? tokens[slot * rows + first + lane] : -1;
    for (int i = 0; i < 32; ++i) {
      const bool adds = __shfl_sync(all_lanes, own, i) == wanted;
      if (adds && column < columns) sum += from[(first + i) * dy.stride];
    }
  }
  partial[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  for (int other = 1; other < warps; ++other) sum += partial[other][lane];
  float* to = dtable.data + slot * dtable.slot_stride + wanted * dtable.stride + column;
  *to = accumulate ? *to + sum : sum;
}

}  // namespace

void enqueue_embed(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                   Rows<const float> table, bool keep, Rows<float> y, const SlotStep* steps,
                   cudaStream_t stream) {
  launch(embed_kernel, blocks(rows * columns, block_threads, slots), dim3(block_threads), 0, stream,
         rows, columns, tokens, table, keep, y, steps);
}

void enqueue_embed_gradient(int slots, int64_t rows, int32_t columns, int32_t vocabulary,
                            const int32_t* tokens, Rows<const float> dy, Rows<float> dtable,
                            bool accumulate, const SlotStep* steps, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(vocabulary), static_cast<unsigned>(slots),
                  static_cast<unsigned>(ceil_div(columns, 32)));
  launch(embed_gradient_kernel, grid, dim3(block_threads), 0, stream, rows, columns, tokens, dy,
         dtable, accumulate, steps);
}

void enqueue_clear_embedded(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                            Rows<float> y, const SlotStep* steps, cudaStream_t stream) {
  enqueue_embed(slots, rows, columns, tokens, {}, true, y, steps, stream);
}

}  // namespace posattn::cuda
