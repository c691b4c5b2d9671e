#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/losses.h"

namespace posattn::cuda {
namespace {

// Each (node, slot) has a block.
__global__ void __launch_bounds__(block_threads)
    squared_error_kernel(ErrorShape shape, const float* targets, const uint8_t* counted,
                         const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                         double* partial) {
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
  sum = block_sum(sum);
  if (threadIdx.x == 0) partial[slot_node] = sum;
}

// The label of a node's sample, negative where it does not count.
__device__ int32_t label_of(const ErrorShape& shape, const Labels& labels, const SlotStep& step,
                            int64_t slot_node, int node, int sample) {
  const bool counts = node < step.real_nodes && sample < step.samples &&
                      labels.counted[slot_node * shape.columns] != 0;
  return counts ? labels.labels[slot_node * shape.sample_stride + sample] : -1;
}

// A warp per node: how many of its labels count.
__global__ void __launch_bounds__(block_threads)
    label_count_kernel(ErrorShape shape, Labels labels, const SlotStep* steps, int32_t* counts) {
  const int slot = blockIdx.y, lane = threadIdx.x % 32;
  const int node = static_cast<int>(blockIdx.x) * (block_threads / 32) + threadIdx.x / 32;
  const SlotStep step = steps[slot];
  if (step.samples == 0 || node >= shape.nodes) return;
  const int64_t slot_node = static_cast<int64_t>(slot) * shape.nodes + node;
  int count = 0;
  for (int sample = lane; sample < shape.sample_stride; sample += 32) {
    count += label_of(shape, labels, step, slot_node, node, sample) >= 0 ? 1 : 0;
  }
  count = sum_of_lanes<32>(count);
  if (lane == 0) counts[slot_node] = count;
}

// 1 / the number of labels that count, 0 without one. To all threads of a block.
__device__ double label_scale(const ErrorShape& shape, const int32_t* counts, int slot) {
  __shared__ double scale;
  int count = 0;
  for (int node = threadIdx.x; node < shape.nodes; node += block_threads) {
    count += counts[static_cast<int64_t>(slot) * shape.nodes + node];
  }
  count = block_sum(count);
  if (threadIdx.x == 0) scale = count == 0 ? 0.0 : 1.0 / count;
  __syncthreads();
  return scale;
}

// One block per (node, slot); `lanes` lanes share a sample.
template <int lanes>
__global__ void __launch_bounds__(block_threads)
    cross_entropy_kernel(ErrorShape shape, Labels labels, const int32_t* counts,
                         const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                         double* partial) {
  constexpr int at_once = block_threads / lanes;
  const int node = blockIdx.x, slot = blockIdx.y, lane = threadIdx.x % lanes;
  const SlotStep step = steps[slot];
  if (step.samples == 0) return;
  const int64_t slot_node = static_cast<int64_t>(slot) * shape.nodes + node;
  const auto scale = static_cast<float>(label_scale(shape, counts, slot));
  float* of_node = outputs + slot * output_slot_stride +
                   static_cast<int64_t>(node) * shape.sample_stride * shape.columns;
  double loss = 0;
  for (int first = 0; first < shape.sample_stride; first += at_once) {
    const int sample = first + static_cast<int>(threadIdx.x) / lanes;
    const bool present = sample < shape.sample_stride;  // all lanes exchange, present or not
    const int32_t label = present ? label_of(shape, labels, step, slot_node, node, sample) : -1;
    const int columns = present ? shape.columns : 0;
    float* y = of_node + static_cast<int64_t>(sample) * shape.columns;
    float largest = -INFINITY;
    for (int c = lane; c < columns; c += lanes) largest = fmaxf(largest, y[c]);
    largest = largest_of_lanes<lanes>(largest);
    float sum = 0;
    for (int c = lane; c < columns; c += lanes) sum += expf(y[c] - largest);
    const float of_label = label >= 0 ? y[label] - largest : 0.0f;  // read before others write
    sum = sum_of_lanes<lanes>(sum);
    if (label >= 0 && lane == 0) loss += static_cast<double>(logf(sum)) - of_label;
    for (int c = lane; c < columns; c += lanes) {
      const float weight = expf(y[c] - largest) / sum;
      y[c] = label < 0 ? 0.0f : scale * (weight - (c == label ? 1.0f : 0.0f));
    }
  }
  loss = block_sum(loss);
  if (threadIdx.x == 0) partial[slot_node] = loss;
}

// A block per slot: losses[slot] = the sum of its nodes' parts times the scale of labels, or
// without counts of them the step's.
__global__ void __launch_bounds__(block_threads)
    loss_kernel(ErrorShape shape, const int32_t* counts, const SlotStep* steps,
                const double* partial, double* losses) {
  const int slot = blockIdx.x;
  if (steps[slot].samples == 0) return;
  const double scale =
      counts ? label_scale(shape, counts, slot) : static_cast<double>(steps[slot].loss_scale);
  double sum = 0;
  for (int node = threadIdx.x; node < shape.nodes; node += block_threads) {
    sum += partial[static_cast<int64_t>(slot) * shape.nodes + node];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) losses[slot] = scale * sum;
}

void enqueue_loss(const ErrorShape& shape, const int32_t* counts, const SlotStep* steps,
                  const double* partial, double* losses, cudaStream_t stream) {
  launch(loss_kernel, dim3(shape.slots), dim3(block_threads), 0, stream, shape, counts, steps,
         partial, losses);
}

}  // namespace

void enqueue_squared_error(const ErrorShape& shape, const float* targets, const uint8_t* counted,
                           const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                           double* partial, double* losses, cudaStream_t stream) {
  launch(squared_error_kernel, dim3(shape.nodes, shape.slots), dim3(block_threads), 0, stream,
         shape, targets, counted, steps, outputs, output_slot_stride, partial);
  enqueue_loss(shape, nullptr, steps, partial, losses, stream);
}

void enqueue_cross_entropy(const ErrorShape& shape, const Labels& labels, const SlotStep* steps,
                           float* outputs, int64_t output_slot_stride, int32_t* counts,
                           double* partial, double* losses, cudaStream_t stream) {
  launch(label_count_kernel, blocks(shape.nodes, block_threads / 32, shape.slots),
         dim3(block_threads), 0, stream, shape, labels, steps, counts);
  with_lanes(shape.columns, [&](auto lanes, int) {
    launch(cross_entropy_kernel<decltype(lanes)::value>, dim3(shape.nodes, shape.slots),
           dim3(block_threads), 0, stream, shape, labels, counts, steps, outputs,
           output_slot_stride, partial);
  });
  enqueue_loss(shape, counts, steps, partial, losses, stream);
}

}  // namespace posattn::cuda
