#include <algorithm>
#include <vector>

#include "posattn/model/cuda/folding.h"
#include "posattn/model/cuda/folding_attention.cuh"
#include "posattn/model/cuda/folding_maps.cuh"
#include "posattn/model/cuda/folding_scores.cuh"

namespace posattn::cuda {
namespace {

constexpr int vector_floats = 512;  // behind the matrices

// Tasks of a layer: M_0 (with c), M_1, ..., then each head's attention or scores. One more layer
// stands for the decoder. Blocks are (task, layer, slot).
__global__ void __launch_bounds__(folding_threads, 2)
    fold_kernel(FoldingPlan plan, const SlotStep* slots, const float* parameters,
                FoldedWeights out) {
  const int task = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  const SlotStep step = slots[slot];
  if (step.samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const FoldingRun run = {parameters + slot * plan.parameter_stride,
                          out.natural + slot * plan.folded_size,
                          nullptr,
                          nullptr,
                          slot,
                          layer};
  if (layer == plan.depth) {
    if (task == 0) fold_decoder(plan, run, shared);
  } else if (task <= plan.heads) {
    fold_map(plan, run, task, out, shared);
  } else if (plan.from_data) {
    fold_scores(plan, run, task - plan.heads - 1, out, shared);
  } else {
    fold_attention(plan, run, task - plan.heads - 1, step.real_nodes, shared);
  }
}

// Tasks of a layer: the values' factors; the attention's, by head (and side: queries, keys); last
// the map into the layer, which for attention from data must follow the others.
__device__ inline int attention_tasks(const FoldingPlan& plan) {
  return plan.from_data ? 2 * plan.heads : plan.heads;
}

__global__ void __launch_bounds__(folding_threads, 2)
    unfold_kernel(FoldingPlan plan, int first_task, const SlotStep* slots, const float* parameters,
                  float* natural, const float* folded_gradients, float* gradients) {
  const int task = first_task + blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  const SlotStep step = slots[slot];
  if (step.samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const FoldingRun run = {parameters + slot * plan.parameter_stride,
                          natural + slot * plan.folded_size,
                          folded_gradients + slot * plan.folded_size,
                          gradients + slot * plan.parameter_stride,
                          slot,
                          layer};
  const bool entering = task == 1 + attention_tasks(plan);
  if (layer == plan.depth) {
    if (entering) unfold_decoder(plan, run, shared);
  } else if (task == 0) {
    unfold_values(plan, run, shared);
  } else if (entering) {
    unfold_entering(plan, run, shared);
  } else if (plan.from_data) {
    unfold_scores(plan, run, (task - 1) / 2, (task - 1) % 2, shared);
  } else {
    unfold_attention(plan, run, task - 1, step.real_nodes, shared);
  }
}

__device__ inline float4 add4(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

__global__ void sum_groups_kernel(const SlotStep* slots, const float* partials, float* out,
                                  int count, int group, int64_t size) {
  const int64_t i = 4 * (int64_t{1} * blockIdx.x * blockDim.x + threadIdx.x);
  const int slot = blockIdx.y;
  if (i >= size || slots[slot].samples == 0) return;
  const float* from = partials + slot * count * size + i;
  float4 sum = make_float4(0, 0, 0, 0), group_sum = sum;
  constexpr int batch = 8;  // loads under way together
  for (int first = 0, in_group = 0; first < count; first += batch) {
    float4 x[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      x[k] = first + k < count ? load4(from + (first + k) * size) : make_float4(0, 0, 0, 0);
    }
#pragma unroll
    for (int k = 0; k < batch; ++k) {
      group_sum = add4(group_sum, x[k]);
      if (++in_group < group && first + k + 1 < count) continue;
      sum = add4(sum, group_sum);
      group_sum = make_float4(0, 0, 0, 0);
      in_group = 0;
    }
  }
  store4(out + slot * size + i, sum.x, sum.y, sum.z, sum.w);
}

constexpr size_t shared_bytes(int matrices) {
  return (matrices * matrix_floats + vector_floats) * sizeof(float);
}
static_assert(attention_shared_floats <= 5 * matrix_floats);

}  // namespace

Folding::Folding(const FleetShape& shape)
    : slots_(shape.slots),
      kept_(FoldingPlan::kept_size(shape.spec) * shape.spec.depth * shape.slots),
      plan_(shape.spec, shape.precision == Precision::fp32, nullptr, kept_.data()) {
  if (shape.spec.uses_positions() && !shape.spec.stores_positions()) {
    const std::vector<double> positions = formula_positions(shape.spec);
    positions_ = DeviceBuffer<float>(std::vector<float>(positions.begin(), positions.end()));
    plan_.positions = positions_.data();
  }
  allow_shared_bytes(fold_kernel, shared_bytes(5));
  allow_shared_bytes(unfold_kernel, shared_bytes(4 + most_heads));
}

bool Folding::supports(const ModelSpec& spec) {
  const bool positional = spec.attention == AttentionSource::positions && !spec.positions_in_input;
  const bool standard = spec.attention == AttentionSource::data && spec.positions_in_input;
  const bool learned = spec.uses_positions() && spec.encoding == Encoding::learned;
  return (positional || standard) && !learned && !spec.rope && spec.width == 64 &&
         spec.mlp_width == 64 && spec.mlp_depth == 2 && spec.heads <= most_heads &&
         64 % spec.heads == 0 && spec.depth >= 2 && spec.data_columns == 1 &&
         spec.output_columns == 1 && spec.nodes() <= most_nodes &&
         (!spec.uses_positions() || spec.encoding_size <= most_encoding);
}

int64_t Folding::bytes(const FleetShape& shape) {
  return FoldingPlan::kept_size(shape.spec) * shape.spec.depth * shape.slots *
         static_cast<int64_t>(sizeof(float));
}

void Folding::enqueue_fold(const SlotStep* slots, const float* parameters, const FoldedWeights& out,
                           cudaStream_t stream) {
  launch(fold_kernel, dim3(1 + 2 * plan_.heads, plan_.depth + 1, slots_), dim3(folding_threads),
         shared_bytes(5), stream, plan_, slots, parameters, out);
}

void Folding::enqueue_unfold(const SlotStep* slots, const float* parameters,
                             const FoldedWeights& folded, const float* folded_gradients,
                             float* gradients, cudaStream_t stream) {
  const int tasks = 2 + (plan_.from_data ? 2 : 1) * plan_.heads;
  const auto enqueue = [&](int first_task, int count) {
    launch(unfold_kernel, dim3(count, plan_.depth + 1, slots_), dim3(folding_threads),
           shared_bytes(std::max(5, 4 + plan_.heads)), stream, plan_, first_task, slots, parameters,
           folded.natural, folded_gradients, gradients);
  };
  if (plan_.from_data) {
    enqueue(0, tasks - 1);
    enqueue(tasks - 1, 1);
  } else {
    enqueue(0, tasks);
  }
}

void enqueue_sum_groups(const SlotStep* slots, int slot_count, const float* partials, float* out,
                        int count, int group, int64_t size, cudaStream_t stream) {
  constexpr int threads = 128;
  launch(sum_groups_kernel, dim3(ceil_div(size / 4, threads), slot_count), dim3(threads), 0, stream,
         slots, partials, out, count, group, size);
}

}  // namespace posattn::cuda
