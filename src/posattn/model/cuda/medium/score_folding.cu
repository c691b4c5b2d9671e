// Folding of attention from data, of each head (model/engine/folded_stage.h): with Q = Wq E, K = Wk
// E and q = Wq e + bq
//   G = Q^T K / sqrt(d_k),   g = K^T q / sqrt(d_k),
//   dQ = K dG^T / sqrt(d_k),   dK = (Q dG + q dg^T) / sqrt(d_k),   dq = K dg / sqrt(d_k),
//   dWq = dQ E^T + dq e^T,   dWk = dK E^T,   dbq = dq,   dbk = 0.
#include "posattn/model/cuda/medium/folding_parts.cuh"

namespace posattn::cuda::medium {
namespace {

constexpr float score_scale = 0.125f;  // 1 / sqrt(64)
static_assert(size == 64);

// Blocks are (head, layer, slot).
__global__ void __launch_bounds__(threads)
    medium_fold_scores_kernel(Tensors t, FoldingStep step, float* kept) {
  const int head = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  float *x = shared + matrix_floats, *vector = x + size, *scratch = vector + size;
  const Run run(t, step, kept, slot, layer);
  const KeptScores keep(run.kept, head);
  const float* p = run.parameters;
  const FoldedTensors::Map queries = run.queries(head), keys = run.keys(head);
  float* bias = run.folded + run.places.score_bias;
  copy_vector(x, run.input_bias);
  multiply_vector(vector, p + queries.weight, size, x, p + queries.bias);
  copy_vector(keep.q, vector);
  const Strided input_map = rows_of(run.input_map);
  {
    Block q_matrix;
    q_matrix.add_product(shared, rows_of(p + queries.weight), input_map);
    q_matrix.store(keep.q_matrix);
  }
  {
    Block k_matrix;
    k_matrix.add_product(shared, rows_of(p + keys.weight), input_map);
    k_matrix.store(keep.k_matrix);
  }
  __syncthreads();
  Block g_matrix;
  g_matrix.add_product(shared, columns_of(keep.q_matrix), rows_of(keep.k_matrix));
  g_matrix.store(run.folded + run.places.scores + head * size * size, size, score_scale);
  multiply_vector_transposed(x, scratch, keep.k_matrix, size, vector);
  copy_vector(bias + head * size, x, score_scale);
}

// Blocks are (head, layer, slot).
__global__ void __launch_bounds__(threads)
    medium_unfold_scores_kernel(Tensors t, FoldingStep step, float* kept) {
  const int head = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  float *dg = shared + matrix_floats, *dq = dg + size;
  const Run run(t, step, kept, slot, layer);
  const KeptScores keep(run.kept, head);
  const FoldedTensors::Map queries = run.queries(head), keys = run.keys(head);
  const float* dg_matrix = run.dfolded + run.places.scores + head * size * size;
  copy_vector(dg, run.dfolded + run.places.score_bias + head * size, score_scale);
  multiply_vector(dq, keep.k_matrix, size, dg, nullptr);
  {
    Block dq_matrix;
    dq_matrix.add_product(shared, rows_of(keep.k_matrix), columns_of(dg_matrix));
    dq_matrix.store(keep.dq_matrix, size, score_scale);
  }
  {
    Block dk_matrix;
    dk_matrix.add_product(shared, rows_of(keep.q_matrix), rows_of(dg_matrix));
    dk_matrix.add_outer(keep.q, run.dfolded + run.places.score_bias + head * size);
    dk_matrix.store(keep.dk_matrix, size, score_scale);
  }
  __syncthreads();
  {
    Block of_queries;
    of_queries.add_product(shared, rows_of(keep.dq_matrix), columns_of(run.input_map));
    of_queries.add_outer(dq, run.input_bias);
    of_queries.store(run.gradients + queries.weight);
  }
  Block of_keys;
  of_keys.add_product(shared, rows_of(keep.dk_matrix), columns_of(run.input_map));
  of_keys.store(run.gradients + keys.weight);
  copy_vector(keep.dq, dq);
  copy_vector(run.gradients + queries.bias, dq);
  if (threadIdx.x < size) run.gradients[keys.bias + threadIdx.x] = 0;
}

}  // namespace

void allow_score_folding() {
  allow_shared_bytes(medium_fold_scores_kernel, folding_bytes);
  allow_shared_bytes(medium_unfold_scores_kernel, folding_bytes);
}

void enqueue_fold_scores(const Tensors& tensors, int slots, const FoldingStep& step, float* kept) {
  launch(medium_fold_scores_kernel, dim3(heads, tensors.depth, slots), dim3(threads), folding_bytes,
         step.stream, tensors, step, kept);
}

void enqueue_unfold_scores(const Tensors& tensors, int slots, const FoldingStep& step,
                           float* kept) {
  launch(medium_unfold_scores_kernel, dim3(heads, tensors.depth, slots), dim3(threads),
         folding_bytes, step.stream, tensors, step, kept);
}

}  // namespace posattn::cuda::medium
