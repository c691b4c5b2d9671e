#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/losses.h"

namespace posattn::cuda {
namespace {

// One block per (node, slot).
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

// One block per slot.
__global__ void __launch_bounds__(block_threads)
    label_scale_kernel(ErrorShape shape, Labels labels, const SlotStep* steps, double* scales) {
  const int slot = blockIdx.x;
  const SlotStep step = steps[slot];
  if (step.samples == 0) return;
  int count = 0;
  for (int i = threadIdx.x; i < shape.nodes * shape.sample_stride; i += block_threads) {
    const int node = i / shape.sample_stride;
    const int64_t slot_node = static_cast<int64_t>(slot) * shape.nodes + node;
    count += label_of(shape, labels, step, slot_node, node, i % shape.sample_stride) >= 0 ? 1 : 0;
  }
  count = block_sum(count);
  if (threadIdx.x == 0) scales[slot] = count == 0 ? 0.0 : 1.0 / count;
}

// One block per (node, slot); `lanes` lanes share a sample.
template <int lanes>
__global__ void __launch_bounds__(block_threads)
    cross_entropy_kernel(ErrorShape shape, Labels labels, const double* scales,
                         const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                         double* partial) {
  constexpr int at_once = block_threads / lanes;
  const int node = blockIdx.x, slot = blockIdx.y, lane = threadIdx.x % lanes;
  const SlotStep step = steps[slot];
  if (step.samples == 0) return;
  const int64_t slot_node = static_cast<int64_t>(slot) * shape.nodes + node;
  const auto scale = static_cast<float>(scales[slot]);
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
    double sum = 0;
    for (int c = lane; c < columns; c += lanes) sum += expf(y[c] - largest);
    const double of_label = label >= 0 ? y[label] - largest : 0.0f;  // read before others write
    sum = sum_of_lanes<lanes>(sum);
    if (label >= 0 && lane == 0) loss += log(sum) - of_label;
    for (int c = lane; c < columns; c += lanes) {
      const float weight = static_cast<float>(expf(y[c] - largest) / sum);
      y[c] = label < 0 ? 0.0f : scale * (weight - (c == label ? 1.0f : 0.0f));
    }
  }
  loss = block_sum(loss);
  if (threadIdx.x == 0) partial[slot_node] = loss;
}

// losses[slot] = the sum of its nodes' parts times scales[slot], or without scales the step's.
__global__ void __launch_bounds__(block_threads)
    loss_kernel(ErrorShape shape, const double* scales, const SlotStep* steps,
                const double* partial, double* losses) {
  const int slot = blockIdx.x * block_threads + threadIdx.x;
  if (slot >= shape.slots || steps[slot].samples == 0) return;
  double sum = 0;
  for (int node = 0; node < shape.nodes; ++node) {
    sum += partial[static_cast<int64_t>(slot) * shape.nodes + node];
  }
  losses[slot] = (scales ? scales[slot] : static_cast<double>(steps[slot].loss_scale)) * sum;
}

void enqueue_loss(const ErrorShape& shape, const double* scales, const SlotStep* steps,
                  const double* partial, double* losses, cudaStream_t stream) {
  launch(loss_kernel, blocks(shape.slots, block_threads, 1), dim3(block_threads), 0, stream, shape,
         scales, steps, partial, losses);
}

}  // namespace

void enqueue_squared_error(const ErrorShape& shape, const float* targets, const uint8_t* counted,
                           const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                           double* partial, double* losses, cudaStream_t stream) {
  launch(squared_error_kernel, dim3(shape.nodes, shape.slots), dim3(block_threads), 0, stream,
         shape, targets, counted, steps, outputs, output_slot_stride, partial);
  enqueue_loss(shape, nullptr, steps, partial, losses, stream);
}

void enqueue_label_scales(const ErrorShape& shape, const Labels& labels, const SlotStep* steps,
                          double* scales, cudaStream_t stream) {
  launch(label_scale_kernel, dim3(shape.slots), dim3(block_threads), 0, stream, shape, labels,
         steps, scales);
}

void enqueue_cross_entropy(const ErrorShape& shape, const Labels& labels, const double* scales,
                           const SlotStep* steps, float* outputs, int64_t output_slot_stride,
                           double* partial, double* losses, cudaStream_t stream) {
  with_lanes(shape.columns, [&](auto lanes, int) {
    launch(cross_entropy_kernel<decltype(lanes)::value>, dim3(shape.nodes, shape.slots),
           dim3(block_threads), 0, stream, shape, labels, scales, steps, outputs,
           output_slot_stride, partial);
  });
  enqueue_loss(shape, scales, steps, partial, losses, stream);
}

}  // namespace posattn::cuda
