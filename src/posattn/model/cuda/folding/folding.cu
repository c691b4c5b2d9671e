#include <algorithm>

#include "posattn/model/cuda/folding/attention.cuh"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/maps.cuh"
#include "posattn/model/cuda/folding/scores.cuh"
#include "posattn/model/spec/spec_fields.h"

namespace posattn::cuda {
namespace {

constexpr int vector_floats = 512;  // behind the matrices

// Tasks of a layer: M_0 (with c), M_1, ..., then each head's attention or scores. One more layer
// stands for the decoder. Blocks are (task, layer, slot).
__global__ void __launch_bounds__(folding_threads, 2)
    fold_kernel(FoldingPlan plan, FoldingStep step, PackedMaps packed) {
  const int task = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  const SlotStep slot_step = step.slots[slot];
  if (slot_step.samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const FoldingRun run(plan, step, slot, layer);
  if (layer == plan.depth) {
    if (task == 0) fold_decoder(plan, run, shared);
  } else if (task <= plan.heads) {
    fold_map(plan, run, task, packed, shared);
  } else if (plan.from_data) {
    fold_scores(plan, run, task - plan.heads - 1, packed, shared);
  } else {
    fold_attention(plan, run, task - plan.heads - 1, slot_step.real_nodes, shared);
  }
}

// Tasks of a layer: the values' factors; the attention's, by head (and side: queries, keys); last
// the map into the layer, which for attention from data must follow the others.
__device__ inline int attention_tasks(const FoldingPlan& plan) {
  return plan.from_data ? 2 * plan.heads : plan.heads;
}

__global__ void __launch_bounds__(folding_threads, 2)
    unfold_kernel(FoldingPlan plan, FoldingStep step, int first_task) {
  const int task = first_task + blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  const SlotStep slot_step = step.slots[slot];
  if (slot_step.samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const FoldingRun run(plan, step, slot, layer);
  const bool input_map = task == 1 + attention_tasks(plan);
  if (layer == plan.depth) {
    if (input_map) unfold_decoder(plan, run, shared);
  } else if (task == 0) {
    unfold_values(plan, run, shared);
  } else if (input_map) {
    unfold_input_map(plan, run, shared);
  } else if (plan.from_data) {
    unfold_scores(plan, run, (task - 1) / 2, (task - 1) % 2, shared);
  } else {
    unfold_attention(plan, run, task - 1, slot_step.real_nodes, shared);
  }
}

__device__ inline float4 add4(float4 a, float4 b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

// The first warp of the slot's first block makes losses[slot].
__device__ inline void sum_losses(const SlotStep& step, const TileLosses& losses) {
  if (losses.parts == nullptr || blockIdx.x > 0 || threadIdx.x >= 32 || threadIdx.y > 0) return;
  double sum = 0;
  for (int k = threadIdx.x; k < losses.count; k += 32) {
    sum += losses.parts[blockIdx.y * losses.count + k];
  }
  for (int step_size = 16; step_size > 0; step_size /= 2) {
    sum += __shfl_xor_sync(0xffffffffu, sum, step_size);
  }
  if (threadIdx.x == 0) losses.out[blockIdx.y] = sum * step.loss_scale;
}

__global__ void sum_groups_kernel(const SlotStep* slots, const float* partials, float* out,
                                  int count, int group, int64_t size, TileLosses losses) {
  const int64_t i = 4 * (int64_t{1} * blockIdx.x * blockDim.x + threadIdx.x);
  const int slot = blockIdx.y;
  const SlotStep step = slots[slot];
  if (step.samples == 0) return;
  sum_losses(step, losses);
  if (i >= size) return;
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

// The kernel for a few slots, with more loads under way: a warp takes a group, the first warp adds
// the groups. The bits are the same.
constexpr int groups_at_once = 24;
__global__ void sum_groups_at_once(const SlotStep* slots, const float* partials, float* out,
                                   int count, int group, int64_t size, TileLosses losses) {
  __shared__ float4 sums[groups_at_once][32];
  const int64_t i = 4 * (int64_t{1} * blockIdx.x * 32 + threadIdx.x);
  const int slot = blockIdx.y;
  const SlotStep step = slots[slot];
  if (step.samples == 0) return;
  const float* from = partials + slot * count * size + i;
  float4 sum = make_float4(0, 0, 0, 0);
  for (int first = 0; first * group < count; first += groups_at_once) {
    float4 group_sum = make_float4(0, 0, 0, 0);
    if (i < size) {
      const int begin = (first + static_cast<int>(threadIdx.y)) * group;
      const int end = min(begin + group, count);
#pragma unroll 3
      for (int k = begin; k < end; ++k) group_sum = add4(group_sum, load4(from + k * size));
    }
    sums[threadIdx.y][threadIdx.x] = group_sum;
    __syncthreads();
    if (threadIdx.y == 0) {
#pragma unroll
      for (int k = 0; k < groups_at_once; ++k) sum = add4(sum, sums[k][threadIdx.x]);
    }
    __syncthreads();
  }
  if (threadIdx.y == 0 && i < size) store4(out + slot * size + i, sum.x, sum.y, sum.z, sum.w);
  sum_losses(step, losses);
}

constexpr size_t bytes_of(int matrices) {
  return (matrices * matrix_floats + vector_floats) * sizeof(float);
}
// An unfold block's matrices.
int unfold_matrices(int heads) { return std::max(5, 4 + heads); }
static_assert(attention_shared_floats <= 5 * matrix_floats);

}  // namespace

Folding::Folding(const FleetShape& shape, const float* positions)
    : slots_(shape.slots),
      kept_(FoldingPlan::kept_size(shape.spec) * shape.spec.depth * shape.slots),
      plan_(shape.spec, shape.precision == Precision::fp32, positions, kept_.data()) {
  allow_shared_bytes(fold_kernel, bytes_of(5));
  allow_shared_bytes(unfold_kernel, bytes_of(unfold_matrices(most_heads)));
}

bool Folding::supports(const ModelSpec& spec) {
  using S = ModelSpec;  // absent biases are zeros
  const bool known =
      knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention, &S::positions_in_input,
                 &S::encoding, &S::encoding_size, &S::scores, &S::width, &S::heads, &S::depth,
                 &S::mlp_width, &S::mlp_depth, &S::biases) &&
      among(spec.scores, {Scores::dot, Scores::direct});
  const bool attention =
      spec.attention == AttentionSource::positions || spec.attention == AttentionSource::data;
  const bool learned = spec.uses_positions() && spec.encoding == Encoding::learned;
  return known && attention && !learned && spec.width == 64 && spec.mlp_width == 64 &&
         spec.mlp_depth == 2 && spec.heads <= most_heads && 64 % spec.heads == 0 &&
         spec.depth >= 2 && spec.nodes() <= most_nodes &&
         (!spec.uses_positions() || spec.encoding_size <= most_encoding);
}

int64_t Folding::bytes(const FleetShape& shape) {
  return FoldingPlan::kept_size(shape.spec) * shape.spec.depth * shape.slots *
         static_cast<int64_t>(sizeof(float));
}

int64_t Folding::shared_bytes(const ModelSpec& spec) {
  return static_cast<int64_t>(bytes_of(unfold_matrices(spec.heads)));
}

void Folding::enqueue_fold(const FoldingStep& step, const PackedMaps& packed) {
  launch(fold_kernel, dim3(1 + 2 * plan_.heads, plan_.depth + 1, slots_), dim3(folding_threads),
         bytes_of(5), step.stream, plan_, step, packed);
}

void Folding::enqueue_unfold(const FoldingStep& step) {
  const int tasks = 2 + (plan_.from_data ? 2 : 1) * plan_.heads;
  const auto enqueue = [&](int first_task, int count) {
    launch(unfold_kernel, dim3(count, plan_.depth + 1, slots_), dim3(folding_threads),
           bytes_of(unfold_matrices(plan_.heads)), step.stream, plan_, step, first_task);
  };
  if (plan_.from_data) {
    enqueue(0, tasks - 1);
    enqueue(tasks - 1, 1);
  } else {
    enqueue(0, tasks);
  }
}

void enqueue_sum_groups(const SlotStep* slots, int slot_count, const float* partials, float* out,
                        int count, int group, int64_t size, cudaStream_t stream,
                        const TileLosses& losses) {
  constexpr int threads = 128, few_slots = 4;
  if (slot_count <= few_slots) {
    launch(sum_groups_at_once, dim3(ceil_div(size / 4, 32), slot_count), dim3(32, groups_at_once),
           0, stream, slots, partials, out, count, group, size, losses);
  } else {
    launch(sum_groups_kernel, dim3(ceil_div(size / 4, threads), slot_count), dim3(threads), 0,
           stream, slots, partials, out, count, group, size, losses);
  }
}

}  // namespace posattn::cuda
