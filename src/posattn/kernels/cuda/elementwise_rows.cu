#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

constexpr unsigned all_lanes = 0xffffffffu;
constexpr int block_threads = 256;

__device__ bool rests(const SlotStep* steps, int slot) { return steps && steps[slot].samples == 0; }

// Over `lanes` neighbouring lanes, a power of two.
template <int lanes>
__device__ float sum_of_lanes(float x) {
  for (int other = lanes / 2; other > 0; other /= 2) x += __shfl_xor_sync(all_lanes, x, other);
  return x;
}
template <int lanes>
__device__ float largest_of_lanes(float x) {
  for (int other = lanes / 2; other > 0; other /= 2) {
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

// `lanes` lanes of a warp share a row. The last warp's surplus lanes do its last row again, so that
// all lanes exchange, and write nothing.
template <int lanes>
__global__ void __launch_bounds__(block_threads)
    softmax_kernel(int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                   AbsentColumns absent, const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % lanes;
  if (rests(steps, slot)) return;
  const int64_t own = static_cast<int64_t>(blockIdx.x) * (block_threads / lanes) +
                      threadIdx.x / lanes,
                row = own < rows ? own : rows - 1;
  const float* from = x.data + slot * x.slot_stride + row * x.stride;
  float* to = a.data + slot * a.slot_stride + row * a.stride;
  const int first_absent = first_absent_column(steps, slot, absent);
  float largest = -INFINITY;
  for (int c = lane; c < columns; c += lanes) {
    if (present(c, first_absent, absent)) largest = fmaxf(largest, from[c]);
  }
  largest = largest_of_lanes<lanes>(largest);
  const auto weight = [&](int c) {
    return present(c, first_absent, absent) ? expf(from[c] - largest) : 0.0f;
  };
  float sum = 0;
  for (int c = lane; c < columns; c += lanes) sum += weight(c);
  const float scale = 1 / sum_of_lanes<lanes>(sum);
  if (own >= rows) return;
  for (int c = lane; c < columns; c += lanes) to[c] = weight(c) * scale;
}

template <int lanes>
__global__ void __launch_bounds__(block_threads)
    softmax_gradient_kernel(int64_t rows, int32_t columns, Rows<const float> a,
                            Rows<const float> da, Rows<float> dx, AbsentColumns absent,
                            const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % lanes;
  if (rests(steps, slot)) return;
  const int64_t own = static_cast<int64_t>(blockIdx.x) * (block_threads / lanes) +
                      threadIdx.x / lanes,
                row = own < rows ? own : rows - 1;
  const float* weights = a.data + slot * a.slot_stride + row * a.stride;
  const float* from = da.data + slot * da.slot_stride + row * da.stride;
  float* to = dx.data + slot * dx.slot_stride + row * dx.stride;
  const int first_absent = first_absent_column(steps, slot, absent);
  float dot = 0;
  for (int c = lane; c < columns; c += lanes) {
    if (present(c, first_absent, absent)) dot += weights[c] * from[c];
  }
  dot = sum_of_lanes<lanes>(dot);
  if (own >= rows) return;
  for (int c = lane; c < columns; c += lanes) {
    to[c] = present(c, first_absent, absent) ? weights[c] * (from[c] - dot) : 0.0f;
  }
}

constexpr int sum_columns = 32, sum_lanes = 16, sum_threads = sum_columns * sum_lanes;
constexpr int sum_ahead = 8;  // rows that a thread reads before it adds them up

// A block sums 32 columns of a group: thread (lane, column) every 16th row, then the lanes in
// order.
__global__ void __launch_bounds__(sum_threads)
    group_sums_kernel(int32_t groups, int32_t group_rows, int32_t columns, Rows<float> x,
                      const float* activation, Rows<float> sums, bool accumulate,
                      const SlotStep* steps) {
  __shared__ float partial[sum_lanes][sum_columns];
  const int slot = blockIdx.y, lane = threadIdx.x / sum_columns;
  if (rests(steps, slot)) return;
  const int group = blockIdx.x % groups;
  const int column = blockIdx.x / groups * sum_columns + threadIdx.x % sum_columns;
  const int64_t first =
      slot * x.slot_stride + static_cast<int64_t>(group) * group_rows * x.stride + column;
  const int rows = column < columns ? group_rows : 0;
  float sum = 0;
  for (int begin = lane; begin < rows; begin += sum_ahead * sum_lanes) {
    float values[sum_ahead];
    bool cut[sum_ahead];
#pragma unroll
    for (int i = 0; i < sum_ahead; ++i) {
      const int r = begin + i * sum_lanes;
      const int64_t place = first + r * x.stride;
      values[i] = r < rows ? x.data[place] : 0.0f;
      cut[i] = activation && r < rows && !(activation[place] > 0);
    }
#pragma unroll
    for (int i = 0; i < sum_ahead; ++i) {
      if (cut[i]) x.data[first + (begin + i * sum_lanes) * x.stride] = values[i] = 0;
      sum += values[i];
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

// Of a warp, for a row.
int lanes_for(int32_t columns) { return columns <= 8 ? 8 : columns <= 16 ? 16 : 32; }

}  // namespace

void enqueue_softmax(int slots, int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                     AbsentColumns absent, const SlotStep* steps, cudaStream_t stream) {
  const int lanes = lanes_for(columns);
  launch(lanes == 8    ? softmax_kernel<8>
         : lanes == 16 ? softmax_kernel<16>
                       : softmax_kernel<32>,
         blocks(rows, block_threads / lanes, slots), dim3(block_threads), 0, stream, rows, columns,
         x, a, absent, steps);
}

void enqueue_softmax_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> a,
                              Rows<const float> da, Rows<float> dx, AbsentColumns absent,
                              const SlotStep* steps, cudaStream_t stream) {
  const int lanes = lanes_for(columns);
  launch(lanes == 8    ? softmax_gradient_kernel<8>
         : lanes == 16 ? softmax_gradient_kernel<16>
                       : softmax_gradient_kernel<32>,
         blocks(rows, block_threads / lanes, slots), dim3(block_threads), 0, stream, rows, columns,
         a, da, dx, absent, steps);
}

void enqueue_group_sums(int slots, int32_t groups, int32_t group_rows, int32_t columns,
                        Rows<float> x, const float* activation, Rows<float> sums, bool accumulate,
                        const SlotStep* steps, cudaStream_t stream) {
  const int64_t count = ceil_div(columns, sum_columns) * groups;
  launch(group_sums_kernel, blocks(count, 1, slots), dim3(sum_threads), 0, stream, groups,
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
