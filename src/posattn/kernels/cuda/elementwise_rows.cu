#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr unsigned all_lanes = 0xffffffffu;
constexpr int row_warps = 4;  // rows per block, one warp each
constexpr int block_threads = 256;

__device__ bool rests(const SlotStep* steps, int slot) { return steps && steps[slot].samples == 0; }

__device__ float sum_of_warp(float x) {
  for (int other = 16; other > 0; other /= 2) x += __shfl_xor_sync(all_lanes, x, other);
  return x;
}
__device__ float largest_of_warp(float x) {
  for (int other = 16; other > 0; other /= 2) {
    x = fmaxf(x, __shfl_xor_sync(all_lanes, x, other));
  }
  return x;
}

__device__ bool present(int column, int first_absent, AbsentColumns absent) {
  return column < first_absent || column >= absent.end;
}
__device__ int first_absent_column(const SlotStep* steps, int slot, AbsentColumns absent) {
  return absent.end == 0 ? 0 : steps[slot].real_nodes;
}

__global__ void __launch_bounds__(32 * row_warps)
    softmax_kernel(int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                   AbsentColumns absent, const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * row_warps + threadIdx.x / 32;
  if (rests(steps, slot) || row >= rows) return;
  const float* from = x.data + slot * x.slot_stride + row * x.stride;
  float* to = a.data + slot * a.slot_stride + row * a.stride;
  const int first_absent = first_absent_column(steps, slot, absent);
  float largest = -INFINITY;
  for (int c = lane; c < columns; c += 32) {
    if (present(c, first_absent, absent)) largest = fmaxf(largest, from[c]);
  }
  largest = largest_of_warp(largest);
  float sum = 0;
  for (int c = lane; c < columns; c += 32) {
    const float value = present(c, first_absent, absent) ? expf(from[c] - largest) : 0.0f;
    to[c] = value;
    sum += value;
  }
  const float scale = 1 / sum_of_warp(sum);
  for (int c = lane; c < columns; c += 32) to[c] *= scale;
}

__global__ void __launch_bounds__(32 * row_warps)
    softmax_gradient_kernel(int64_t rows, int32_t columns, Rows<const float> a,
                            Rows<const float> da, Rows<float> dx, AbsentColumns absent,
                            const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % 32;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * row_warps + threadIdx.x / 32;
  if (rests(steps, slot) || row >= rows) return;
  const float* weights = a.data + slot * a.slot_stride + row * a.stride;
  const float* from = da.data + slot * da.slot_stride + row * da.stride;
  float* to = dx.data + slot * dx.slot_stride + row * dx.stride;
  const int first_absent = first_absent_column(steps, slot, absent);
  float dot = 0;
  for (int c = lane; c < columns; c += 32) {
    if (present(c, first_absent, absent)) dot += weights[c] * from[c];
  }
  dot = sum_of_warp(dot);
  for (int c = lane; c < columns; c += 32) {
    to[c] = present(c, first_absent, absent) ? weights[c] * (from[c] - dot) : 0.0f;
  }
}

constexpr int sum_columns = 32, sum_lanes = block_threads / sum_columns;

// A block sums 32 columns of a group: thread (column, lane) every eighth row, then the lanes in
// order.
__global__ void __launch_bounds__(block_threads)
    group_sums_kernel(int32_t groups, int32_t group_rows, int32_t columns, Rows<float> x,
                      const float* activation, Rows<float> sums, bool accumulate,
                      const SlotStep* steps) {
  __shared__ float partial[sum_lanes][sum_columns];
  const int slot = blockIdx.y, lane = threadIdx.x / sum_columns;
  if (rests(steps, slot)) return;
  const int group = blockIdx.x % groups;
  const int column = blockIdx.x / groups * sum_columns + threadIdx.x % sum_columns;
  float sum = 0;
  if (column < columns) {
    for (int r = lane; r < group_rows; r += sum_lanes) {
      const int64_t row = static_cast<int64_t>(group) * group_rows + r;
      const int64_t place = slot * x.slot_stride + row * x.stride + column;
      float value = x.data[place];
      if (activation && !(activation[place] > 0)) x.data[place] = value = 0;
      sum += value;
    }
  }
  partial[lane][threadIdx.x % sum_columns] = sum;
  __syncthreads();
  if (lane != 0 || column >= columns) return;
  for (int other = 1; other < sum_lanes; ++other) sum += partial[other][threadIdx.x];
  float* to = sums.data + slot * sums.slot_stride + group * sums.stride + column;
  *to = accumulate ? *to + sum : sum;
}

__global__ void __launch_bounds__(block_threads)
    sum_parts_kernel(int32_t parts, int64_t count, Rows<const float> x, float* sum,
                     int64_t sum_slot_stride, bool accumulate, const SlotStep* steps) {
  const int slot = blockIdx.y;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= count) return;
  float* to = sum + slot * sum_slot_stride + i;
  float value = accumulate ? *to : 0.0f;
  const float* from = x.data + slot * x.slot_stride + i;
  for (int part = 0; part < parts; ++part) value += from[part * x.stride];
  *to = value;
}

__global__ void __launch_bounds__(block_threads)
    rotate_kernel(int64_t rows, int32_t node_rows, int32_t vectors, int32_t size,
                  const float* table, float sign, Rows<float> x, const SlotStep* steps) {
  const int slot = blockIdx.y, pairs = size / 2;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= rows * vectors * pairs) return;
  const int64_t row = i / (vectors * pairs);
  const int pair = static_cast<int>(i % pairs), vector = static_cast<int>(i / pairs % vectors);
  const float* turn = table + row / node_rows * size + 2 * pair;
  const float cosine = turn[0], sine = sign * turn[1];
  float* place = x.data + slot * x.slot_stride + row * x.stride + vector * size + 2 * pair;
  const float first = place[0], second = place[1];
  place[0] = first * cosine - second * sine;
  place[1] = first * sine + second * cosine;
}

dim3 blocks(int64_t count, int64_t per_block, int slots) {
  return dim3(static_cast<unsigned>(ceil_div(count, per_block)), slots);
}

}  // namespace

void enqueue_softmax(int slots, int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                     AbsentColumns absent, const SlotStep* steps, cudaStream_t stream) {
  launch(softmax_kernel, blocks(rows, row_warps, slots), dim3(32 * row_warps), 0, stream, rows,
         columns, x, a, absent, steps);
}

void enqueue_softmax_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> a,
                              Rows<const float> da, Rows<float> dx, AbsentColumns absent,
                              const SlotStep* steps, cudaStream_t stream) {
  launch(softmax_gradient_kernel, blocks(rows, row_warps, slots), dim3(32 * row_warps), 0, stream,
         rows, columns, a, da, dx, absent, steps);
}

void enqueue_group_sums(int slots, int32_t groups, int32_t group_rows, int32_t columns,
                        Rows<float> x, const float* activation, Rows<float> sums, bool accumulate,
                        const SlotStep* steps, cudaStream_t stream) {
  const int64_t count = ceil_div(columns, sum_columns) * groups;
  launch(group_sums_kernel, blocks(count, 1, slots), dim3(block_threads), 0, stream, groups,
         group_rows, columns, x, activation, sums, accumulate, steps);
}

void enqueue_sum_parts(int slots, int32_t parts, int64_t count, Rows<const float> x, float* sum,
                       int64_t sum_slot_stride, bool accumulate, const SlotStep* steps,
                       cudaStream_t stream) {
  launch(sum_parts_kernel, blocks(count, block_threads, slots), dim3(block_threads), 0, stream,
         parts, count, x, sum, sum_slot_stride, accumulate, steps);
}

void enqueue_rotate(int slots, int64_t rows, int32_t node_rows, int32_t vectors, int32_t size,
                    const float* table, float sign, Rows<float> x, const SlotStep* steps,
                    cudaStream_t stream) {
  const int64_t count = rows * vectors * (size / 2);
  if (count == 0) return;
  launch(rotate_kernel, blocks(count, block_threads, slots), dim3(block_threads), 0, stream, rows,
         node_rows, vectors, size, table, sign, x, steps);
}

}  // namespace posattn::cuda
