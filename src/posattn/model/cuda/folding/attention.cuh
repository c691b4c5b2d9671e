// Attention from positions, one block per head of a layer: A = softmax(Q K^T / sqrt(d_k)) with
// queries and keys from P, or softmax of learned scores; and the way from dA back to the weights.
// At most 16 nodes: thread 16 i + j owns the pair (i, j), so a row of A is half a warp.
#pragma once

#include "posattn/model/cuda/folding/maps.cuh"

namespace posattn::cuda {

constexpr int most_nodes = 16;
constexpr int most_encoding = 32;
// Rows of P, W, Q and K in shared memory: an odd stride, so that rows lie in different banks.
constexpr int encoding_stride = most_encoding + 1;

// Where a head's operands lie in shared memory.
struct AttentionHead {
  float* positions;  // P [nodes]
  float* weights;    // Wq, then Wk [encoding_size]
  float* queries;    // Q [nodes]
  float* keys;       // K [nodes]
  float* dscores;    // [16][17]
  FoldingPlan::Map map;
};
constexpr int attention_shared_floats =
    (3 * most_nodes + 2 * most_encoding) * encoding_stride + most_nodes * (most_nodes + 1);

__device__ inline bool is_absent(const FoldingPlan& plan, int real_nodes, int node) {
  return node >= real_nodes && node < plan.real_nodes;
}

__device__ inline AttentionHead attention_head(const FoldingPlan& plan, const FoldingRun& run,
                                               int head, float* shared) {
  AttentionHead h;
  h.positions = shared;
  h.queries = h.positions + most_nodes * encoding_stride;
  h.keys = h.queries + most_nodes * encoding_stride;
  h.weights = h.keys + most_nodes * encoding_stride;
  h.dscores = h.weights + 2 * most_encoding * encoding_stride;
  const FoldingPlan::Map all = plan.of_layer(plan.query_key, run.layer);
  const int p = plan.encoding_size;
  h.map = {all.weight + head * 2 * p * p, all.bias + head * 2 * p};
  return h;
}

// Q = P Wq^T + bq, K = P Wk^T + bk.
__device__ inline void make_queries_and_keys(const FoldingPlan& plan, const FoldingRun& run,
                                             const AttentionHead& h) {
  const int p = plan.encoding_size, n = plan.nodes;
  const float* from =
      plan.stored_positions < 0 ? plan.positions : run.parameters + plan.stored_positions;
  for (int i = threadIdx.x; i < n * p; i += folding_threads) {
    h.positions[i / p * encoding_stride + i % p] = from[i];
  }
  for (int i = threadIdx.x; i < 2 * p * p; i += folding_threads) {
    h.weights[i / p * encoding_stride + i % p] = run.parameters[h.map.weight + i];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n * 2 * p; i += folding_threads) {
    const int node = i / (2 * p), row = i % (2 * p);
    float sum = run.parameters[h.map.bias + row];
    for (int c = 0; c < p; ++c) {
      sum += h.positions[node * encoding_stride + c] * h.weights[row * encoding_stride + c];
    }
    (row < p ? h.queries + row : h.keys + row - p)[node * encoding_stride] = sum;
  }
  __syncthreads();
}

// Adds up over the sixteen threads of a row.
__device__ inline float row_sum(float x) {
#pragma unroll
  for (int mask = 8; mask > 0; mask /= 2) x += __shfl_xor_sync(0xffffffffu, x, mask);
  return x;
}
__device__ inline float row_maximum(float x) {
#pragma unroll
  for (int mask = 8; mask > 0; mask /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, mask));
  return x;
}

// shared: attention_shared_floats. No node attends to an absent node: its column is zero. (Its row
// is that of a node which is there.)
__device__ inline void fold_attention(const FoldingPlan& plan, const FoldingRun& run, int head,
                                      int real_nodes, float* shared) {
  const int i = threadIdx.x >> 4, j = threadIdx.x & 15, n = plan.nodes, p = plan.encoding_size;
  const bool inside = i < n && j < n;
  float score = 0;
  if (plan.direct_attention) {
    if (inside) {
      score = run.parameters[plan.direct_scores + run.layer * plan.layer_stride +
                             (head * n + i) * n + j];
    }
  } else {
    const AttentionHead h = attention_head(plan, run, head, shared);
    make_queries_and_keys(plan, run, h);
    if (inside) {
      for (int c = 0; c < p; ++c) {
        score += h.queries[i * encoding_stride + c] * h.keys[j * encoding_stride + c];
      }
      score /= sqrtf(static_cast<float>(p));
    }
  }
  const bool attended = inside && !is_absent(plan, real_nodes, j);
  const float largest = row_maximum(attended ? score : -3.0e38f);
  const float weight = attended ? expf(score - largest) : 0.0f;
  const float total = row_sum(weight);
  if (inside) {
    run.natural[plan.places(run.layer).attention + (head * n + i) * n + j] = weight / total;
  }
}

// dS = A (dA - rowsum(A dA)), then for learned scores that is all; else
//   dQ = dS K / sqrt(d_k), dK = dS^T Q / sqrt(d_k), dWq = dQ^T P, dbq = column sums of dQ, ...
__device__ inline void unfold_attention(const FoldingPlan& plan, const FoldingRun& run, int head,
                                        int real_nodes, float* shared) {
  const int i = threadIdx.x >> 4, j = threadIdx.x & 15, n = plan.nodes, p = plan.encoding_size;
  const int64_t place = plan.places(run.layer).attention + (head * n + i) * n + j;
  const bool counts =
      i < n && j < n && !is_absent(plan, real_nodes, i) && !is_absent(plan, real_nodes, j);
  const float a = counts ? run.natural[place] : 0.0f;
  const float da = counts ? run.folded_gradients[place] : 0.0f;
  const float dscore = a * (da - row_sum(a * da));
  if (plan.direct_attention) {
    if (i < n && j < n) {
      run.gradients[plan.direct_scores + run.layer * plan.layer_stride + (head * n + i) * n + j] =
          dscore;
    }
    return;
  }
  const AttentionHead h = attention_head(plan, run, head, shared);
  h.dscores[i * (most_nodes + 1) + j] = dscore / sqrtf(static_cast<float>(p));
  make_queries_and_keys(plan, run, h);
  // Wq and Wk have served: [dQ | dK]^T takes their place, [2 encoding_size][nodes].
  float* d = h.weights;
  for (int k = threadIdx.x; k < n * 2 * p; k += folding_threads) {
    const int node = k % n, row = k / n;
    float sum = 0;
    for (int m = 0; m < n; ++m) {
      sum += row < p ? h.dscores[node * (most_nodes + 1) + m] * h.keys[m * encoding_stride + row]
                     : h.dscores[m * (most_nodes + 1) + node] *
                           h.queries[m * encoding_stride + row - p];
    }
    d[row * encoding_stride + node] = sum;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < 2 * p * p; k += folding_threads) {
    const int row = k / p, column = k % p;
    float sum = 0;
    for (int m = 0; m < n; ++m) {
      sum += d[row * encoding_stride + m] * h.positions[m * encoding_stride + column];
    }
    run.gradients[h.map.weight + k] = sum;
  }
  for (int row = threadIdx.x; row < 2 * p; row += folding_threads) {
    float sum = 0;
    for (int m = 0; m < n; ++m) sum += d[row * encoding_stride + m];
    run.gradients[h.map.bias + row] = sum;
  }
}

}  // namespace posattn::cuda
