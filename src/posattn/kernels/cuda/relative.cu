#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/relative.h"

namespace posattn::cuda {
namespace {

__global__ void __launch_bounds__(block_threads)
    relative_kernel(int heads, generic::RelativeShape shape, RelativeTables<const float> tables,
                    Rows<float> scores, const SlotStep* steps) {
  const int slot = blockIdx.y, n = shape.nodes();
  const int64_t place = static_cast<int64_t>(blockIdx.x) * block_threads + threadIdx.x;
  const int64_t row = place / n;
  if (rests(steps, slot) || row >= int64_t{heads} * n) return;
  const auto head = static_cast<int>(row / n), i = static_cast<int>(row % n),
             j = static_cast<int>(place % n);
  const int64_t own = slot * tables.slot_stride;
  scores.data[slot * scores.slot_stride + row * scores.stride + j] =
      shape.by_distance(i, j)
          ? tables.distances[own + head * shape.distances() + shape.distance_place(i, j)]
          : tables.scratch[own + head * shape.scratch_size() + shape.scratch_place(i, j)];
}

// Nodes j that node i attends to through one number of the tables: first .. end - 1.
struct AttendedNodes {
  int first, end;
};
__device__ AttendedNodes attended_at_distance(const generic::RelativeShape& shape, int i, int place) {
  if (i >= shape.real) return {0, 0};
  const int most = shape.reach - 1, j = i - (place - most);
  const int first = place == shape.distances() - 1 ? 0 : j;  // the farthest stand for those beyond
  const int end = place == 0 ? shape.real : j + 1;
  return {max(first, 0), min(end, shape.real)};
}
__device__ AttendedNodes attended_with_scratch(const generic::RelativeShape& shape, int i,
                                               int place) {
  const int node = shape.real + place / shape.scratch_columns();
  const int column = place % shape.scratch_columns();
  if (column == 0) return i < shape.real ? AttendedNodes{node, node + 1} : AttendedNodes{0, 0};
  if (i != node) return {0, 0};
  if (column == 1) return {0, shape.real};
  return {shape.real + column - 2, shape.real + column - 1};
}

// A warp sums up what one number of the tables was read by: lanes take nodes i in turn, each its j
// in order, then the lanes in pairs.
__global__ void __launch_bounds__(block_threads)
    relative_gradient_kernel(int heads, generic::RelativeShape shape, Rows<const float> dscores,
                             RelativeTables<float> dtables, const SlotStep* steps) {
  const int slot = blockIdx.y, n = shape.nodes(), lane = threadIdx.x % 32;
  const int distances = shape.distances(), numbers = distances + shape.scratch_size();
  const int own = static_cast<int>(blockIdx.x) * (block_threads / 32) + threadIdx.x / 32;
  if (rests(steps, slot) || own >= heads * numbers) return;
  const int head = own / numbers, number = own % numbers;
  const float* from =
      dscores.data + slot * dscores.slot_stride + static_cast<int64_t>(head) * n * dscores.stride;
  float sum = 0;
  for (int i = lane; i < n; i += 32) {
    const AttendedNodes attended = number < distances
                                       ? attended_at_distance(shape, i, number)
                                       : attended_with_scratch(shape, i, number - distances);
    for (int j = attended.first; j < attended.end; ++j) sum += from[i * dscores.stride + j];
  }
  sum = sum_of_lanes<32>(sum);
  if (lane != 0) return;
  float* table = number < distances
                     ? dtables.distances + head * distances + number
                     : dtables.scratch + head * shape.scratch_size() + number - distances;
  table[slot * dtables.slot_stride] = sum;
}

}  // namespace

void enqueue_relative_scores(int slots, int heads, const generic::RelativeShape& shape,
                             RelativeTables<const float> tables, Rows<float> scores,
                             const SlotStep* steps, cudaStream_t stream) {
  const int64_t count = int64_t{heads} * shape.nodes() * shape.nodes();
  launch(relative_kernel, blocks(count, block_threads, slots), dim3(block_threads), 0, stream,
         heads, shape, tables, scores, steps);
}

void enqueue_relative_scores_gradient(int slots, int heads, const generic::RelativeShape& shape,
                                      Rows<const float> dscores, RelativeTables<float> dtables,
                                      const SlotStep* steps, cudaStream_t stream) {
  const int64_t count = int64_t{heads} * (shape.distances() + shape.scratch_size());
  launch(relative_gradient_kernel, blocks(count, block_threads / 32, slots), dim3(block_threads), 0,
         stream, heads, shape, dscores, dtables, steps);
}

}  // namespace posattn::cuda
