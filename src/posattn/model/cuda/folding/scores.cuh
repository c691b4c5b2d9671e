// Folding of the scores of attention from data, one block per task:
//   Q = Wq E,  K = Wk E,  q = Wq e + bq,     G = Q^T K / sqrt(d_k),  g = K^T q / sqrt(d_k)
// and the way back. The bias of the keys adds a constant to a row of scores and drops out of the
// softmax: its gradient is zero.
#pragma once

#include "posattn/model/cuda/folding/maps.cuh"

namespace posattn::cuda {

constexpr float score_scale = 0.125f;  // 1 / sqrt(d_k), d_k = 64

// Wq of a head; Wk follows, as in the biases.
__device__ inline FoldingPlan::Map query_map(const FoldingPlan& plan, const FoldingRun& run,
                                             int head) {
  const FoldingPlan::Map all = plan.of_layer(plan.query_key, run.layer);
  return {all.weight + head * 2 * 64 * 64, all.bias + head * 2 * 64};
}

// `shared` holds five matrices and 2 x 64 + 256 numbers.
__device__ inline void fold_scores(const FoldingPlan& plan, const FoldingRun& run, int head,
                                   const PackedMaps& out, float* shared) {
  constexpr Along inner = Along::inner, outer = Along::outer;
  const int columns = plan.columns(run.layer);
  const FoldingPlan::Map enter = plan.input_map(run.layer), query = query_map(plan, run, head);
  const LayerPlaces places = plan.places(run.layer);
  float *enter_weight = shared, *weights = enter_weight + matrix_floats;  // Wq and Wk
  float* query_key = weights + 2 * matrix_floats;                         // Q and K
  float *e = query_key + 2 * matrix_floats, *bias = e + 64, *scratch = bias + 64;
  load_matrix(enter_weight, run.parameters + enter.weight, columns, 64, columns);
  load_matrix(weights, run.parameters + query.weight, 64, 64, 64);
  load_matrix(weights + matrix_floats, run.parameters + query.weight + 64 * 64, 64, 64, 64);
  load_vector(e, run.parameters + enter.bias);
  finish_loads();

  float* kept = plan.kept_layer(run.slot, run.layer);
  const float sum = row_dot(row_quarter(weights, matrix_stride), e);
  if ((threadIdx.x & 3) == 0) {
    const int row = threadIdx.x >> 2;
    bias[row] = sum + run.parameters[query.bias + row];
    kept[plan.kept_query_bias(head) + row] = bias[row];
  }
  for (int which = 0; which < 2; ++which) {
    Accumulators c;
    add_product<inner, outer>(c, weights + which * matrix_floats, enter_weight, 64, columns);
    keep_product<inner>(c, query_key + which * matrix_floats);
    store_product<inner>(c, kept + plan.kept_query_key(head, which), 64, 64, 64);
  }
  const float* key = query_key + matrix_floats;
  __syncthreads();
  const float g = column_total(column_term(key, bias), scratch);
  if (static_cast<int>(threadIdx.x) < columns) {
    run.natural[places.score_bias + head * columns + threadIdx.x] = score_scale * g;
  }
  Accumulators c;
  add_product<outer, outer>(c, query_key, key, 64, columns);
#pragma unroll
  for (auto& row : c.value) {
    for (float& value : row) value *= score_scale;
  }
  keep_product<outer>(c, enter_weight);
  __syncthreads();
  const int64_t packed =
      ((int64_t{1} * run.slot * (plan.depth - 1) + run.layer - 1) * plan.heads + head) * map_floats;
  store_folded(plan, enter_weight, columns, columns,
               run.natural + places.scores + head * columns * columns,
               out.score_backward == nullptr ? nullptr : out.score_backward + packed,
               out.score_forward == nullptr ? nullptr : out.score_forward + packed);
}

// Queries (which 0) or keys (which 1):
//   dQ = K dG^T / sqrt(d_k)                 dq = K dg / sqrt(d_k)
//   dWq = dQ E^T + dq e^T     dbq = dq      terms of dE and de: Wq^T dQ and Wq^T dq
//   dK = (Q dG + q dg^T) / sqrt(d_k)        dWk = dK E^T, term of dE: Wk^T dK
// shared: five matrices and 4 x 64 + 256 numbers.
__device__ inline void unfold_scores(const FoldingPlan& plan, const FoldingRun& run, int head,
                                     int which, float* shared) {
  constexpr Along inner = Along::inner, outer = Along::outer;
  const int columns = plan.columns(run.layer), padded = (columns + 3) / 4 * 4;
  const FoldingPlan::Map enter = plan.input_map(run.layer), query = query_map(plan, run, head);
  const LayerPlaces places = plan.places(run.layer);
  const int64_t weight_offset = query.weight + which * 64 * 64;
  float *enter_weight = shared, *weight = enter_weight + matrix_floats;
  float *other = weight + matrix_floats, *dg = other + matrix_floats, *d = dg + matrix_floats;
  float *e = d + matrix_floats, *dg_bias = e + 64, *bias = dg_bias + 64, *dbias = bias + 64;
  float* scratch = dbias + 64;
  float* kept = plan.kept_layer(run.slot, run.layer);
  const float* gradients = run.folded_gradients;
  load_matrix(enter_weight, run.parameters + enter.weight, columns, 64, columns);
  load_matrix(weight, run.parameters + weight_offset, 64, 64, 64);
  load_matrix(other, kept + plan.kept_query_key(head, 1 - which), 64, 64, 64);
  load_matrix(dg, gradients + places.scores + head * columns * columns, columns, columns, columns);
  load_vector(e, run.parameters + enter.bias);
  load_vector(dg_bias, gradients + places.score_bias + head * columns, columns);
  load_vector(bias, kept + plan.kept_query_bias(head));
  finish_loads();

  {
    Accumulators c;
    if (which == 0) {
      add_product<inner, inner>(c, other, dg, padded, columns);
    } else {
      add_product<inner, outer>(c, other, dg, padded, columns);
      add_outer<inner>(c, bias, dg_bias);
    }
#pragma unroll
    for (auto& row : c.value) {
      for (float& value : row) value *= score_scale;
    }
    keep_product<inner>(c, d);
  }
  const float sum = row_dot(row_quarter(other, matrix_stride), dg_bias);
  if ((threadIdx.x & 3) == 0) dbias[threadIdx.x >> 2] = which == 0 ? score_scale * sum : 0.0f;
  __syncthreads();
  {
    Accumulators c;
    add_product<inner, inner>(c, d, enter_weight, padded, 64);
    add_outer<inner>(c, dbias, e);
    store_product<inner>(c, run.gradients + weight_offset, 64, 64, 64);
  }
  {
    Accumulators c;
    add_product<outer, outer>(c, weight, d, 64, columns);
    store_product<outer>(c, kept + plan.kept_input(head, which), 64, 64, 64);
  }
  if (threadIdx.x < 64) {
    run.gradients[query.bias + which * 64 + threadIdx.x] = dbias[threadIdx.x];
  }
  if (which == 0) {
    const float de = column_total(column_term(weight, dbias), scratch);
    if (threadIdx.x < 64) kept[plan.kept_input_bias(head) + threadIdx.x] = de;
  }
}

}  // namespace posattn::cuda
