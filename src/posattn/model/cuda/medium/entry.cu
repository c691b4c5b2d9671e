// x = value a + b_i for node i, where it is formed: with the encoder [a | E_p] and its bias e, and
// the row p_i of P, b_i = E_p p_i + e.
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/folding.h"
#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {
namespace {

// Four columns of a row have a thread.
constexpr int threads = 256, row_threads = columns / 4, block_rows = threads / row_threads;

__device__ inline float4 load4(const float* from) { return *reinterpret_cast<const float4*>(from); }

// P of a slot, or null where the encoder sees none.
__device__ const float* positions_of(const Tensors& t, const FoldingStep& step,
                                     const float* positions, int slot) {
  if (t.input_columns == 1) return nullptr;
  return t.stored_positions < 0 ? positions
                                : step.parameters + slot * t.parameter_stride + t.stored_positions;
}

// Blocks are (node, slot), threads columns.
__global__ void __launch_bounds__(columns)
    medium_fold_entry_kernel(Tensors t, FoldingStep step, const float* positions) {
  const int node = blockIdx.x, slot = blockIdx.y, column = threadIdx.x;
  if (step.slots[slot].samples == 0) return;
  const float* parameters = step.parameters + slot * t.parameter_stride;
  const float* encoder = parameters + t.encoder.weight + column * t.input_columns;
  const float* p = positions_of(t, step, positions, slot);
  float* entry = step.folded + slot * t.folded_size + t.entry_place;
  float sum = parameters[t.encoder.bias + column];
  for (int k = 0; k < t.input_columns - 1; ++k) {
    sum += encoder[1 + k] * p[node * (t.input_columns - 1) + k];
  }
  entry[(1 + node) * columns + column] = sum;
  if (node == 0) entry[column] = encoder[0];
}

// d[a | E_p] = [da | sum of db_i p_i^T], de = sum of db_i. Blocks are (encoder's column, slot).
__global__ void __launch_bounds__(columns)
    medium_unfold_entry_kernel(Tensors t, FoldingStep step, const float* positions) {
  const int input = blockIdx.x, slot = blockIdx.y, column = threadIdx.x;
  if (step.slots[slot].samples == 0) return;
  const float* dentry = step.folded_gradients + slot * t.folded_size + t.entry_place;
  float* gradients = step.gradients + slot * t.parameter_stride;
  float* dencoder = gradients + t.encoder.weight + column * t.input_columns;
  if (input == 0) {
    float sum = 0;
    for (int i = 0; i < t.nodes; ++i) sum += dentry[(1 + i) * columns + column];
    gradients[t.encoder.bias + column] = sum;
    dencoder[0] = dentry[column];
    return;
  }
  const float* p = positions_of(t, step, positions, slot) + input - 1;
  float sum = 0;
  for (int i = 0; i < t.nodes; ++i) {
    sum += dentry[(1 + i) * columns + column] * p[i * (t.input_columns - 1)];
  }
  dencoder[input] = sum;
}

// Blocks are (rows, slot).
__global__ void __launch_bounds__(threads) medium_entry_forward_kernel(Layer layer, float* rows) {
  const int slot = blockIdx.y, nodes = layer.nodes;
  const int row = static_cast<int>(blockIdx.x) * block_rows + threadIdx.x / row_threads;
  const int column = threadIdx.x % row_threads * 4;
  const int sample = row / nodes, node = row - sample * nodes;
  if (sample >= layer.steps[slot].samples) return;
  const float* entry = layer.folded + slot * layer.folded_size + layer.entry;
  const float value = layer.inputs[(int64_t{slot} * nodes + node) * layer.samples + sample];
  const float4 a = load4(entry + column), b = load4(entry + (1 + node) * columns + column);
  *reinterpret_cast<float4*>(rows + (int64_t{slot} * layer.samples * nodes + row) * columns +
                             column) =
      make_float4(value * a.x + b.x, value * a.y + b.y, value * a.z + b.z, value * a.w + b.w);
}

__device__ inline void add(float4& sum, float factor, float4 x) {
  sum.x += factor * x.x;
  sum.y += factor * x.y;
  sum.z += factor * x.z;
  sum.w += factor * x.w;
}

// da and db of a group's samples. Blocks are (group, slot).
__global__ void __launch_bounds__(threads)
    medium_entry_backward_kernel(Layer layer, const float* errors, int group) {
  __shared__ float4 parts[threads];
  const int slot = blockIdx.y, nodes = layer.nodes, thread = threadIdx.x;
  const int present = layer.steps[slot].samples;
  if (present == 0) return;
  const int begin = static_cast<int>(blockIdx.x) * group;
  const int end = present < begin + group ? present : begin + group;
  float* gradients =
      layer.partials + (int64_t{slot} * gridDim.x + blockIdx.x) * layer.folded_size + layer.entry;
  const int column = thread % row_threads * 4;
  float4 of_value = make_float4(0, 0, 0, 0);
  for (int node = thread / row_threads; node < nodes; node += block_rows) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
    for (int sample = begin; sample < end; ++sample) {
      const int64_t row = (int64_t{slot} * layer.samples + sample) * nodes + node;
      const float4 x = load4(errors + row * columns + column);
      add(sum, 1, x);
      add(of_value, layer.inputs[(int64_t{slot} * nodes + node) * layer.samples + sample], x);
    }
    *reinterpret_cast<float4*>(gradients + (1 + node) * columns + column) = sum;
  }
  parts[thread] = of_value;
  __syncthreads();
  if (thread >= row_threads) return;
  for (int other = 1; other < block_rows; ++other) {
    add(of_value, 1, parts[other * row_threads + thread]);
  }
  *reinterpret_cast<float4*>(gradients + column) = of_value;
}

}  // namespace

void enqueue_fold_entry(const Tensors& tensors, int slots, const FoldingStep& step,
                        const float* positions) {
  launch(medium_fold_entry_kernel, dim3(tensors.nodes, slots), dim3(columns), 0, step.stream,
         tensors, step, positions);
}

void enqueue_unfold_entry(const Tensors& tensors, int slots, const FoldingStep& step,
                          const float* positions) {
  launch(medium_unfold_entry_kernel, dim3(tensors.input_columns, slots), dim3(columns), 0,
         step.stream, tensors, step, positions);
}

void enqueue_entry_forward(const Layer& layer, float* rows, cudaStream_t stream) {
  const int64_t blocks = ceil_div(int64_t{1} * layer.samples * layer.nodes, block_rows);
  launch(medium_entry_forward_kernel, dim3(static_cast<unsigned>(blocks), layer.slots),
         dim3(threads), 0, stream, layer, rows);
}

void enqueue_entry_backward(const Layer& layer, const float* errors, Precision precision,
                            cudaStream_t stream) {
  launch(medium_entry_backward_kernel, dim3(groups(layer, precision), layer.slots), dim3(threads),
         0, stream, layer, errors, group_samples(layer, precision));
}

}  // namespace posattn::cuda::medium
