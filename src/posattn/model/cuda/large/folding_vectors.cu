// The vectors of folding (c, g, biases), and outer products of vectors that matrices start from.
// A block is 16 warps: a warp takes a row of a matrix, or the block 32 columns of one. Names as in
// model/engine/folded_stage.h.
#include <algorithm>

#include "posattn/model/cuda/large/folding_vectors.h"

namespace posattn::cuda {
namespace {

constexpr int vector_warps = 16;

// One slot's pointers.
struct VectorRun {
  __device__ VectorRun(const LargeFoldingPlan& plan, const FoldingStep& step, int slot, int layer)
      : parameters(step.parameters + slot * plan.parameter_stride),
        folded(step.folded + slot * plan.folded_size),
        folded_gradients(step.folded_gradients + slot * plan.folded_size),
        gradients(step.gradients + slot * plan.parameter_stride),
        kept(plan.kept_layer(slot, layer)) {}
  const float* parameters;
  float* folded;
  const float* folded_gradients;
  float* gradients;
  float* kept;  // of the layer
};

// A lane's part of x . y.
__device__ float dot_term(const float* x, const float* y, int size) {
  float sum = 0;
  for (int i = threadIdx.x; i < size; i += 32) sum += x[i] * y[i];
  return sum;
}
__device__ float lane_sum(float x) {
  for (int other = 16; other > 0; other /= 2) x += __shfl_xor_sync(0xffffffffu, x, other);
  return x;
}
__device__ void scaled_copy(float factor, const float* from, float* to, int size) {
  for (int i = threadIdx.x; i < size; i += 32) to[i] = factor * from[i];
}

// A warp's part of (W^T x)[column] for W [rows, ...] with rows `stride` apart.
__device__ float column_part(const float* matrix, int64_t stride, const float* x, int rows,
                             int column) {
  float sum = 0;
#pragma unroll 4
  for (int i = threadIdx.y; i < rows; i += vector_warps) sum += matrix[i * stride + column] * x[i];
  return sum;
}
// The warps' parts added in order; the first warp has the sum.
__device__ float column_sum(float part) {
  __shared__ float parts[vector_warps][32];
  parts[threadIdx.y][threadIdx.x] = part;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < vector_warps; ++i) sum += parts[i][threadIdx.x];
  return sum;
}

// Row of u in a layer: W1x's row is kept as that of the first map, and
//   c = b1 + sum_m B_m e + P bv + W1o bo.
__device__ void fold_constant(const LargeFoldingPlan& plan, const VectorRun& run, int layer,
                              int row) {
  const int d = plan.width;
  const int64_t map = int64_t{1} * plan.hidden * d;
  const auto first = plan.of_layer(plan.first, layer);
  const float* w1 = run.parameters + first.weight + int64_t{2} * row * d;
  const float* e = run.parameters + plan.entering(layer).bias;
  float* maps = run.kept + plan.maps + row * d;
  scaled_copy(1, w1, maps, d);
  float sum = dot_term(w1, e, d);
  for (int h = 1; h <= plan.heads; ++h) sum += dot_term(maps + h * map, e, d);
  sum += dot_term(run.kept + plan.values + row * d,
                  run.parameters + plan.of_layer(plan.value, layer).bias, d);
  sum += dot_term(w1 + d, run.parameters + plan.of_layer(plan.output, layer).bias, d);
  sum = lane_sum(sum);
  if (threadIdx.x == 0) {
    run.folded[plan.places(layer).constant + row] = sum + run.parameters[first.bias + row];
  }
}

// Offset of row `row` of the heads' Wq among the stacked [Wq; Wk] of all heads.
__device__ int64_t query_row(const LargeFoldingPlan& plan, int row) {
  return int64_t{1} * (row / plan.width) * 2 * plan.width + row % plan.width;
}

// Wq e + bq
__device__ void fold_query_bias(const LargeFoldingPlan& plan, const VectorRun& run, int layer,
                                int row) {
  const int64_t stacked = query_row(plan, row);
  const auto query_key = plan.of_layer(plan.query_key, layer);
  const float sum = lane_sum(dot_term(run.parameters + query_key.weight + stacked * plan.width,
                                      run.parameters + plan.entering(layer).bias, plan.width));
  if (threadIdx.x == 0) {
    run.kept[plan.query_bias + row] = sum + run.parameters[query_key.bias + stacked];
  }
}

// The decoder behind the last W2: w = Wd W2, b = Wd b2 + bd.
__device__ void fold_decoder(const LargeFoldingPlan& plan, const VectorRun& run) {
  const auto last = plan.entering(plan.depth);
  const float* decoder = run.parameters + plan.decoder.weight;
  const int column = blockIdx.x * 32 + threadIdx.x;
  const bool inside = column < plan.hidden;
  const float sum = column_sum(
      inside ? column_part(run.parameters + last.weight, plan.hidden, decoder, plan.width, column)
             : 0.0f);
  if (threadIdx.y > 0) return;
  if (inside) run.folded[plan.decoder_place + column] = sum;
  if (blockIdx.x > 0) return;
  const float b = lane_sum(dot_term(decoder, run.parameters + last.bias, plan.width));
  if (threadIdx.x == 0) {
    run.folded[plan.decoder_bias_place] = b + run.parameters[plan.decoder.bias];
  }
}

// Blocks are (rows or columns, layer, slot), one more layer stands for the decoder. After the B_h.
__global__ void fold_vectors_kernel(LargeFoldingPlan plan, FoldingStep step) {
  const int layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  if (layer == plan.depth) {
    if (static_cast<int>(blockIdx.x) * 32 < plan.hidden) {
      fold_decoder(plan, VectorRun(plan, step, slot, 0));
    }
    return;
  }
  const VectorRun run(plan, step, slot, layer);
  const int row = blockIdx.x * vector_warps + threadIdx.y;
  if (row < plan.hidden) {
    fold_constant(plan, run, layer, row);
  } else if (plan.from_data && row < plan.hidden + plan.heads * plan.width) {
    fold_query_bias(plan, run, layer, row - plan.hidden);
  }
}

// g_h = (Wk E)^T (Wq e + bq) / sqrt(d_k). Blocks are (columns and head, layer, slot).
__global__ void fold_score_bias_kernel(LargeFoldingPlan plan, FoldingStep step) {
  const int layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  const VectorRun run(plan, step, slot, layer);
  const int columns = plan.columns(layer), d = plan.width;
  const int head = blockIdx.x % plan.heads, column = blockIdx.x / plan.heads * 32 + threadIdx.x;
  const float* keys = run.kept + plan.sides + (2 * int64_t{head} + 1) * d * columns;
  const float* bias = run.kept + plan.query_bias + head * d;
  const bool inside = column < columns;
  const float sum = column_sum(inside ? column_part(keys, columns, bias, d, column) : 0.0f);
  if (threadIdx.y == 0 && inside) {
    run.folded[plan.places(layer).score_bias + head * columns + column] = plan.score_scale * sum;
  }
}

// Row of u in a layer: the terms of dc in the gradients of the maps, of P = W1o Wo and of W1o,
// which products complete: dB_m = dM_m E^T + dc e^T, dP_h = dB_h Wv_h^T + dc bv_h^T,
// dW1o = dP Wo^T + dc bo^T; and db1 = dc.
__device__ void unfold_constant(const LargeFoldingPlan& plan, const VectorRun& run, int layer,
                                int row) {
  const int d = plan.width;
  const int64_t map = int64_t{1} * plan.hidden * d;
  const auto first = plan.of_layer(plan.first, layer);
  const float dc = run.folded_gradients[plan.places(layer).constant + row];
  const float* e = run.parameters + plan.entering(layer).bias;
  for (int m = 0; m <= plan.heads; ++m) {
    scaled_copy(dc, e, run.kept + plan.dmaps + m * map + row * d, d);
  }
  scaled_copy(dc, run.parameters + plan.of_layer(plan.value, layer).bias,
              run.kept + plan.dvalues + row * d, d);
  scaled_copy(dc, run.parameters + plan.of_layer(plan.output, layer).bias,
              run.gradients + first.weight + (int64_t{2} * row + 1) * d, d);
  if (threadIdx.x == 0) run.gradients[first.bias + row] = dc;
}

// Row of Wq, and the row of Wk with the same number:
//   dbq = dq = K dg / sqrt(d_k), dbk = 0, and terms that products complete:
//   dWq = dQ E^T + dq e^T,  dWk = dK E^T,  dK = (Q dG + q dg^T) / sqrt(d_k)
__device__ void unfold_score_bias(const LargeFoldingPlan& plan, const VectorRun& run, int layer,
                                  int row) {
  const int d = plan.width, columns = plan.columns(layer), head = row / d;
  const int64_t stacked = query_row(plan, row), key = (stacked + d) * columns;
  const float* dg = run.folded_gradients + plan.places(layer).score_bias + head * columns;
  const float dq = plan.score_scale * lane_sum(dot_term(run.kept + plan.sides + key, dg, columns));
  scaled_copy(plan.score_scale * run.kept[plan.query_bias + row], dg, run.kept + plan.dsides + key,
              columns);
  const auto query_key = plan.of_layer(plan.query_key, layer);
  const float* e = run.parameters + plan.entering(layer).bias;
  float* dweight = run.gradients + query_key.weight + stacked * d;
  for (int c = threadIdx.x; c < d; c += 32) {
    dweight[c] = dq * e[c];
    dweight[int64_t{1} * d * d + c] = 0;
  }
  if (threadIdx.x > 0) return;
  run.kept[plan.dquery_bias + row] = dq;
  run.gradients[query_key.bias + stacked] = dq;
  run.gradients[query_key.bias + stacked + d] = 0;
}

// Row of the last W2: dWd = W2 dw + db b2, dW2 = Wd^T dw, db2 = Wd db, and dbd = db.
__device__ void unfold_decoder(const LargeFoldingPlan& plan, const VectorRun& run, int row) {
  const auto last = plan.entering(plan.depth);
  const int64_t w2 = last.weight + int64_t{1} * row * plan.hidden;
  const float* dw = run.folded_gradients + plan.decoder_place;
  const float db = run.folded_gradients[plan.decoder_bias_place];
  const float decoder = run.parameters[plan.decoder.weight + row];
  const float sum = lane_sum(dot_term(run.parameters + w2, dw, plan.hidden));
  scaled_copy(decoder, dw, run.gradients + w2, plan.hidden);
  if (threadIdx.x > 0) return;
  run.gradients[plan.decoder.weight + row] = sum + db * run.parameters[last.bias + row];
  run.gradients[last.bias + row] = decoder * db;
  if (row == 0) run.gradients[plan.decoder.bias] = db;
}

// Before the products. Blocks are (rows, layer, slot), one more layer stands for the decoder.
__global__ void unfold_rows_kernel(LargeFoldingPlan plan, FoldingStep step) {
  const int layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  const int row = blockIdx.x * vector_warps + threadIdx.y;
  if (layer == plan.depth) {
    if (row < plan.width) unfold_decoder(plan, VectorRun(plan, step, slot, 0), row);
    return;
  }
  const VectorRun run(plan, step, slot, layer);
  if (row < plan.hidden) {
    unfold_constant(plan, run, layer, row);
  } else if (plan.from_data && row < plan.hidden + plan.heads * plan.width) {
    unfold_score_bias(plan, run, layer, row - plan.hidden);
  }
}

// After the products: dW1x from where it was made, and
//   dbv = P^T dc,   dbo = W1o^T dc,   de = sum_m B_m^T dc + sum_h Wq_h^T dq_h.
// Blocks are (which of these and columns, layer, slot).
__global__ void unfold_columns_kernel(LargeFoldingPlan plan, FoldingStep step) {
  const int layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  const VectorRun run(plan, step, slot, layer);
  const int d = plan.width, hidden = plan.hidden;
  const int which = blockIdx.x % 4, column = blockIdx.x / 4 * 32 + threadIdx.x;
  const bool inside = column < d;
  const float* dc = run.folded_gradients + plan.places(layer).constant;
  const auto first = plan.of_layer(plan.first, layer);
  if (which == 3) {
    for (int row = threadIdx.y; inside && row < hidden; row += vector_warps) {
      run.gradients[first.weight + int64_t{2} * row * d + column] =
          run.kept[plan.dmaps + row * d + column];
    }
    return;
  }
  float part = 0;
  int64_t out;
  if (which == 0) {
    out = plan.of_layer(plan.value, layer).bias;
    if (inside) part = column_part(run.kept + plan.values, d, dc, hidden, column);
  } else if (which == 1) {
    out = plan.of_layer(plan.output, layer).bias;
    if (inside) {
      part = column_part(run.parameters + first.weight + d, 2 * d, dc, hidden, column);
    }
  } else {
    out = plan.entering(layer).bias;
    for (int m = 0; inside && m <= plan.heads; ++m) {
      part +=
          column_part(run.kept + plan.maps + int64_t{1} * m * hidden * d, d, dc, hidden, column);
    }
    const float* queries = run.parameters + plan.of_layer(plan.query_key, layer).weight;
    for (int h = 0; plan.from_data && inside && h < plan.heads; ++h) {
      part += column_part(queries + int64_t{2} * h * d * d, d, run.kept + plan.dquery_bias + h * d,
                          d, column);
    }
  }
  const float sum = column_sum(part);
  if (threadIdx.y == 0 && inside) run.gradients[out + column] = sum;
}

dim3 blocks(int64_t count, int layers, int slots) {
  return dim3(static_cast<unsigned>(count), layers, slots);
}

// Rows of a layer, or of the decoder, in blocks of a warp each.
int64_t row_blocks(const LargeFoldingPlan& plan) {
  const int64_t queries = plan.from_data ? plan.heads * plan.width : 0;
  return ceil_div(std::max<int64_t>(plan.hidden + queries, plan.width), vector_warps);
}

const dim3 threads(32, vector_warps);

}  // namespace

void enqueue_fold_vectors(const LargeFoldingPlan& plan, int slots, const FoldingStep& step) {
  launch(fold_vectors_kernel, blocks(row_blocks(plan), plan.depth + 1, slots), threads, 0,
         step.stream, plan, step);
}
void enqueue_fold_score_bias(const LargeFoldingPlan& plan, int slots, const FoldingStep& step) {
  const int64_t columns = ceil_div(std::max(plan.input, plan.hidden), 32);
  launch(fold_score_bias_kernel, blocks(columns * plan.heads, plan.depth, slots), threads, 0,
         step.stream, plan, step);
}
void enqueue_unfold_rows(const LargeFoldingPlan& plan, int slots, const FoldingStep& step) {
  launch(unfold_rows_kernel, blocks(row_blocks(plan), plan.depth + 1, slots), threads, 0,
         step.stream, plan, step);
}
void enqueue_unfold_columns(const LargeFoldingPlan& plan, int slots, const FoldingStep& step) {
  launch(unfold_columns_kernel, blocks(4 * ceil_div(plan.width, 32), plan.depth, slots), threads, 0,
         step.stream, plan, step);
}

}  // namespace posattn::cuda
