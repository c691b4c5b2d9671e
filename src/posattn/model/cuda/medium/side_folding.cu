// Folding of scores that do not fold into one matrix (side_tile.cuh). A side's weights are
// [W | W_p] of [x | p_i], where W_p is there if positions are part of it; with x = s E^T + e
//   Q = W E,   b_i = W e + W_p p_i + b,
//   dW = dQ E^T + (sum of db_i) e^T,   dW_p = sum of db_i p_i^T,   db = sum of db_i,
//   dE += W^T dQ,   de += W^T (sum of db_i),
// and queries are divided by sqrt(d_k).
#include <cmath>

#include "posattn/model/cuda/medium/folding_parts.cuh"

namespace posattn::cuda::medium {
namespace {

constexpr int most_columns = 80;
constexpr int entering_blocks = 8;  // each has some rows of dE

// One side of a layer: index 2 h is head h's queries, 2 h + 1 its keys.
struct SideRun {
  __device__ SideRun(const Tensors& t, const Run& run, const FoldingStep& step,
                     const float* positions, int slot, int index)
      : key_size(t.key_size), source(t.source_size), columns(t.side_columns), nodes(t.nodes) {
    const FoldedTensors::Map map = t.of_layer(t.query_key, run.layer);
    const int64_t weight_place = map.weight + int64_t{index} * key_size * source;
    const int64_t bias_place = map.bias + index * key_size;
    weight = run.parameters + weight_place;
    bias = run.parameters + bias_place;
    dweight = run.gradients + weight_place;
    dbias = run.gradients + bias_place;
    const int64_t matrix = run.places.scores + int64_t{index} * columns * size;
    const int64_t table = run.places.score_bias + int64_t{index} * nodes * columns;
    folded = run.folded + matrix;
    folded_biases = run.folded + table;
    dfolded = run.dfolded + matrix;
    dfolded_biases = run.dfolded + table;
    scale = index % 2 == 0 ? rsqrtf(static_cast<float>(key_size)) : 1;
    p = t.stored_positions < 0 ? positions
                               : step.parameters + slot * t.parameter_stride + t.stored_positions;
  }
  // Columns of P that are part of the side.
  __device__ int encoding() const { return source - size; }

  int key_size, source, columns, nodes;
  const float *weight, *bias, *dfolded, *dfolded_biases, *p;
  float *dweight, *dbias, *folded, *folded_biases;
  float scale;
};

// Blocks are (side, layer, slot).
__global__ void __launch_bounds__(threads)
    medium_fold_sides_kernel(Tensors t, FoldingStep step, float* kept, const float* positions) {
  __shared__ float constant[most_columns];
  const int index = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  const Run run(t, step, kept, slot, layer);
  const SideRun side(t, run, step, positions, slot, index);
  const int thread = static_cast<int>(threadIdx.x);
  for (int at = thread; at < side.columns * size; at += threads) {
    const int r = at / size, c = at % size;
    float sum = 0;
    if (r < side.key_size) {
#pragma unroll 8
      for (int k = 0; k < size; ++k)
        sum += side.weight[r * side.source + k] * run.entering[k * size + c];
    }
    side.folded[at] = side.scale * sum;
  }
  if (thread < side.key_size) {
    float sum = side.bias[thread];
    for (int k = 0; k < size; ++k) {
      sum += side.weight[thread * side.source + k] * run.entering_bias[k];
    }
    constant[thread] = sum;
  }
  __syncthreads();
  for (int at = thread; at < side.nodes * side.columns; at += threads) {
    const int node = at / side.columns, r = at % side.columns;
    float sum = 0;
    if (r < side.key_size) {
      sum = constant[r];
      for (int k = 0; k < side.encoding(); ++k) {
        sum += side.weight[r * side.source + size + k] * side.p[node * side.encoding() + k];
      }
    }
    side.folded_biases[at] = side.scale * sum;
  }
}

// sums[r] = sum over nodes of db_i[r]. Ends with a barrier.
__device__ void sum_biases(float* sums, const SideRun& side) {
  const int r = static_cast<int>(threadIdx.x);
  if (r < side.key_size) {
    float sum = 0;
    for (int i = 0; i < side.nodes; ++i) sum += side.dfolded_biases[i * side.columns + r];
    sums[r] = sum;
  }
  __syncthreads();
}

// Blocks are (side, layer, slot).
__global__ void __launch_bounds__(threads)
    medium_unfold_sides_kernel(Tensors t, FoldingStep step, float* kept, const float* positions) {
  __shared__ float sums[most_columns], entering[size * (size + 1)];
  const int index = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  const Run run(t, step, kept, slot, layer);
  const SideRun side(t, run, step, positions, slot, index);
  const int thread = static_cast<int>(threadIdx.x);
  for (int at = thread; at < size * size; at += threads) {
    entering[at / size * (size + 1) + at % size] = run.entering[at];
  }
  sum_biases(sums, side);
  for (int at = thread; at < side.key_size * size; at += threads) {
    const int r = at / size, k = at % size;
    float sum = sums[r] * run.entering_bias[k];
#pragma unroll 8
    for (int c = 0; c < size; ++c) sum += side.dfolded[r * size + c] * entering[k * (size + 1) + c];
    side.dweight[r * side.source + k] = side.scale * sum;
  }
  for (int at = thread; at < side.key_size * side.encoding(); at += threads) {
    const int r = at / side.encoding(), k = at % side.encoding();
    float sum = 0;
    for (int i = 0; i < side.nodes; ++i) {
      sum += side.dfolded_biases[i * side.columns + r] * side.p[i * side.encoding() + k];
    }
    side.dweight[r * side.source + size + k] = side.scale * sum;
  }
  if (thread < side.key_size) side.dbias[thread] = side.scale * sums[thread];
}

// dE and de of all sides, added to what is there. Blocks are (rows, layer, slot).
__global__ void __launch_bounds__(threads)
    medium_unfold_entering_kernel(Tensors t, FoldingStep step, float* kept,
                                  const float* positions) {
  __shared__ float sums[2 * heads][most_columns];
  const int layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  const Run run(t, step, kept, slot, layer);
  const auto side = [&](int index) { return SideRun(t, run, step, positions, slot, index); };
  for (int index = 0; index < 2 * heads; ++index) sum_biases(sums[index], side(index));
  constexpr int rows = size / entering_blocks;
  const int first = static_cast<int>(blockIdx.x) * rows, thread = static_cast<int>(threadIdx.x);
  for (int at = thread; at < rows * size; at += threads) {
    const int k = first + at / size, c = at % size;
    float sum = run.dentering[k * size + c];
    for (int index = 0; index < 2 * heads; ++index) {
      const SideRun one = side(index);
      float of_side = 0;
#pragma unroll 4
      for (int r = 0; r < one.key_size; ++r) {
        of_side += one.weight[r * one.source + k] * one.dfolded[r * size + c];
      }
      sum += one.scale * of_side;
    }
    run.dentering[k * size + c] = sum;
  }
  if (thread >= rows) return;
  float sum = run.dentering_bias[first + thread];
  for (int index = 0; index < 2 * heads; ++index) {
    const SideRun one = side(index);
    float of_side = 0;
    for (int r = 0; r < one.key_size; ++r) {
      of_side += one.weight[r * one.source + first + thread] * sums[index][r];
    }
    sum += one.scale * of_side;
  }
  run.dentering_bias[first + thread] = sum;
}

}  // namespace

void enqueue_fold_sides(const Tensors& tensors, int slots, const FoldingStep& step, float* kept,
                        const float* positions) {
  launch(medium_fold_sides_kernel, dim3(2 * heads, tensors.depth, slots), dim3(threads), 0,
         step.stream, tensors, step, kept, positions);
}

void enqueue_unfold_sides(const Tensors& tensors, int slots, const FoldingStep& step, float* kept,
                          const float* positions) {
  launch(medium_unfold_sides_kernel, dim3(2 * heads, tensors.depth, slots), dim3(threads), 0,
         step.stream, tensors, step, kept, positions);
  launch(medium_unfold_entering_kernel, dim3(entering_blocks, tensors.depth, slots), dim3(threads),
         0, step.stream, tensors, step, kept, positions);
}

}  // namespace posattn::cuda::medium
