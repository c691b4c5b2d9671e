#include "posattn/kernels/cuda/elementwise_rows.h"
#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {
namespace {

// The columns that one row attends to.
struct Attended {
  __device__ Attended(AttendedColumns columns, const SlotStep* steps, int slot, int64_t row)
      : first_absent(columns.absent_end == 0 ? 0 : steps[slot].real_nodes),
        absent_end(columns.absent_end),
        last(columns.causal_nodes == 0 ? INT32_MAX
                                       : static_cast<int32_t>(row % columns.causal_nodes)) {}
  __device__ bool operator()(int column) const {
    return column <= last && (column < first_absent || column >= absent_end);
  }
  int32_t first_absent, absent_end, last;
};

template <int lanes>
__global__ void __launch_bounds__(block_threads)
    softmax_kernel(int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                   AttendedColumns attended_columns, const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % lanes;
  if (rests(steps, slot)) return;
  const OwnRow<lanes> own(rows);
  softmax_row<lanes>(own.of(x), own.of(a), columns, lane,
                     Attended(attended_columns, steps, slot, own.row), !own.surplus);
}

template <int lanes>
__global__ void __launch_bounds__(block_threads)
    softmax_gradient_kernel(int64_t rows, int32_t columns, Rows<const float> a,
                            Rows<const float> da, Rows<float> dx, AttendedColumns attended_columns,
                            const SlotStep* steps) {
  const int slot = blockIdx.y, lane = threadIdx.x % lanes;
  if (rests(steps, slot)) return;
  const OwnRow<lanes> own(rows);
  softmax_gradient_row<lanes>(own.of(a), own.of(da), own.of(dx), columns, lane,
                              Attended(attended_columns, steps, slot, own.row), !own.surplus);
}

constexpr int sum_across = 4, sum_lanes = 64, sum_threads = sum_across * sum_lanes;
constexpr int sum_ahead = 4;  // rows that a thread reads before it adds them up

template <int width>
__device__ void read_columns(const float* from, float (&values)[width]) {
  if constexpr (width == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    values[0] = four.x;
    values[1] = four.y;
    values[2] = four.z;
    values[3] = four.w;
  } else {
    values[0] = *from;
  }
}
template <int width>
__device__ void write_columns(float* to, const float (&values)[width]) {
  if constexpr (width == 4) {
    *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
  } else {
    *to = values[0];
  }
}

// A block sums four times `width` columns of a group: thread (lane, columns) every 64th row, then
// the lanes of a warp in pairs, then the warps in order.
template <int width>
__global__ void __launch_bounds__(sum_threads)
    group_sums_kernel(int32_t groups, int32_t group_rows, int32_t columns, Rows<const float> x,
                      Rows<float> sums, bool accumulate, const SlotStep* steps) {
  constexpr int warps = sum_threads / 32, block_columns = sum_across * width;
  __shared__ float partial[warps][block_columns];
  const int slot = blockIdx.y, own = threadIdx.x % sum_across * width;
  if (rests(steps, slot)) return;
  const int group = blockIdx.x % groups, first_column = blockIdx.x / groups * block_columns;
  const int64_t first =
      slot * x.slot_stride + static_cast<int64_t>(group) * group_rows * x.stride + first_column;
  const int rows = first_column + own < columns ? group_rows : 0;
  float sum[width] = {};
  for (int begin = threadIdx.x / sum_across; begin < rows; begin += sum_ahead * sum_lanes) {
    float values[sum_ahead][width] = {};
#pragma unroll
    for (int i = 0; i < sum_ahead; ++i) {
      const int row = begin + i * sum_lanes;
      if (row >= rows) continue;
      const int64_t place = first + row * x.stride + own;
      read_columns(x.data + place, values[i]);
    }
#pragma unroll
    for (int i = 0; i < sum_ahead; ++i) {
#pragma unroll
      for (int c = 0; c < width; ++c) sum[c] += values[i][c];
    }
  }
#pragma unroll
  for (int c = 0; c < width; ++c) {
#pragma unroll
    for (int other = 16; other >= sum_across; other /= 2) {
      sum[c] += __shfl_xor_sync(all_lanes, sum[c], other);
    }
    if (threadIdx.x % 32 < sum_across) partial[threadIdx.x / 32][own + c] = sum[c];
  }
  __syncthreads();
  const int column = first_column + static_cast<int>(threadIdx.x);
  if (threadIdx.x >= block_columns || column >= columns) return;
  float* to = sums.data + slot * sums.slot_stride + group * sums.stride + column;
  float total = 0;
#pragma unroll
  for (int warp = 0; warp < warps; ++warp) total += partial[warp][threadIdx.x];
  *to = accumulate ? *to + total : total;
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

// A thread takes `width` columns at a time.
template <int width>
__global__ void __launch_bounds__(block_threads)
    spread_kernel(int32_t rows, int32_t group_rows, int32_t across, Rows<const float> x,
                  Rows<float> y, bool accumulate, const SlotStep* steps) {
  const int slot = blockIdx.y;
  const unsigned i = blockIdx.x * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= static_cast<unsigned>(rows) * across) return;
  const int row = static_cast<int>(i / across), column = static_cast<int>(i % across) * width;
  float values[width], sums[width];
  read_columns(x.data + slot * x.slot_stride + row / group_rows * x.stride + column, values);
  float* to = y.data + slot * y.slot_stride + row * y.stride + column;
  if (accumulate) {
    read_columns(to, sums);
#pragma unroll
    for (int c = 0; c < width; ++c) values[c] = sums[c] + values[c];
  }
  write_columns(to, values);
}

}  // namespace

void enqueue_softmax(int slots, int64_t rows, int32_t columns, Rows<const float> x, Rows<float> a,
                     AttendedColumns attended_columns, const SlotStep* steps, cudaStream_t stream) {
  with_lanes(columns, [&](auto lanes, int rows_at_once) {
    launch(softmax_kernel<decltype(lanes)::value>, blocks(rows, rows_at_once, slots),
           dim3(block_threads), 0, stream, rows, columns, x, a, attended_columns, steps);
  });
}

void enqueue_softmax_gradient(int slots, int64_t rows, int32_t columns, Rows<const float> a,
                              Rows<const float> da, Rows<float> dx,
                              AttendedColumns attended_columns, const SlotStep* steps,
                              cudaStream_t stream) {
  with_lanes(columns, [&](auto lanes, int rows_at_once) {
    launch(softmax_gradient_kernel<decltype(lanes)::value>, blocks(rows, rows_at_once, slots),
           dim3(block_threads), 0, stream, rows, columns, a, da, dx, attended_columns, steps);
  });
}

void enqueue_group_sums(int slots, int32_t groups, int32_t group_rows, int32_t columns,
                        Rows<const float> x, Rows<float> sums, bool accumulate,
                        const SlotStep* steps, cudaStream_t stream) {
  const bool fours = columns % 4 == 0 && in_fours(x);
  const int64_t count = ceil_div(columns, sum_across * (fours ? 4 : 1)) * groups;
  launch(fours ? group_sums_kernel<4> : group_sums_kernel<1>, blocks(count, 1, slots),
         dim3(sum_threads), 0, stream, groups, group_rows, columns, x, sums, accumulate, steps);
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

void enqueue_spread(int slots, int64_t rows, int32_t group_rows, int32_t columns,
                    Rows<const float> x, Rows<float> y, bool accumulate, const SlotStep* steps,
                    cudaStream_t stream) {
  const bool fours = columns % 4 == 0 && in_fours(x) && in_fours(y);
  const int32_t across = fours ? columns / 4 : columns;
  launch(fours ? spread_kernel<4> : spread_kernel<1>, blocks(rows * across, block_threads, slots),
         dim3(block_threads), 0, stream, static_cast<int32_t>(rows), group_rows, across, x, y,
         accumulate, steps);
}

}  // namespace posattn::cuda
