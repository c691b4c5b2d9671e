// Layer 0, backward: the gradients of the tables of small_standard/tables.cuh.
//   dA_h,ij = du_i . M_h s_j = v_j (du_i . a_h) + du_i . C_h,j,   ds = the softmax's gradient
//   dT_ij = sum ds_ij (over samples), and so on for attended, query_term and corner
//   dM_m s_j = du_j for m = 0, else sum_i A_h,ij du_i;   da = sum v_j (dM s_j),   dC_j = sum dM s_j
#pragma once

#include <type_traits>

#include "posattn/model/cuda/small_positional/tile.cuh"
#include "posattn/model/cuda/small_standard/first.cuh"

namespace posattn::cuda::standard {

// Adds values[0 .. count - 1] up over the eight lanes with the same lane % 4, halving their number
// with every exchange: afterwards lane group g = lane / 4 has the sums of the values from
// g count / 8 in values[0 .. count / 8 - 1].
template <int count, int mask = 16>
__device__ inline void share_sums(float* values, int lane) {
  constexpr int half = count / 2;
  const bool upper = lane & mask;
#pragma unroll
  for (int k = 0; k < half; ++k) {
    const float kept = upper ? values[half + k] : values[k];
    const float given = upper ? values[k] : values[half + k];
    values[k] = kept + __shfl_xor_sync(0xffffffffu, given, mask);
  }
  if constexpr (mask > 4) share_sums<half, mask / 2>(values, lane);
}

// A lane's B fragments of du's products with C_1, C_2 (nodes 0 .. 7), and with what else there is:
// C_1,8, C_2,8, a_1, a_2.
constexpr int table_products = heads + 1;
template <int N>
struct TableRows {
  static constexpr int zeros = -1;
  const float* tables;
  int row[table_products];  // places of the lane's first columns, or zeros

  __device__ TableRows(const float* tables_of_slot, int lane) : tables(tables_of_slot) {
    const int n = lane >> 2, column = 2 * (lane & 3);
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      row[h] = n < N ? Tables<N>::node_rows(1 + h, n) + column : zeros;
    }
    row[heads] = zeros;
    if (N > 8 && n < heads) row[heads] = Tables<N>::node_rows(1 + n, 8) + column;
    if (n >= heads && n < 2 * heads) {
      row[heads] = Tables<N>::value_column(1 + n - heads) + column;
    }
  }
  template <bool exact>
  __device__ void load(float2 (&fragments)[table_products], int step) const {
#pragma unroll
    for (int m = 0; m < table_products; ++m) {
      float2 b = make_float2(0, 0);
      if (row[m] != zeros) b = *reinterpret_cast<const float2*>(tables + row[m] + 8 * step);
      fragments[m] = make_float2(operand<exact>(b.x), operand<exact>(b.y));
    }
  }
};

// Node i of a tile: sums over the tile's samples of ds, ds v_i, ds v_j, ds v_i v_j for all h and j,
// sums[0 .. count / 8 - 1] being the lane's share of
//   [h][j = 2 t, 2 t + 1, for nine nodes also 8 (t = 0)][sum].
template <int N>
struct ScoreSums {
  static constexpr int nodes = N > 8 ? 3 : 2;  // a lane's j
  static constexpr int count = heads * nodes * score_sums;
  static constexpr int shares = count / 8;

  __device__ static int node(int k, int t) { return k == 2 ? (t == 0 ? 8 : N) : 2 * t + k; }

  template <bool exact>
  __device__ static void of_node(float (&sums)[count], const float* gradient,
                                 const float* attention, const float* values,
                                 const TableRows<N>& table_rows, int i, int lane) {
    const int g = lane >> 2, t = lane & 3;
    float products[table_products][4] = {};
    float(*const c[table_products])[4] = {&products[0], &products[1], &products[2]};
#pragma unroll 4
    for (int step = 0; step < 8; ++step) {
      float2 b[table_products];
      table_rows.template load<exact>(b, step);
      multiply<exact, table_products>(c, load4(gradient + tile_offset(i, g, 4 * step + t)), b);
    }
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      // The lane's two samples have du_i . a_h, A and dA.
      const int source = (lane & ~3) + 1;
      const float of_value[2] = {__shfl_sync(0xffffffffu, products[heads][h], source),
                                 __shfl_sync(0xffffffffu, products[heads][2 + h], source)};
      float a[nodes][2] = {}, value[nodes][2] = {}, ds[nodes][2], sum[2] = {0, 0};
      if (t < node_pairs<N>) {
        const float4 pair = load4(attention + coefficient_offset<N>(h, i, t, g));
        a[0][0] = pair.x;
        a[0][1] = pair.y;
        if (2 * t + 1 < N) {
          a[1][0] = pair.z;
          a[1][1] = pair.w;
        }
      }
      if (N > 8 && t == 0) {
        const float4 last = load4(attention + coefficient_offset<N>(h, i, node_pairs<N> - 1, g));
        a[nodes - 1][0] = last.x;
        a[nodes - 1][1] = last.y;
      }
#pragma unroll
      for (int k = 0; k < nodes; ++k) {
        const int j = node(k, t);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          if (j < N) value[k][e] = values[j * tile_samples + g + 8 * e];
          const float of_node = k == 2 ? products[heads][2 * e + h] : products[h][2 * e + k];
          ds[k][e] = of_node + value[k][e] * of_value[e];  // dA
          sum[e] += a[k][e] * ds[k][e];
        }
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        sum[e] += __shfl_xor_sync(0xffffffffu, sum[e], 1);
        sum[e] += __shfl_xor_sync(0xffffffffu, sum[e], 2);
      }
      const float of_i[2] = {values[i * tile_samples + g], values[i * tile_samples + g + 8]};
#pragma unroll
      for (int k = 0; k < nodes; ++k) {
        float* to = sums + (h * nodes + k) * score_sums;
        const float first = a[k][0] * (ds[k][0] - sum[0]), second = a[k][1] * (ds[k][1] - sum[1]);
        to[0] = first + second;
        to[1] = first * of_i[0] + second * of_i[1];
        to[2] = first * value[k][0] + second * value[k][1];
        to[3] = first * of_i[0] * value[k][0] + second * of_i[1] * value[k][1];
      }
    }
    share_sums<count>(sums, lane);
  }
  // The lane's share of node i's sums, to their places in the gradients of the tables.
  __device__ static void write(float* gradient, const float (&sums)[shares], int i, int lane) {
#pragma unroll
    for (int k = 0; k < shares; ++k) {
      const int place = (lane >> 2) * shares + k, sum = place % score_sums;
      const int j = node(place / score_sums % nodes, lane & 3), h = place / score_sums / nodes;
      if (j < N) gradient[TableGradients<N>::scores(sum, h) + i * N + j] = sums[k];
    }
  }
};

// The gradient of M_m s_j to those of a and C: sums over the tile's samples, of two columns of row
// a, then C_0, C_1, ...; a lane's share of them.
template <int N>
struct RowSums {
  static constexpr int count = (2 * (1 + N) + 7) / 8 * 8;
  static constexpr int shares = count / 8;

  __device__ static void of_map(float (&sums)[count], const float (&mapped_gradient)[N][4],
                                const float* values, int lane) {
    const int group = lane >> 2;
#pragma unroll
    for (int k = 0; k < count; ++k) sums[k] = 0;
#pragma unroll
    for (int j = 0; j < N; ++j) {
      const float first = values[j * tile_samples + group];
      const float second = values[j * tile_samples + group + 8];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        sums[e] += mapped_gradient[j][e] * first + mapped_gradient[j][2 + e] * second;
        sums[2 * (1 + j) + e] = mapped_gradient[j][e] + mapped_gradient[j][2 + e];
      }
    }
    share_sums<count>(sums, lane);
  }
  __device__ static void write(float* gradient, const float (&sums)[shares], int m, int warp,
                               int lane) {
    const int column = 8 * warp + 2 * (lane & 3);
#pragma unroll
    for (int k = 0; k < shares; ++k) {
      const int place = (lane >> 2) * shares + k, row = place / 2;
      if (row > N) continue;
      const int row_place =
          row == 0 ? Tables<N>::value_column(m) : Tables<N>::node_rows(m, row - 1);
      gradient[row_place + column + place % 2] = sums[k];
    }
  }
};

template <int count, int more>
__device__ inline void add_shares(float (&sums)[count], const float (&tile_sums)[more]) {
#pragma unroll
  for (int k = 0; k < count; ++k) sums[k] += tile_sums[k];
}

// du comes as floats, or as halves, which are then unpacked.
template <int N, bool halves>
struct alignas(16) FirstBackwardShared {
  float gradient[halves ? 1 : 2][tile_floats<N>];  // du
  float attention[2][coefficient_floats<N>];       // A
  float values[group_values<N>];
  alignas(16) std::conditional_t<halves, positional::Tile<false>[2], char> tiles;
};

template <int N>
__device__ inline void unpack_tile(float* to, const positional::Tile<false>& from) {
  const float down = positional::power_of_two(-from.exponent);
  for (int k = static_cast<int>(threadIdx.x); k < positional::plane_words; k += tile_threads) {
    const int row = k / positional::row_words, pair = k % positional::row_words;
    const int node = positional::node_of_row(row), sample = positional::sample_of_row(row);
    const uint32_t word = from.words[0][positional::word_of(row, pair >> 2) + (pair & 3)];
    const float2 two = unpack_halves(word);
    float* place = to + tile_element(node, sample, 2 * pair);
    place[0] = two.x * down;
    place[2] = two.y * down;
  }
}

// table_gradients [slots, blocks, TableGradients<N>::size]. Warp w has the scores of node w (the
// first also those of node 8) and columns 8 w .. 8 w + 7 of a and C.
template <bool exact, int N, bool halves = false>
__global__ void __launch_bounds__(tile_threads, 2)
    backward_first(Step step, Layer layer, const float* all_tables, float* table_gradients) {
  const Place place(step);
  if (place.rests()) return;
  auto& shared = *reinterpret_cast<FirstBackwardShared<N, halves>*>(dynamic_shared());
  const int warp = static_cast<int>(threadIdx.x) >> 5, lane = static_cast<int>(threadIdx.x) & 31;
  const TableRows<N> table_rows(all_tables + int64_t{1} * place.slot * Tables<N>::size, lane);
  const int64_t tiles = int64_t{1} * place.slot * step.tiles;
  const auto copy_tile = [&](int tile) {
    const int stage = (tile - place.first) & 1;
    if constexpr (halves) {
      shared.tiles[stage].start_copy(
          reinterpret_cast<const positional::Tile<false>*>(layer.gradient) + tiles + tile);
    } else {
      copy_block(shared.gradient[stage], layer.gradient + (tiles + tile) * tile_floats<N>,
                 tile_floats<N>);
    }
    copy_block(shared.attention[stage], layer.attention + (tiles + tile) * coefficient_floats<N>,
               coefficient_floats<N>);
    commit_copies();
  };
  constexpr int warp_nodes = (N + tile_warps - 1) / tile_warps;
  float score_shares[warp_nodes][ScoreSums<N>::shares] = {};
  float row_shares[maps][RowSums<N>::shares] = {};
  if (place.first < place.end) copy_tile(place.first);
  load_values<N>(shared.values, step, place);
  for (int tile = place.first; tile < place.end; ++tile) {
    const float* gradient = shared.gradient[halves ? 0 : (tile - place.first) & 1];
    const float* attention = shared.attention[(tile - place.first) & 1];
    const float* values = shared.values + (tile - place.first) * N * tile_samples;
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < place.end) copy_tile(tile + 1);
    if constexpr (halves) {
      unpack_tile<N>(shared.gradient[0], shared.tiles[(tile - place.first) & 1]);
      __syncthreads();
    }
#pragma unroll
    for (int k = 0; k < warp_nodes; ++k) {
      const int i = warp + k * tile_warps;
      if (i >= N) continue;
      float sums[ScoreSums<N>::count];
      ScoreSums<N>::template of_node<exact>(sums, gradient, attention, values, table_rows, i, lane);
      add_shares(score_shares[k], sums);
    }
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      float mapped_gradient[N][4], row_sums[RowSums<N>::count];
      fill(mapped_gradient, 0, 0);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (i % 4 == 0) __syncwarp();  // keeps the compiler from loading too far ahead
        if (m == 0) {
          load_node(mapped_gradient[i], gradient, i, warp, lane);
        } else {
          float du[4];
          load_node(du, gradient, i, warp, lane);
          mix_row_transposed(mapped_gradient, du, attention, m - 1, i, lane >> 2);
        }
      }
      RowSums<N>::of_map(row_sums, mapped_gradient, values, lane);
      add_shares(row_shares[m], row_sums);
    }
  }
  float* to = table_gradients + place.part * TableGradients<N>::size;
#pragma unroll
  for (int k = 0; k < warp_nodes; ++k) {
    const int i = warp + k * tile_warps;
    if (i < N) ScoreSums<N>::write(to, score_shares[k], i, lane);
  }
#pragma unroll
  for (int m = 0; m < maps; ++m) RowSums<N>::write(to, row_shares[m], m, warp, lane);
}

}  // namespace posattn::cuda::standard
