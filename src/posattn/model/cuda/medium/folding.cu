#include <vector>

#include "posattn/model/cuda/medium/folding_parts.cuh"

namespace posattn::cuda::medium {
namespace {

// Makes c, and the maps of layer 0.
__device__ void fold_vectors(const Run& run, float* shared) {
  const float* p = run.parameters;
  const float *w1x = p + run.first.weight, *w1o = w1x + size, *wo = p + run.output.weight;
  float *x = shared, *w = x + size, *t = w + size, *direct = t + size, *sum = direct + size;
  copy_vector(x, run.input_bias);
  multiply_vector(w, p + run.value.weight, size, x, p + run.value.bias);
  multiply_vector(t, wo, size, w, p + run.output.bias);
  multiply_vector(direct, w1x, 2 * size, x, p + run.first.bias);
  multiply_vector(sum, w1o, 2 * size, t, direct);
  copy_vector(run.folded + run.places.constant, sum);
  copy_vector(run.kept + kept_values * size, w);
  copy_vector(run.kept + kept_outputs * size, t);
  if (!run.one_column) return;
  copy_vector(x, run.input_map);
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
  const Tensors& t = run.tensors;
  const float* decoder = run.parameters + t.decoder.weight;
  float *x = shared, *sum = x + size;
  copy_vector(x, decoder);
  multiply_vector_transposed(sum, sum + size, run.input_map, size, x);
  copy_vector(run.folded + t.decoder_place, sum);
  if (threadIdx.x > 0) return;
  float bias = run.parameters[t.decoder.bias];
  for (int k = 0; k < size; ++k) bias += decoder[k] * run.input_bias[k];
  run.folded[t.decoder_bias_place] = bias;
}

// Blocks are (what, layer, slot): vectors, M, V, P. One more layer stands for the decoder.
constexpr int fold_blocks = 4;
__global__ void __launch_bounds__(threads)
    medium_fold_kernel(Tensors t, FoldingStep step, float* kept) {
  const int what = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  const Run run(t, step, kept, slot, layer);
  if (what == 0) {
    layer == t.depth ? fold_decoder(run, shared) : fold_vectors(run, shared);
    return;
  }
  if (run.one_column || layer == t.depth) return;
  const float* p = run.parameters;
  const Strided input_map = rows_of(run.input_map);
  Block block;
  if (what == 1) {
    block.add_product(shared, rows_of(p + run.first.weight, 2 * size), input_map);
  } else if (what == 2) {
    block.add_product(shared, rows_of(p + run.value.weight), input_map);
  } else {
    block.add_product(shared, rows_of(p + run.first.weight + size, 2 * size),
                      rows_of(p + run.output.weight));
  }
  block.store(run.folded + run.places.maps + (what - 1) * size * size);
}

// With g = W1o^T dc and dw = Wo^T g:
//   db1 = dc,   dbo = g,   dbv = dw,   de = W1x^T dc + Wv^T dw (+ sum over heads of Wq^T dq)
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
    if (run.tensors.from_data) {
      for (int head = 0; head < heads; ++head) {
        multiply_vector_transposed(de, scratch, p + run.queries(head).weight, size,
                                   KeptScores(run.kept, head).dq, de);
      }
    }
    copy_vector(run.gradients + run.first.bias, dc);
    copy_vector(run.gradients + run.output.bias, g);
    copy_vector(run.gradients + run.value.bias, dw);
    copy_vector(run.dinput_bias, de);
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
  copy_vector(run.dinput_map, de);

  const float *input_map = run.input_map, *bias = run.input_bias;
  const float* w = run.kept + kept_values * size;
  const float* v = run.kept + kept_first_values * size;
  Block direct_map;
  direct_map.add_outer(dm, input_map);
  direct_map.add_outer(biases.dc, bias);
  direct_map.store(run.gradients + run.first.weight, 2 * size);
  Block attended;
  for (int h = 0; h < heads; ++h) {
    attended.add_outer(dm + (1 + h) * size, run.kept + (kept_first_outputs + h) * size);
  }
  attended.add_outer(biases.dc, run.kept + kept_outputs * size);
  attended.store(run.gradients + run.first.weight + size, 2 * size);
  Block values;
  values.add_outer(dv, input_map);
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
  const Tensors& t = run.tensors;
  const float *p = run.parameters, *decoder = p + t.decoder.weight;
  float *dw = shared, *sum = dw + size;
  const float db = run.dfolded[t.decoder_bias_place];
  copy_vector(dw, run.dfolded + t.decoder_place);
  multiply_vector(sum, run.input_map, size, dw, nullptr);
  Block block;
  block.add_outer(decoder, dw);
  block.store(run.dinput_map);
  const int i = static_cast<int>(threadIdx.x);
  if (i >= size) return;
  run.gradients[t.decoder.weight + i] = sum[i] + db * run.input_bias[i];
  run.dinput_bias[i] = db * decoder[i];
  if (i == 0) run.gradients[t.decoder.bias] = db;
}

// A later layer:
//   dW1x = dM E^T + dc e^T,   dE = W1x^T dM + Wv^T dV (+ sum over heads of Wq^T dQ + Wk^T dK),
//   dWv = dV E^T + dw e^T,
//   dW1o = dP Wo^T + dc t^T,  dWo = W1o^T dP + g w^T.
// Blocks are (what, layer, slot), in this order, then biases. Of layer 0, and of one more that
// stands for the decoder, one block does everything.
constexpr int unfold_blocks = 6;
__global__ void __launch_bounds__(threads)
    medium_unfold_kernel(Tensors t, FoldingStep step, float* kept) {
  const int what = blockIdx.x, layer = blockIdx.y, slot = blockIdx.z;
  if (step.slots[slot].samples == 0) return;
  float* shared = reinterpret_cast<float*>(dynamic_shared());
  float* vectors = shared + matrix_floats;
  const Run run(t, step, kept, slot, layer);
  if (run.one_column || layer == t.depth) {
    if (what > 0) return;
    run.one_column ? unfold_first(run, shared) : unfold_decoder(run, shared);
    return;
  }
  const float *p = run.parameters, *w1x = p + run.first.weight, *e = run.input_bias;
  const float *dm = run.dfolded + run.places.maps, *dv = dm + size * size, *dp = dv + size * size;
  Block block;
  if (what == 0) {
    block.add_product(shared, rows_of(dm), columns_of(run.input_map));
    block.add_outer(run.dfolded + run.places.constant, e);
    block.store(run.gradients + run.first.weight, 2 * size);
  } else if (what == 1) {
    block.add_product(shared, columns_of(w1x, 2 * size), rows_of(dm));
    block.add_product(shared, columns_of(p + run.value.weight), rows_of(dv));
    if (t.from_data) {
      for (int head = 0; head < heads; ++head) {
        const KeptScores scores(run.kept, head);
        block.add_product(shared, columns_of(p + run.queries(head).weight),
                          rows_of(scores.dq_matrix));
        block.add_product(shared, columns_of(p + run.keys(head).weight), rows_of(scores.dk_matrix));
      }
    }
    block.store(run.dinput_map);
  } else if (what == 2) {
    const BiasGradients biases(run, vectors);
    block.add_product(shared, rows_of(dv), columns_of(run.input_map));
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

std::vector<float> identity(const FoldedLayout& layout) {
  if (!layout.forms_input) return {};
  std::vector<float> unit(unit_floats);
  for (int i = 0; i < size; ++i) unit[i * size + i] = 1;
  return unit;
}

}  // namespace

Tensors::Tensors(const ModelSpec& spec, const FoldedLayout& layout, const float* identity)
    : FoldedTensors(spec, layout),
      kept_stride(kept_floats(from_data, layout.forms_input)),
      entry_place(layout.entry()),
      input_columns(spec.input_size()),
      unit(identity) {}

Folding::Folding(const FleetShape& shape, const FoldedLayout& layout, const float* positions)
    : slots_(shape.slots),
      unit_(identity(layout)),
      tensors_(shape.spec, layout, layout.forms_input ? unit_.data() : nullptr),
      positions_(positions),
      kept_(shape.slots * shape.spec.depth * tensors_.kept_stride) {
  allow_shared_bytes(medium_fold_kernel, folding_bytes);
  allow_shared_bytes(medium_unfold_kernel, folding_bytes);
  if (tensors_.from_data) allow_score_folding();
}

int64_t Folding::bytes(const FleetShape& shape, const FoldedLayout& layout) {
  return shape.slots * shape.spec.depth * kept_floats(layout.from_data, layout.forms_input) *
         static_cast<int64_t>(sizeof(float));
}

void Folding::enqueue_fold(const FoldingStep& step) {
  launch(medium_fold_kernel, dim3(fold_blocks, tensors_.depth + 1, slots_), dim3(threads),
         folding_bytes, step.stream, tensors_, step, kept_.data());
  if (tensors_.from_data) enqueue_fold_scores(tensors_, slots_, step, kept_.data());
  if (tensors_.unit != nullptr) enqueue_fold_entry(tensors_, slots_, step, positions_);
}

void Folding::enqueue_unfold(const FoldingStep& step) {
  if (tensors_.from_data) enqueue_unfold_scores(tensors_, slots_, step, kept_.data());
  launch(medium_unfold_kernel, dim3(unfold_blocks, tensors_.depth + 1, slots_), dim3(threads),
         folding_bytes, step.stream, tensors_, step, kept_.data());
  if (tensors_.unit != nullptr) enqueue_unfold_entry(tensors_, slots_, step, positions_);
}

}  // namespace posattn::cuda::medium
