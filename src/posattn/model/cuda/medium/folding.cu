#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/model/cuda/medium/folding.h"
#include "posattn/model/cuda/medium/layer.h"

namespace posattn::cuda::medium {
namespace {

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
constexpr int kept_floats = kept_vectors * size;

// One slot's arrays, and those of one layer.
struct Run {
  __device__ Run(const FoldedTensors& t, const FoldingStep& step, float* all_kept, int slot,
                 int at_layer)
      : tensors(t),
        layer(at_layer),
        parameters(step.parameters + slot * t.parameter_stride),
        gradients(step.gradients + slot * t.parameter_stride),
        folded(step.folded + slot * t.folded_size),
        dfolded(step.folded_gradients + slot * t.folded_size),
        kept(all_kept + (int64_t{slot} * t.depth + at_layer) * kept_floats),
        entering(t.entering(at_layer)),
        value(t.of_layer(t.value, at_layer)),
        output(t.of_layer(t.output, at_layer)),
        first(t.of_layer(t.first, at_layer)),
        places(t.places(at_layer)) {}
  const FoldedTensors& tensors;
  int layer;
  const float* parameters;
  float* gradients;
  float* folded;
  const float* dfolded;
  float* kept;
  FoldedTensors::Map entering, value, output, first;
  FoldedTensors::Places places;
};

// A 64 x 64 matrix somewhere.
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
  __device__ void store(float* to, int row_stride = size) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) to[row(i) * row_stride + column(j)] = sum[i][j];
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
__device__ inline void copy_vector(float* to, const float* from) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < size) to[i] = from[i];
  __syncthreads();
}

// c, and the maps of layer 0.
__device__ void fold_vectors(const Run& run, float* shared) {
  const float* p = run.parameters;
  const float *w1x = p + run.first.weight, *w1o = w1x + size, *wo = p + run.output.weight;
  float *x = shared, *w = x + size, *t = w + size, *direct = t + size, *sum = direct + size;
  copy_vector(x, p + run.entering.bias);
  multiply_vector(w, p + run.value.weight, size, x, p + run.value.bias);
  multiply_vector(t, wo, size, w, p + run.output.bias);
  multiply_vector(direct, w1x, 2 * size, x, p + run.first.bias);
  multiply_vector(sum, w1o, 2 * size, t, direct);
  copy_vector(run.folded + run.places.constant, sum);
  copy_vector(run.kept + kept_values * size, w);
  copy_vector(run.kept + kept_outputs * size, t);
  if (run.layer > 0) return;
  copy_vector(x, p + run.entering.weight);
  multiply_vector(sum, w1x, 2 * size, x, nullptr);
  copy_vector(run.folded + run.places.maps, sum);
  multiply_vector(w, p + run.value.weight, size, x, nullptr);
  copy_vector(run.kept + kept_first_values * size, w);
  for (int h = 0; h < heads; ++h) {
    multiply_vector(t, wo, size, w, nullptr, h * head_columns, (h + 1) * head_columns);
    multiply_vector(sum, w1o, 2 * size, t, nullptr);
    copy_vector(run.folded + run.places.maps + (1 + h) * size, sum);
    copy_vector(run.kept + (kept_first_outputs + h) * size, t);
  }
}

// The decoder behind the last W2: w = Wd W2, b = Wd b2 + bd.
__device__ void fold_decoder(const Run& run, float* shared) {
  const FoldedTensors& t = run.tensors;
  const float* decoder = run.parameters + t.decoder.weight;
  float *x = shared, *sum = x + size;
  copy_vector(x, decoder);
  multiply_vector_transposed(sum, sum + size, run.parameters + run.entering.weight, size, x);
  copy_vector(run.folded + t.decoder_place, sum);
  if (threadIdx.x > 0) return;
  float bias = run.parameters[t.decoder.bias];
  for (int k = 0; k < size; ++k) bias += decoder[k] * run.parameters[run.entering.bias + k];
  run.folded[t.decoder_bias_place] = bias;
}

constexpr int matrix_floats = 2 * size * Block::stride;
constexpr int vector_floats = 8 * size + threads;
constexpr size_t folding_bytes = sizeof(float) * (matrix_floats + vector_floats);

// Blocks are (what, layer, slot): vectors, M, V, P. One more layer stands for the decoder.
constexpr int fold_blocks = 4;
__global__ void __launch_bounds__(threads)
    medium_fold_kernel(FoldedTensors t, FoldingStep step, float* kept) {
  const int what = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const Run run(t, step, kept, slot, layer);
  if (what == 0) {
    layer == t.depth ? fold_decoder(run, shared) : fold_vectors(run, shared);
    return;
  }
  if (layer == 0 || layer == t.depth) return;
  const float* p = run.parameters;
  const Strided entering = rows_of(p + run.entering.weight);
  Block block;
  if (what == 1) {
    block.add_product(shared, rows_of(p + run.first.weight, 2 * size), entering);
  } else if (what == 2) {
    block.add_product(shared, rows_of(p + run.value.weight), entering);
  } else {
    block.add_product(shared, rows_of(p + run.first.weight + size, 2 * size),
                      rows_of(p + run.output.weight));
  }
  block.store(run.folded + run.places.maps + (what - 1) * size * size);
}

// With g = W1o^T dc and dw = Wo^T g:
//   db1 = dc,   dbo = g,   dbv = dw,   de = W1x^T dc + Wv^T dw
// `vectors`: dc, g, dw and room.
struct BiasGradients {
  float *dc, *g, *dw, *rest;

  __device__ BiasGradients(const Run& run, float* vectors)
      : dc(vectors), g(dc + size), dw(g + size), rest(dw + size) {
    const float* p = run.parameters;
    copy_vector(dc, run.dfolded + run.places.constant);
    multiply_vector_transposed(g, rest, p + run.first.weight + size, 2 * size, dc);
    multiply_vector_transposed(dw, rest, p + run.output.weight, size, g);
  }
  __device__ void store(const Run& run) const {
    const float* p = run.parameters;
    float *direct = rest, *de = direct + size, *scratch = de + size;
    multiply_vector_transposed(direct, scratch, p + run.first.weight, 2 * size, dc);
    multiply_vector_transposed(de, scratch, p + run.value.weight, size, dw, direct);
    copy_vector(run.gradients + run.first.bias, dc);
    copy_vector(run.gradients + run.output.bias, g);
    copy_vector(run.gradients + run.value.bias, dw);
    copy_vector(run.gradients + run.entering.bias, de);
  }
};

// Layer 0, with one column E: V = Wv E, t_h = Wo_h V_h, m_0 = W1x E, m_h = W1o t_h. With
// r_h = W1o^T dm_h and dV_h = Wo_h^T r_h
//   dW1x = dm_0 E^T + dc e^T,            dW1o = sum_h dm_h t_h^T + dc t^T,
//   dWo = r_h V_h^T (by head) + g w^T,   dWv = dV E^T + dw e^T,   dE = W1x^T dm_0 + Wv^T dV.
__device__ void unfold_first(const Run& run, float* shared) {
  const float* p = run.parameters;
  const float *w1x = p + run.first.weight, *wo = p + run.output.weight;
  const BiasGradients biases(run, shared);
  biases.store(run);
  float* vectors = shared + 3 * size;
  float *dm = vectors, *r = dm + 3 * size, *dv = r + 2 * size, *direct = dv + size;
  float *de = direct + size, *scratch = de + size;
  const int i = static_cast<int>(threadIdx.x);
  if (i < 3 * size) dm[i] = run.dfolded[run.places.maps + i];
  __syncthreads();
  for (int h = 0; h < heads; ++h) {
    multiply_vector_transposed(r + h * size, scratch, w1x + size, 2 * size, dm + (1 + h) * size);
    multiply_vector_transposed(direct, scratch, wo, size, r + h * size);
    if (i / head_columns == h) dv[i] = direct[i];
    __syncthreads();
  }
  multiply_vector_transposed(direct, scratch, w1x, 2 * size, dm);
  multiply_vector_transposed(de, scratch, p + run.value.weight, size, dv, direct);
  copy_vector(run.gradients + run.entering.weight, de);

  const float *entering = p + run.entering.weight, *bias = p + run.entering.bias;
  const float* w = run.kept + kept_values * size;
  const float* v = run.kept + kept_first_values * size;
  Block direct_map;
  direct_map.add_outer(dm, entering);
  direct_map.add_outer(biases.dc, bias);
  direct_map.store(run.gradients + run.first.weight, 2 * size);
  Block attended;
  for (int h = 0; h < heads; ++h) {
    attended.add_outer(dm + (1 + h) * size, run.kept + (kept_first_outputs + h) * size);
  }
  attended.add_outer(biases.dc, run.kept + kept_outputs * size);
  attended.store(run.gradients + run.first.weight + size, 2 * size);
  Block values;
  values.add_outer(dv, entering);
  values.add_outer(biases.dw, bias);
  values.store(run.gradients + run.value.weight);
  for (int at = i; at < size * size; at += threads) {
    const int row = at / size, column = at % size;
    run.gradients[run.output.weight + at] =
        r[column / head_columns * size + row] * v[column] + biases.g[row] * w[column];
  }
}

// dWd = W2 dw + db b2, dW2 = Wd^T dw, db2 = Wd db, dbd = db.
__device__ void unfold_decoder(const Run& run, float* shared) {
  const FoldedTensors& t = run.tensors;
  const float *p = run.parameters, *decoder = p + t.decoder.weight;
  float *dw = shared, *sum = dw + size;
  const float db = run.dfolded[t.decoder_bias_place];
  copy_vector(dw, run.dfolded + t.decoder_place);
  multiply_vector(sum, p + run.entering.weight, size, dw, nullptr);
  Block block;
  block.add_outer(decoder, dw);
  block.store(run.gradients + run.entering.weight);
  const int i = static_cast<int>(threadIdx.x);
  if (i >= size) return;
  run.gradients[t.decoder.weight + i] = sum[i] + db * p[run.entering.bias + i];
  run.gradients[run.entering.bias + i] = db * decoder[i];
  if (i == 0) run.gradients[t.decoder.bias] = db;
}

// A later layer:
//   dW1x = dM E^T + dc e^T,   dE = W1x^T dM + Wv^T dV,   dWv = dV E^T + dw e^T,
//   dW1o = dP Wo^T + dc t^T,  dWo = W1o^T dP + g w^T.
// Blocks are (what, layer, slot), in this order, then biases. Of layer 0, and of one more that
// stands for the decoder, one block does everything.
constexpr int unfold_blocks = 6;
__global__ void __launch_bounds__(threads)
    medium_unfold_kernel(FoldedTensors t, FoldingStep step, float* kept) {
  const int what = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  float* vectors = shared + matrix_floats;
  const Run run(t, step, kept, slot, layer);
  if (layer == 0 || layer == t.depth) {
    if (what > 0) return;
    layer == 0 ? unfold_first(run, shared) : unfold_decoder(run, shared);
    return;
  }
  const float *p = run.parameters, *w1x = p + run.first.weight, *e = p + run.entering.bias;
  const float *dm = run.dfolded + run.places.maps, *dv = dm + size * size, *dp = dv + size * size;
  Block block;
  if (what == 0) {
    block.add_product(shared, rows_of(dm), columns_of(p + run.entering.weight));
    block.add_outer(run.dfolded + run.places.constant, e);
    block.store(run.gradients + run.first.weight, 2 * size);
  } else if (what == 1) {
    block.add_product(shared, columns_of(w1x, 2 * size), rows_of(dm));
    block.add_product(shared, columns_of(p + run.value.weight), rows_of(dv));
    block.store(run.gradients + run.entering.weight);
  } else if (what == 2) {
    const BiasGradients biases(run, vectors);
    block.add_product(shared, rows_of(dv), columns_of(p + run.entering.weight));
    block.add_outer(biases.dw, e);
    block.store(run.gradients + run.value.weight);
  } else if (what == 3) {
    block.add_product(shared, rows_of(dp), columns_of(p + run.output.weight));
    block.add_outer(run.dfolded + run.places.constant, run.kept + kept_outputs * size);
    block.store(run.gradients + run.first.weight + size, 2 * size);
  } else if (what == 4) {
    const BiasGradients biases(run, vectors);
    block.add_product(shared, columns_of(w1x + size, 2 * size), rows_of(dp));
    block.add_outer(biases.g, run.kept + kept_values * size);
    block.store(run.gradients + run.output.weight);
  } else {
    BiasGradients(run, vectors).store(run);
  }
}

}  // namespace

Folding::Folding(const FleetShape& shape)
    : slots_(shape.slots),
      tensors_(shape.spec),
      kept_(int64_t{1} * shape.slots * shape.spec.depth * kept_floats) {
  allow_shared_bytes(medium_fold_kernel, folding_bytes);
  allow_shared_bytes(medium_unfold_kernel, folding_bytes);
}

int64_t Folding::bytes(const FleetShape& shape) {
  return int64_t{1} * shape.slots * shape.spec.depth * kept_floats *
         static_cast<int64_t>(sizeof(float));
}

void Folding::enqueue_fold(const FoldingStep& step) {
  launch(medium_fold_kernel, dim3(fold_blocks, tensors_.depth + 1, slots_), dim3(threads),
         folding_bytes, step.stream, tensors_, step, kept_.data());
}

void Folding::enqueue_unfold(const FoldingStep& step) {
  launch(medium_unfold_kernel, dim3(unfold_blocks, tensors_.depth + 1, slots_), dim3(threads),
         folding_bytes, step.stream, tensors_, step, kept_.data());
}

}  // namespace posattn::cuda::medium
