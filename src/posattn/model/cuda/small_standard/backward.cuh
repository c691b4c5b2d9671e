// A layer l >= 1, backward, from du to the du of the layer before:
//   q_m = du M_m,   dr_j = q_0,j + sum_h sum_i A_h,ij q_h,i,   dA_h,ij = q_h,i . r_j,
//   ds = the softmax's gradient,
//   dr_j += sum_h (sum_i ds_h,ij (r_i G_h + g_h) + sum_i ds_h,ji r_i G_h^T),
// and then du' = dr where r > 0; the gradients of the layer's weights on the way.
#pragma once

#include "posattn/model/cuda/small_standard/weights.cuh"

namespace posattn::cuda::standard {

template <int N>
struct BackwardShared {
  // du and r of a tile, then q_1 and q_2; the next tile's du and r take the place of q, and so on
  // by turns.
  float tiles[2][2][tile_floats<N>];
  float attention[2][coefficient_floats<N>];  // A
  float scores[coefficient_floats<N>];        // ds
  float score_sums[piece_floats<8>];          // dG
  float plain_sums[piece_floats<4>];          // dM_0
};

template <bool exact, int N>
__global__ void __launch_bounds__(tile_threads, 1) backward_layer(Step step, Layer layer) {
  const Place place(step);
  if (place.rests()) return;
  auto& shared = *reinterpret_cast<BackwardShared<N>*>(dynamic_shared());
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
  const int group = lane >> 2, column = 8 * warp + 2 * (lane & 3);
  const int block = warp >> 1, head = warp & 1, order = block ^ (head << 1);  // of weight gradients
  const float* folded = step.folded + place.slot * step.folded_size;
  const float* backward = layer.backward + place.slot * layer.maps_stride;
  const float* score_forward = layer.score_forward + place.slot * layer.scores_stride;
  const float* score_backward = layer.score_backward + place.slot * layer.scores_stride;
  const int64_t tiles = int64_t{1} * place.slot * step.tiles;

  const auto copy_tile = [&](int tile) {
    const int stage = (tile - place.first) & 1;
    copy_block(shared.tiles[stage][0], layer.gradient + (tiles + tile) * tile_floats<N>,
               tile_floats<N>);
    copy_block(shared.tiles[stage][1], layer.rows + (tiles + tile) * tile_floats<N>,
               tile_floats<N>);
    copy_block(shared.attention[stage], layer.attention + (tiles + tile) * coefficient_floats<N>,
               coefficient_floats<N>);
    commit_copies();
  };

  float mixed_sums[8][4], plain_sums[4][4];                // dM_h, dM_0
  float constant_sums[2] = {0, 0}, bias_sums[2] = {0, 0};  // dc, dg
  clear_pieces(mixed_sums);
  clear_pieces(plain_sums);
  store_pieces(shared.plain_sums, plain_sums);
  store_pieces(shared.score_sums, mixed_sums);
  if (place.first < place.end) copy_tile(place.first);
  for (int tile = place.first; tile < place.end; ++tile) {
    const int stage = (tile - place.first) & 1;
    const float *gradient = shared.tiles[stage][0], *rows = shared.tiles[stage][1];
    const float* attention = shared.attention[stage];
    float(&products)[2][tile_floats<N>] = shared.tiles[1 - stage];
    float dr[N][4];
    const MapFragments<maps> fragments(backward, 0, warp, lane);
    wait_copies<0>();
    __syncthreads();
    {
      float q[maps][N][4];
#pragma unroll
      for (int m = 0; m < maps; ++m) fill(q[m], 0, 0);
      add_products<exact>(q, gradient, backward, fragments, warp, lane);
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        mix_transposed(q[0], q[1 + h], attention, h, group);
#pragma unroll
        for (int i = 0; i < N; ++i) store_node<exact>(products[h], i, warp, lane, q[1 + h][i]);
      }
#pragma unroll
      for (int i = 0; i < N; ++i) {
#pragma unroll
        for (int e = 0; e < 4; ++e) dr[i][e] = q[0][i][e];
      }
    }
    const MapFragments<heads> forward_fragments(score_forward, 0, warp, lane);
    __syncthreads();
    dot_rows<exact, N>(rows, products[0], warp, lane, StoreScores<N>{shared.scores, warp});
    softmax_gradient_rows<N>(shared.scores, attention, warp, lane);
    __syncthreads();
    if (tile + 1 < place.end) copy_tile(tile + 1);
    {
      float z[heads][N][4];
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        const float* bias = folded + layer.score_bias + h * tile_columns;
        fill(z[h], bias[column], bias[column + 1]);
      }
      add_products<exact>(z, rows, score_forward, forward_fragments, warp, lane);
      const MapFragments<heads> backward_fragments(score_backward, 0, warp, lane);
#pragma unroll
      for (int h = 0; h < heads; ++h) {
        mix_transposed(dr, z[h], shared.scores, h, group);
        fill(z[h], 0, 0);
      }
      add_products<exact>(z, rows, score_backward, backward_fragments, warp, lane);
      __syncwarp();  // lets the compiler load ds again instead of keeping all of it in registers
#pragma unroll
      for (int h = 0; h < heads; ++h) mix(dr, z[h], shared.scores, h, group);
    }
    float* to = layer.input_gradient + (tiles + tile) * tile_floats<N>;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float r[4];
      load_node(r, rows, i, warp, lane);
#pragma unroll
      for (int e = 0; e < 4; ++e) dr[i][e] = r[e] > 0 ? dr[i][e] : 0.0f;
      store_node<exact>(to, i, warp, lane, dr[i]);
    }
    add_weights<exact, N, Weights::of_maps>(mixed_sums, shared.plain_sums, constant_sums, gradient,
                                            rows, attention, block, head, order, lane);
    float score_sums[8][4];
    load_pieces(score_sums, shared.score_sums);
    add_weights<exact, N, Weights::of_scores>(score_sums, nullptr, bias_sums, rows, rows,
                                              shared.scores, block, head, order, lane);
    store_pieces(shared.score_sums, score_sums);
  }

  float* partial = step.partials + place.part * step.folded_size;
  float score_sums[8][4];
  load_pieces(score_sums, shared.score_sums);
  load_pieces(plain_sums, shared.plain_sums);
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < 2) {
      write_piece(partial + layer.maps, plain_sums[2 * k], plain_sums[2 * k + 1], k ^ order, block,
                  lane);
    }
    write_piece(partial + layer.maps + (1 + head) * map_floats, mixed_sums[2 * k],
                mixed_sums[2 * k + 1], k ^ order, block, lane);
    write_piece(partial + layer.scores + head * map_floats, score_sums[2 * k],
                score_sums[2 * k + 1], k ^ order, block, lane);
  }
  // Both heads' warps together have all of dc twice.
  if (head == 0) write_vector(partial + layer.constant + 16 * order, constant_sums, lane);
  write_vector(partial + layer.score_bias + head * tile_columns + 16 * block, bias_sums, lane);
}

}  // namespace posattn::cuda::standard
