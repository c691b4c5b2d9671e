// What folding.cu and score_folding.cu share: a run's arrays, and products of 64 x 64 matrices and
// of vectors by a block of 256 threads.
#pragma once

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/model/cuda/medium/folding.h"
#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {

constexpr int size = columns;  // of all matrices
constexpr int threads = 256;
constexpr int head_columns = size / heads;

// Vectors of a layer that the unfold needs again.
enum Kept {
  kept_values,         // w = Wv e + bv
  kept_outputs,        // t = Wo w + bo
  kept_first_values,   // layer 0: V
  kept_first_outputs,  // layer 0: t_h = Wo_h V_h, one for each head
  kept_vectors = kept_first_outputs + heads
};
// With attention from data each head keeps, behind these vectors, Q = Wq E, K = Wk E, q = Wq e + bq
// and their gradients.
struct KeptScores {
  static constexpr int floats = 4 * size * size + 2 * size;
  float *q_matrix, *k_matrix, *dq_matrix, *dk_matrix, *q, *dq;

  __device__ KeptScores(float* kept, int head)
      : q_matrix(kept + kept_vectors * size + head * floats),
        k_matrix(q_matrix + size * size),
        dq_matrix(k_matrix + size * size),
        dk_matrix(dq_matrix + size * size),
        q(dk_matrix + size * size),
        dq(q + size) {}
};
// What is kept of a layer ends with room for a gradient of E = I and e = 0, which nobody reads.
constexpr int unit_floats = size * size + size;
constexpr int64_t kept_floats(bool from_data, bool forms_input) {
  return kept_vectors * size + (from_data ? heads * KeptScores::floats : 0) +
         (forms_input ? unit_floats : 0);
}

// Where one slot's arrays and those of one layer lie.
struct Run {
  __device__ Run(const Tensors& t, const FoldingStep& step, float* all_kept, int slot, int at_layer)
      : tensors(t),
        layer(at_layer),
        one_column(at_layer == 0 && t.unit == nullptr),
        parameters(step.parameters + slot * t.parameter_stride),
        gradients(step.gradients + slot * t.parameter_stride),
        folded(step.folded + slot * t.folded_size),
        dfolded(step.folded_gradients + slot * t.folded_size),
        kept(all_kept + (int64_t{slot} * t.depth + at_layer) * t.kept_stride),
        value(t.of_layer(t.value, at_layer)),
        output(t.of_layer(t.output, at_layer)),
        first(t.of_layer(t.first, at_layer)),
        places(t.places(at_layer)) {
    if (at_layer == 0 && t.unit != nullptr) {
      input_map = t.unit;
      input_bias = input_map + size * size;
      dinput_map = kept + t.kept_stride - unit_floats;
      dinput_bias = dinput_map + size * size;
      return;
    }
    const FoldedTensors::Map map = t.input_map(at_layer);
    input_map = parameters + map.weight;
    input_bias = parameters + map.bias;
    dinput_map = gradients + map.weight;
    dinput_bias = gradients + map.bias;
  }
  const Tensors& tensors;
  int layer;
  bool one_column;  // layer 0 whose x is not formed
  const float* parameters;
  float* gradients;
  float* folded;
  const float* dfolded;
  float* kept;
  // E and e, and their gradients.
  const float *input_map, *input_bias;
  float *dinput_map, *dinput_bias;
  FoldedTensors::Map value, output, first;
  LayerPlaces places;

  // Returns a head's Wq and bq, or Wk and bk.
  __device__ FoldedTensors::Map queries(int head) const { return query_key(2 * head); }
  __device__ FoldedTensors::Map keys(int head) const { return query_key(2 * head + 1); }

 private:
  __device__ FoldedTensors::Map query_key(int index) const {
    const FoldedTensors::Map all = tensors.of_layer(tensors.query_key, layer);
    return {all.weight + index * size * size, all.bias + index * size};
  }
};

// Where a 64 x 64 matrix lies.
struct Strided {
  const float* data;
  int row, column;  // strides
};
__device__ inline Strided rows_of(const float* data, int row = size) { return {data, row, 1}; }
__device__ inline Strided columns_of(const float* data, int row = size) { return {data, 1, row}; }

// Sums of 4 x 4 outputs of a thread.
struct Block {
  static constexpr int stride = size + 1;
  float sum[4][4] = {};

  __device__ static int row(int i) { return static_cast<int>(threadIdx.x) / 16 + 16 * i; }
  __device__ static int column(int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; }

  // sum += A B; `shared` holds two matrices.
  __device__ void add_product(float* shared, Strided a, Strided b) {
    float *left = shared, *right = shared + size * stride;  // [k][i], [k][j]
    __syncthreads();
    for (int at = static_cast<int>(threadIdx.x); at < size * size; at += threads) {
      const int slow = at / size, quick = at % size;
      // Neighbours in memory are read by neighbours.
      const int i = a.column == 1 ? slow : quick, k = a.column == 1 ? quick : slow;
      left[k * stride + i] = a.data[i * a.row + k * a.column];
      const int l = b.column == 1 ? slow : quick, j = b.column == 1 ? quick : slow;
      right[l * stride + j] = b.data[l * b.row + j * b.column];
    }
    __syncthreads();
#pragma unroll 4
    for (int k = 0; k < size; ++k) {
      float x[4], y[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x[i] = left[k * stride + row(i)];
        y[i] = right[k * stride + column(i)];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += x[i] * y[j];
      }
    }
  }
  // sum += x y^T
  __device__ void add_outer(const float* x, const float* y) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sum[i][j] += x[row(i)] * y[column(j)];
    }
  }
  __device__ void store(float* to, int row_stride = size, float factor = 1) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) to[row(i) * row_stride + column(j)] = factor * sum[i][j];
    }
  }
};

// out[i] = W(i, begin .. end - 1) . x + (bias[i]), in shared memory. Ends with a barrier.
__device__ inline void multiply_vector(float* out, const float* w, int row, const float* x,
                                       const float* bias, int begin = 0, int end = size) {
  const int i = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  float sum = 0;
  for (int k = begin + part; k < end; k += 4) sum += w[i * row + k] * x[k];
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  sum += __shfl_xor_sync(0xffffffffu, sum, 2);
  if (part == 0) out[i] = sum + (bias != nullptr ? bias[i] : 0);
  __syncthreads();
}
// out[k] = sum_i W(i, k) x[i] + (bias[k]), with `shared` of 256 floats. Ends with a barrier.
__device__ inline void multiply_vector_transposed(float* out, float* shared, const float* w,
                                                  int row, const float* x,
                                                  const float* bias = nullptr) {
  const int k = static_cast<int>(threadIdx.x) % size, part = static_cast<int>(threadIdx.x) / size;
  float sum = 0;
  for (int i = part; i < size; i += threads / size) sum += w[i * row + k] * x[i];
  shared[threadIdx.x] = sum;
  __syncthreads();
  if (part == 0) {
    for (int other = 1; other < threads / size; ++other) sum += shared[other * size + k];
    out[k] = sum + (bias != nullptr ? bias[k] : 0);
  }
  __syncthreads();
}
// Ends with a barrier.
__device__ inline void copy_vector(float* to, const float* from, float factor = 1) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < size) to[i] = factor * from[i];
  __syncthreads();
}

constexpr int matrix_floats = 2 * size * Block::stride;
constexpr int vector_floats = 8 * size + threads;
constexpr size_t folding_bytes = sizeof(float) * (matrix_floats + vector_floats);

}  // namespace posattn::cuda::medium
