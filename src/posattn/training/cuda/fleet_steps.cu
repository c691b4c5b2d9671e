#include "posattn/kernels/cuda/adam.cuh"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/training/cuda/fleet_steps.h"

namespace posattn::cuda {
namespace {

constexpr int threads = 256;

__device__ inline bool finite(float x) { return fabsf(x) <= 3.402823466e38f; }
__device__ inline bool finite(double x) { return fabs(x) <= 1.7976931348623157e308; }

// The loss of the step under way, which is then over.
__device__ inline void count_loss(const FleetArrays& fleet, int slot) {
  if (fleet.steps[slot].samples == 0) return;
  SlotCursor& cursor = fleet.cursors[slot];
  const double loss = fleet.losses[slot];
  if (finite(loss)) {
    cursor.summed_loss += loss;
  } else {
    cursor.bad_loss = loss;
    cursor.bad_position = cursor.position;
  }
  fleet.steps[slot].samples = 0;
}

__global__ void begin_step_kernel(FleetArrays fleet) {
  const int slot = static_cast<int>(blockIdx.x * threads + threadIdx.x);
  if (slot >= fleet.slots) return;
  count_loss(fleet, slot);
  SlotCursor& cursor = fleet.cursors[slot];
  if (cursor.bad_position > 0 || cursor.position >= cursor.steps) {
    fleet.current[slot].step.samples = 0;
    return;
  }
  fleet.current[slot] = fleet.plans[cursor.plan + cursor.position];
  fleet.steps[slot] = fleet.current[slot].step;
  ++cursor.position;
}

// Which of four neighbouring numbers are trained.
struct FourTrained {
  uint8_t x, y, z, w;
};

// The sum of every thread's value, in an order that depends on the number of threads alone.
__device__ double block_sum(double value) {
  __shared__ double partial[threads];
  const int thread = static_cast<int>(threadIdx.x);
  partial[thread] = value;
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (thread < half) partial[thread] += partial[thread + half];
    __syncthreads();
  }
  const double sum = partial[0];
  __syncthreads();
  return sum;
}

__device__ inline double square(float value, uint8_t trained) {
  return trained != 0 ? static_cast<double>(value) * value : 0.0;
}

__global__ void __launch_bounds__(threads) squares_kernel(FleetArrays fleet) {
  const int part = static_cast<int>(blockIdx.x), slot = static_cast<int>(blockIdx.y);
  if (fleet.steps[slot].samples == 0) return;
  const auto* gradient = reinterpret_cast<const float4*>(fleet.gradients + slot * fleet.parameters);
  const auto* trained = reinterpret_cast<const FourTrained*>(fleet.trained);
  double sum = 0;
  for (int64_t four = part * threads + threadIdx.x; four < fleet.parameters / 4;
       four += norm_parts * threads) {
    const float4 g = gradient[four];
    const FourTrained t = trained[four];
    sum += square(g.x, t.x) + square(g.y, t.y) + square(g.z, t.z) + square(g.w, t.w);
  }
  double* sums = fleet.squares + slot * 2 * norm_parts + part;
  sum = block_sum(sum);
  if (threadIdx.x == 0) sums[0] = sum;
  if (!(fleet.current[slot].clip_relative > 0)) return;
  const auto* second =
      reinterpret_cast<const float4*>(fleet.state + (2 * fleet.slots + slot) * fleet.parameters);
  double moments = 0;
  for (int64_t four = part * threads + threadIdx.x; four < fleet.parameters / 4;
       four += norm_parts * threads) {
    const float4 v = second[four];
    moments += static_cast<double>(v.x) + v.y + v.z + v.w;
  }
  moments = block_sum(moments);
  if (threadIdx.x == 0) sums[norm_parts] = moments;
}

__device__ double root_of_parts(const double* sums) {
  double sum = 0;
#pragma unroll
  for (int part = 0; part < norm_parts; ++part) sum += sums[part];
  return sqrt(sum);
}

// What a slot's gradient is multiplied by.
__device__ float clip_scale(const FleetArrays& fleet, int slot) {
  const StepPlan& plan = fleet.current[slot];
  const double* sums = fleet.squares + slot * 2 * norm_parts;
  double limit = plan.clip, slack = 1e-6;
  if (plan.clip_relative > 0) {
    limit = plan.clip_relative * root_of_parts(sums + norm_parts);
    slack = 0;
  }
  if (!(limit > 0)) return 1;
  const double scale = limit / (root_of_parts(sums) + slack);
  return scale < 1 ? static_cast<float>(scale) : 1.0f;
}

template <bool clip>
__global__ void __launch_bounds__(threads) adam_kernel(FleetArrays fleet) {
  const int slot = static_cast<int>(blockIdx.y);
  const int64_t four = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (four * 4 >= fleet.parameters) return;
  if (fleet.steps[slot].samples == 0 || !finite(fleet.losses[slot])) return;
  const AdamNumbers<float> numbers = fleet.current[slot].adam;
  const int64_t array = fleet.slots * fleet.parameters;  // weights to first to second moments
  const int64_t at = slot * fleet.parameters;
  auto* weights = reinterpret_cast<float4*>(fleet.state + at);
  auto* first = reinterpret_cast<float4*>(fleet.state + array + at);
  auto* second = reinterpret_cast<float4*>(fleet.state + 2 * array + at);
  const FourTrained trained = reinterpret_cast<const FourTrained*>(fleet.trained)[four];
  float4 g = reinterpret_cast<const float4*>(fleet.gradients + at)[four];
  float4 m = first[four], v = second[four], w = weights[four];
  if (clip) {
    const float scale = clip_scale(fleet, slot);
    g = make_float4(g.x * scale, g.y * scale, g.z * scale, g.w * scale);
  }
  const bool maps_only = fleet.current[slot].decays_maps_only != 0;
  const auto step = [&](uint8_t kind, float gradient, float& m1, float& m2, float& weight) {
    if (kind == 0) return;
    AdamNumbers<float> its = numbers;
    if (maps_only && kind != trained_map) {
      its.decay_to_gradient = 0;
      its.keep = 1;
    }
    step_adam(its, gradient, m1, m2, weight);
  };
  step(trained.x, g.x, m.x, v.x, w.x);
  step(trained.y, g.y, m.y, v.y, w.y);
  step(trained.z, g.z, m.z, v.z, w.z);
  step(trained.w, g.w, m.w, v.w, w.w);
  first[four] = m;
  second[four] = v;
  weights[four] = w;
}

// Whether all numbers are finite; all threads get the answer. `count` is a multiple of 4.
__device__ bool all_finite(const float* values, int64_t count) {
  const auto* fours = reinterpret_cast<const float4*>(values);
  bool good = true;
  for (int64_t four = threadIdx.x; four < count / 4; four += threads) {
    const float4 v = fours[four];
    good = good && finite(v.x) && finite(v.y) && finite(v.z) && finite(v.w);
  }
  return block_sum(good ? 0 : 1) == 0;
}

__global__ void __launch_bounds__(threads)
    end_epoch_kernel(FleetArrays fleet, const int32_t* slots) {
  const int slot = slots[blockIdx.x];
  if (threadIdx.x == 0) count_loss(fleet, slot);
  const float* weights = fleet.state + slot * fleet.parameters;
  const float* second = weights + 2 * (fleet.slots * fleet.parameters);
  const bool weights_finite = all_finite(weights, fleet.parameters);
  const bool squares_finite = all_finite(second, fleet.parameters);
  if (threadIdx.x != 0) return;
  fleet.cursors[slot].bad_weights = weights_finite ? 0 : 1;
  fleet.cursors[slot].bad_squares = squares_finite ? 0 : 1;
}

__global__ void __launch_bounds__(threads)
    begin_epoch_kernel(FleetArrays fleet, const EpochBegin* slots) {
  const int slot = slots[blockIdx.y].slot;
  const int64_t four = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (four == 0) {
    SlotCursor start;
    start.plan = fleet.cursors[slot].plan;
    start.steps = fleet.cursors[slot].steps;
    start.position = slots[blockIdx.y].rests != 0 ? start.steps : 0;
    fleet.cursors[slot] = start;
  }
  if (four * 4 >= fleet.parameters) return;
  const int64_t array = fleet.slots * fleet.parameters;
  for (int part = 0; part < 3; ++part) {
    const int64_t at = part * array + slot * fleet.parameters;
    reinterpret_cast<float4*>(fleet.backup + at)[four] =
        reinterpret_cast<const float4*>(fleet.state + at)[four];
  }
}

unsigned blocks_of(int64_t count) { return static_cast<unsigned>(ceil_div(count, threads)); }

}  // namespace

void begin_step(const FleetArrays& fleet, cudaStream_t stream) {
  launch(begin_step_kernel, blocks_of(fleet.slots), threads, 0, stream, fleet);
}

void sum_gradient_squares(const FleetArrays& fleet, cudaStream_t stream) {
  launch(squares_kernel, dim3(norm_parts, static_cast<unsigned>(fleet.slots)), threads, 0, stream,
         fleet);
}

void update_weights(const FleetArrays& fleet, bool clip, cudaStream_t stream) {
  const dim3 grid(blocks_of(fleet.parameters / 4), static_cast<unsigned>(fleet.slots));
  launch(clip ? adam_kernel<true> : adam_kernel<false>, grid, threads, 0, stream, fleet);
}

void end_epoch(const FleetArrays& fleet, const int32_t* slots, int count, cudaStream_t stream) {
  launch(end_epoch_kernel, static_cast<unsigned>(count), threads, 0, stream, fleet, slots);
}

void begin_epoch(const FleetArrays& fleet, const EpochBegin* slots, int count,
                 cudaStream_t stream) {
  const dim3 grid(blocks_of(fleet.parameters / 4), static_cast<unsigned>(count));
  launch(begin_epoch_kernel, grid, threads, 0, stream, fleet, slots);
}

}  // namespace posattn::cuda
