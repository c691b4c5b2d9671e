// Folding of the linear maps of a layer and of the decoder, one block per task:
//   M_0 = W1x E,   P = W1o Wo,   B_h = P_h Wv_h,   M_h = B_h E,
//   c = W1x e + W1o (Wo (Wv e + bv) + bo) + b1
// and the way back for their gradients. Names as in model/engine/folded_stage.h.
#pragma once

#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/products.cuh"

namespace posattn::cuda {

constexpr int most_heads = 8;  // what unfold_values has room for

// One run's pointers.
struct FoldingRun {
  __device__ FoldingRun(const FoldingPlan& plan, const FoldingStep& step, int its_slot,
                        int its_layer)
      : parameters(step.parameters + its_slot * plan.parameter_stride),
        natural(step.folded + its_slot * plan.folded_size),
        folded_gradients(step.folded_gradients + its_slot * plan.folded_size),
        gradients(step.gradients + its_slot * plan.parameter_stride),
        slot(its_slot),
        layer(its_layer) {}
  const float* parameters;
  float* natural;                 // folded weights
  const float* folded_gradients;  // unfold only
  float* gradients;               // unfold only
  int slot, layer;
};

// Writes a folded [rows, columns] matrix in its natural order and, of a later layer and where asked
// for, packed: at packed_element(n, k) X(n, k) in `plain` and X(k, n) in `transposed`. There lie
// four numbers in a row, those of k, k + 1, k + 8 and k + 9, for k = 16 pair + 2 t.
__device__ inline void store_folded(const FoldingPlan& plan, const float* matrix, int rows,
                                    int columns, float* natural, float* plain, float* transposed) {
  if (columns < 64) {
    for (int i = threadIdx.x; i < rows * columns; i += folding_threads) {
      natural[i] = matrix[i / columns * matrix_stride + i % columns];
    }
    return;
  }
  const auto packed = [&](float x) { return plan.exact ? operand<true>(x) : operand<false>(x); };
  for (int i = threadIdx.x; i < 64 * 16; i += folding_threads) {
    const float4 four = load4(matrix + (i >> 4) * matrix_stride + 4 * (i & 15));
    store4(natural + 4 * i, four.x, four.y, four.z, four.w);
    if (plain == nullptr) continue;
    const int lane = i & 31, group = i >> 5;
    const int n = 8 * (group & 7) + (lane >> 2), k = 16 * (group >> 3) + 2 * (lane & 3);
    const auto store = [&](float* out, const float* first, int step) {
      store4(out + packed_element(n, k), packed(first[0]), packed(first[step]),
             packed(first[8 * step]), packed(first[9 * step]));
    };
    store(plain, matrix + n * matrix_stride + k, 1);
    store(transposed, matrix + k * matrix_stride + n, matrix_stride);
  }
}

// Makes c by products of matrices and vectors alone. vectors [3][64] are scratch.
__device__ inline void fold_constant(const FoldingPlan& plan, const FoldingRun& run,
                                     float* vectors) {
  const FoldingPlan::Map value = plan.of_layer(plan.value, run.layer);
  const FoldingPlan::Map output = plan.of_layer(plan.output, run.layer);
  const FoldingPlan::Map first = plan.of_layer(plan.first, run.layer);
  const RowQuarter wv = row_quarter(run.parameters + value.weight, 64);
  const RowQuarter wo = row_quarter(run.parameters + output.weight, 64);
  const RowQuarter w1x = row_quarter(run.parameters + first.weight, 128);
  const RowQuarter w1o = row_quarter(run.parameters + first.weight + 64, 128);
  const int row = threadIdx.x >> 2;
  const bool writes = (threadIdx.x & 3) == 0;
  float *e = vectors, *mixed = vectors + 64, *attended = vectors + 128;
  load_vector(e, run.parameters + plan.input_map(run.layer).bias);
  __syncthreads();
  float sum = row_dot(wv, e);
  if (writes) mixed[row] = sum + run.parameters[value.bias + row];
  __syncthreads();
  sum = row_dot(wo, mixed);
  if (writes) attended[row] = sum + run.parameters[output.bias + row];
  __syncthreads();
  sum = row_dot(w1x, e) + row_dot(w1o, attended);
  if (writes) {
    run.natural[plan.places(run.layer).constant + row] = sum + run.parameters[first.bias + row];
  }
}

// Makes M_part, and c with part 0. `shared` holds five matrices and three vectors.
__device__ inline void fold_map(const FoldingPlan& plan, const FoldingRun& run, int part,
                                const PackedMaps& out, float* shared) {
  constexpr Along inner = Along::inner, outer = Along::outer;
  float *w1 = shared, *wo = w1 + matrix_floats, *wv = wo + matrix_floats;
  float *enter = wv + matrix_floats, *product = enter + matrix_floats;
  const int columns = plan.columns(run.layer), size = plan.head_size, head = part - 1;
  const float* first = run.parameters + plan.of_layer(plan.first, run.layer).weight;
  load_matrix(w1, part == 0 ? first : first + 64, 128, 64, 64);
  if (part > 0) {
    load_matrix(wo, run.parameters + plan.of_layer(plan.output, run.layer).weight, 64, 64, 64);
    load_matrix(wv, run.parameters + plan.of_layer(plan.value, run.layer).weight + head * size * 64,
                64, size, 64);
  }
  load_matrix(enter, run.parameters + plan.input_map(run.layer).weight, columns, 64, columns);
  if (part == 0) fold_constant(plan, run, product + matrix_floats);
  finish_loads();

  float* kept = plan.kept_layer(run.slot, run.layer);
  const float* left = w1;  // W1x or B_h
  if (part > 0) {
    Accumulators p;
    add_product<inner, outer>(p, w1, wo + head * size, 64, size);
    store_product<inner>(p, kept + plan.kept_values() + head * size, 64, 64, size);
    keep_product<inner>(p, product);
    __syncthreads();
    Accumulators b;
    add_product<inner, outer>(b, product, wv, size, 64);
    store_product<inner>(b, kept + plan.kept_map(head), 64, 64, 64);
    keep_product<inner>(b, wo);
    __syncthreads();
    left = wo;
  }
  Accumulators m;
  add_product<inner, outer>(m, left, enter, 64, columns);
  keep_product<inner>(m, product);
  __syncthreads();
  const int64_t packed =
      ((int64_t{1} * run.slot * (plan.depth - 1) + run.layer - 1) * (1 + plan.heads) + part) *
      map_floats;
  store_folded(plan, product, 64, columns,
               run.natural + plan.places(run.layer).maps + part * 64 * columns,
               out.forward == nullptr ? nullptr : out.forward + packed,
               out.backward == nullptr ? nullptr : out.backward + packed);
}

// The decoder behind the last W2: w = Wd W2, b = Wd b2 + bd. shared: one matrix, 128 + 256 numbers.
__device__ inline void fold_decoder(const FoldingPlan& plan, const FoldingRun& run, float* shared) {
  const FoldingPlan::Map last = plan.input_map(plan.depth);
  float *matrix = shared, *decoder = shared + matrix_floats, *bias = decoder + 64;
  load_matrix(matrix, run.parameters + last.weight, 64, 64, 64);
  load_vector(decoder, run.parameters + plan.decoder.weight);
  load_vector(bias, run.parameters + last.bias);
  finish_loads();
  const float w = column_total(column_term(matrix, decoder), bias + 64);
  if (threadIdx.x < 64) run.natural[plan.decoder_place + threadIdx.x] = w;
  if (threadIdx.x == 0) {
    float sum = run.parameters[plan.decoder.bias];
    for (int i = 0; i < 64; ++i) sum += decoder[i] * bias[i];
    run.natural[plan.decoder_bias_place] = sum;
  }
}

// dWd = W2 dw + db b2, dbd = db, dW2 = Wd^T dw^T, db2 = Wd db. shared: two vectors.
__device__ inline void unfold_decoder(const FoldingPlan& plan, const FoldingRun& run,
                                      float* shared) {
  const FoldingPlan::Map last = plan.input_map(plan.depth);
  float *dw = shared, *decoder = shared + 64;
  load_vector(dw, run.folded_gradients + plan.decoder_place);
  load_vector(decoder, run.parameters + plan.decoder.weight);
  const float db = run.folded_gradients[plan.decoder_bias_place];
  const RowQuarter w2 = row_quarter(run.parameters + last.weight, 64);
  __syncthreads();
  const int row = threadIdx.x >> 2;
  const float sum = row_dot(w2, dw);
  if ((threadIdx.x & 3) == 0) {
    run.gradients[plan.decoder.weight + row] = sum + db * run.parameters[last.bias + row];
    run.gradients[last.bias + row] = decoder[row] * db;
  }
  if (threadIdx.x == 0) run.gradients[plan.decoder.bias] = db;
  for (int i = threadIdx.x; i < 64 * 64; i += folding_threads) {
    run.gradients[last.weight + i] = decoder[i >> 6] * dw[i & 63];
  }
}

// The factors W1o, Wo, Wv and their biases, and b1:
//   dB_h = dM_h E^T + dc e^T     dP_h = dB_h Wv_h^T + dc bv_h^T    dWv_h = P_h^T dB_h
//   dW1o = dP Wo^T + dc bo^T     dWo = W1o^T dP                    dbv = P^T dc,  dbo = W1o^T dc
// shared: 4 + H matrices and 4 x 64 + 256 numbers.
__device__ inline void unfold_values(const FoldingPlan& plan, const FoldingRun& run,
                                     float* shared) {
  constexpr Along inner = Along::inner, outer = Along::outer;
  const int columns = plan.columns(run.layer), size = plan.head_size;
  const LayerPlaces places = plan.places(run.layer);
  const FoldingPlan::Map enter = plan.input_map(run.layer);
  const FoldingPlan::Map value = plan.of_layer(plan.value, run.layer);
  const FoldingPlan::Map output = plan.of_layer(plan.output, run.layer);
  const FoldingPlan::Map first = plan.of_layer(plan.first, run.layer);
  float *enter_or_wo = shared, *wv = enter_or_wo + matrix_floats, *dp = wv + matrix_floats;
  float *p_or_w1o = dp + matrix_floats, *db = p_or_w1o + matrix_floats;  // db: one per head
  float *dc = db + plan.heads * matrix_floats, *e = dc + 64, *bv = e + 64, *bo = bv + 64;
  float* scratch = bo + 64;
  const float* dm = run.folded_gradients + places.maps;
  for (int h = 0; h < plan.heads; ++h) {
    load_matrix(db + h * matrix_floats, dm + (1 + h) * 64 * columns, columns, 64, columns);
  }
  load_matrix(enter_or_wo, run.parameters + enter.weight, columns, 64, columns);
  load_matrix(wv, run.parameters + value.weight, 64, 64, 64);
  load_matrix(p_or_w1o, plan.kept_layer(run.slot, run.layer) + plan.kept_values(), 64, 64, 64);
  load_vector(dc, run.folded_gradients + places.constant);
  load_vector(e, run.parameters + enter.bias);
  load_vector(bv, run.parameters + value.bias);
  load_vector(bo, run.parameters + output.bias);
  finish_loads();

  for (int h = 0; h < plan.heads; ++h) {  // dB_h takes the place of dM_h
    Accumulators c;
    add_product<inner, inner>(c, db + h * matrix_floats, enter_or_wo, (columns + 3) / 4 * 4, 64);
    add_outer<inner>(c, dc, e);
    __syncthreads();
    keep_product<inner>(c, db + h * matrix_floats);
  }
  __syncthreads();
  load_matrix(enter_or_wo, run.parameters + output.weight, 64, 64, 64);

  {  // all heads at once: a column of dP belongs to one head, and so does a row of dWv
    Accumulators c;
    add_product<inner, inner>(c, db + product_column() / size * matrix_floats, wv, 64, 64);
    add_outer<inner>(c, dc, bv);
    keep_product<inner>(c, dp);
  }
  {
    Accumulators c;
    add_product<outer, outer>(c, p_or_w1o, db + product_row<outer>(0) / size * matrix_floats, 64,
                              64);
    store_product<outer>(c, run.gradients + value.weight, 64, 64, 64);
  }
  const float dbv = column_total(column_term(p_or_w1o, dc), scratch);
  finish_loads();
  load_matrix(p_or_w1o, run.parameters + first.weight + 64, 128, 64, 64);
  {
    Accumulators c;
    add_product<inner, inner>(c, dp, enter_or_wo, 64, 64);
    add_outer<inner>(c, dc, bo);
    store_product<inner>(c, run.gradients + first.weight + 64, 128, 64, 64);
  }
  finish_loads();
  {
    Accumulators c;
    add_product<outer, outer>(c, p_or_w1o, dp, 64, 64);
    store_product<outer>(c, run.gradients + output.weight, 64, 64, 64);
  }
  const float dbo = column_total(column_term(p_or_w1o, dc), scratch);
  if (threadIdx.x < 64) {
    run.gradients[value.bias + threadIdx.x] = dbv;
    run.gradients[output.bias + threadIdx.x] = dbo;
    run.gradients[first.bias + threadIdx.x] = dc[threadIdx.x];
  }
}

// W1x and the map into the layer:
//   dW1x = dM_0 E^T + dc e^T     dE = W1x^T dM_0 + sum_h B_h^T dM_h     de = (W1x + sum_h B_h)^T dc
// and, with attention from data, the terms of dE and de that the scores have left.
// shared: five matrices and 2 x 64 + 256 numbers.
__device__ inline void unfold_input_map(const FoldingPlan& plan, const FoldingRun& run,
                                        float* shared) {
  constexpr Along inner = Along::inner, outer = Along::outer;
  const int columns = plan.columns(run.layer);
  const LayerPlaces places = plan.places(run.layer);
  const FoldingPlan::Map enter = plan.input_map(run.layer);
  const int64_t w1x = plan.of_layer(plan.first, run.layer).weight;
  const float* kept = plan.kept_layer(run.slot, run.layer);
  const float* dm = run.folded_gradients + places.maps;
  // Two pairs of W1x or B_h and its dM, one filled while the other is used.
  float *pairs = shared, *enter_weight = shared + 4 * matrix_floats;
  float *dc = enter_weight + matrix_floats, *e = dc + 64, *scratch = e + 64;
  const auto load_pair = [&](int m) {
    float* pair = pairs + m % 2 * 2 * matrix_floats;
    load_matrix(pair, m == 0 ? run.parameters + w1x : kept + plan.kept_map(m - 1),
                m == 0 ? 128 : 64, 64, 64);
    load_matrix(pair + matrix_floats, dm + m * 64 * columns, columns, 64, columns);
  };
  load_pair(0);
  load_matrix(enter_weight, run.parameters + enter.weight, columns, 64, columns);
  load_vector(dc, run.folded_gradients + places.constant);
  load_vector(e, run.parameters + enter.bias);
  finish_loads();

  Accumulators de_weight;
  float de_term = 0;
  for (int m = 0; m <= plan.heads; ++m) {
    if (m < plan.heads) load_pair(m + 1);
    const float* w = pairs + m % 2 * 2 * matrix_floats;
    if (m == 0) {
      Accumulators c;
      add_product<inner, inner>(c, w + matrix_floats, enter_weight, (columns + 3) / 4 * 4, 64);
      add_outer<inner>(c, dc, e);
      store_product<inner>(c, run.gradients + w1x, 128, 64, 64);
    }
    add_product<outer, outer>(de_weight, w, w + matrix_floats, 64, columns);
    de_term += column_term(w, dc);
    finish_loads();
  }
  float de = column_total(de_term, scratch);
  if (plan.from_data) {
    for (int h = 0; h < plan.heads; ++h) {
      for (int which = 0; which < 2; ++which) {
        const float* term = kept + plan.kept_input(h, which) + product_column();
#pragma unroll
        for (int r = 0; r < 4; ++r) {
          float four[4];
          load_four(four, term + product_row<outer>(r) * 64);
#pragma unroll
          for (int j = 0; j < 4; ++j) de_weight.value[r][j] += four[j];
        }
      }
      de += kept[plan.kept_input_bias(h) + (threadIdx.x & 63)];
    }
  }
  store_product<outer>(de_weight, run.gradients + enter.weight, columns, 64, columns);
  if (threadIdx.x < 64) run.gradients[enter.bias + threadIdx.x] = de;
}

}  // namespace posattn::cuda
