// Layer 0 inside the kernels of layer 1. Its input is one number per node, so with x_0 = x and
// x_h = A_h x it is r = relu(sum_m a_m x_m + c), cheap enough to be done again instead of stored.
#pragma once

#include "posattn/model/cuda/small_positional/sums.cuh"

namespace posattn::cuda::positional {

struct alignas(16) FirstLayer {
  float attention[heads][kernel_nodes][kernel_nodes];
  float weights[maps][columns];
  float constant[kernel_nodes][columns];
  float inputs[2][maps][tile_rows];  // x_m, for two tiles
  uint32_t largest[2][warps];        // bits of the largest |x| of a warp's samples
  float row, most_constant;          // bounds: of sum_m |a_m| after scaling, of |c|
  int exponent;                      // of the a_m as halves

  // A barrier must follow.
  __device__ void load(const FusedLayer& layer, int slot, const Thread& self) {
    const float* folded = layer.folded + slot * layer.folded_size;
    const int nodes = layer.nodes;
    for (int k = threadIdx.x; k < heads * kernel_nodes * kernel_nodes; k += threads) {
      const int h = k / (kernel_nodes * kernel_nodes), i = k / kernel_nodes % kernel_nodes;
      const int j = k % kernel_nodes;
      attention[h][i][j] = attention_of(layer, folded + layer.first_attention, h, i, j);
    }
    const int k = threadIdx.x;
    const float* from = layer.first.weights + slot * layer.first.slot_stride;
    const float* constants = layer.first.constants + slot * layer.first.slot_stride;
    if (k < maps * columns) weights[k / columns][k % columns] = from[k];
    for (int e = k; e < kernel_nodes * columns; e += threads) {
      const int i = min(Place(layer, e / columns, 0).node, nodes - 1);
      constant[e / columns][e % columns] = constants[i * layer.first.constant_stride + e % columns];
    }
    if (self.warp > 0) return;
    float most = 0, most_c = 0;
    for (int column = self.lane; column < columns; column += 32) {
      float sum = 0;
      for (int m = 0; m < maps; ++m) sum += fabsf(from[m * columns + column]);
      most = fmaxf(most, sum);
      for (int i = 0; i < nodes; ++i) {
        most_c = fmaxf(most_c, fabsf(constants[i * layer.first.constant_stride + column]));
      }
    }
    most = __uint_as_float(warp_maximum(__float_as_uint(most)));
    most_c = __uint_as_float(warp_maximum(__float_as_uint(most_c)));
    if (self.lane == 0) {
      exponent = clamped(6 - exponent_of(most), most_exponent);
      row = most * power_of_two(exponent);
      most_constant = most_c;
    }
  }

  // The input number that a thread keeps for make_inputs; lanes 2 i and 2 i + 1 of warp w have
  // samples w and w + 8 of node i.
  __device__ static float input(const FusedLayer& layer, const TileWalk& walk, const Thread& self) {
    const int sample = walk.tile * tile_samples + self.warp + 8 * (self.lane & 1);
    const Place place(layer, min(self.lane >> 1, kernel_nodes), sample);
    if (place.node >= layer.nodes || place.sample >= layer.sample_stride) return 0;
    return layer.inputs[(int64_t{1} * walk.slot * layer.nodes + place.node) * layer.sample_stride +
                        place.sample];
  }

  // The x_m of the tile whose inputs are given. A barrier must follow.
  __device__ void make_inputs(int buffer, float input, const Thread& self) {
    const int node = min(self.lane >> 1, kernel_nodes - 1), half = self.lane & 1;
    float mixed[heads] = {};
#pragma unroll
    for (int j = 0; j < kernel_nodes; ++j) {
      const float x = __shfl_sync(0xffffffffu, input, 2 * j + half);
#pragma unroll
      for (int h = 0; h < heads; ++h) mixed[h] += attention[h][node][j] * x;
    }
    const uint32_t most = warp_maximum(__float_as_uint(fabsf(input)));
    if (self.lane == 0) largest[buffer][self.warp] = most;
    if (self.lane < 2 * kernel_nodes) {
      const int place = row_of(self.warp + 8 * half, node);
      inputs[buffer][0][place] = input;
#pragma unroll
      for (int h = 0; h < heads; ++h) inputs[buffer][1 + h][place] = mixed[h];
    }
  }

  // r of the tile, the warp's columns and samples. A barrier must follow. One product over
  // k = (high, low) of the x_m, times the high parts of the a_m, and the high ones times the low
  // parts of the a_m: as exact as fp32 for both precisions.
  template <bool exact>
  __device__ Range make_rows(Tile<exact>& tile, int buffer, const Thread& self) const {
    uint32_t most = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) most = max(most, largest[buffer][w]);
    const float most_input = __uint_as_float(most);
    const int input_exponent = clamped(7 - exponent_of(most_input), most_exponent);
    const float input_up = power_of_two(input_exponent), up = power_of_two(exponent);
    const int before = input_exponent + exponent;
    const float bound =
        row * (most_input * input_up) + most_constant * power_of_two(clamped(before, 120));
    const Narrowing narrowing(before, bound);

    const bool used = self.t < maps;
    const int m = min(self.t, maps - 1), column = self.column();
    const float a = used ? weights[m][column] * up : 0, b = used ? weights[m][column + 1] * up : 0;
    const Pair<true> left[2] = {pair_of<true>(a, a), pair_of<true>(b, b)};
    const float out_up = power_of_two(narrowing.exponent);
    float c[4], ninth[2];  // of nodes 2t and 2t + 1
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c[e] = constant[2 * self.t + (e & 1)][column + (e >> 1)] * out_up;
      if (e < 2) ninth[e] = constant[8][column + e] * out_up;
    }
    const OwnPlaces own(self);
#pragma unroll
    for (int s = 0; s <= 8; ++s) {
      const int q = row_tile_of(s, self);
      const float x = used ? inputs[buffer][m][8 * q + self.g] * input_up : 0;
      const Pair<true> right = pair_of<true>(x, 0);
      float u[4] = {};
      mma_f16(u, left[0].part[0], left[1].part[0], left[0].part[1] & 0xffffu,
              left[1].part[1] & 0xffffu, right.part[0] | right.part[1] << 16, right.part[0]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        u[e] = relu(u[e] * narrowing.factor + (s < 8 ? c[e] : ninth[e >> 1]));
      store_own<exact>(tile.words[0] + q * row_tile_words, own, u);
    }
    return {narrowing.exponent, bound * narrowing.factor};
  }
};

// What the errors of layer 0 give: da_m and dc_i of the thread's columns, and q_h = sum over
// columns of a_h du, from which dA_h(i, j) is the sum over samples of q_h,i x_j.
struct FirstProducts {
  float constants[4] = {}, ninth_constant[2] = {};  // as the errors of a row tile; of node 8
  float maps_sums[maps][2] = {};
  float q[9][2 * heads];  // of nodes 2t and 2t + 1 of eight samples; last of node 8

  __device__ void add(int s, const float (&d)[4], const FirstLayer& first, int buffer,
                      const Thread& self) {
    const int row = 8 * row_tile_of(s, self) + 2 * self.t;
    if (s < 8) {
#pragma unroll
      for (int e = 0; e < 4; ++e) constants[e] += d[e];
    } else {
      ninth_constant[0] = d[0] + d[1];
      ninth_constant[1] = d[2] + d[3];
    }
#pragma unroll
    for (int m = 0; m < maps; ++m) {
      const float2 x = *reinterpret_cast<const float2*>(&first.inputs[buffer][m][row]);
      maps_sums[m][0] += d[0] * x.x + d[1] * x.y;
      maps_sums[m][1] += d[2] * x.x + d[3] * x.y;
    }
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      const float2 a = *reinterpret_cast<const float2*>(&first.weights[1 + h][self.column()]);
      q[s][2 * h] = a.x * d[0] + a.y * d[2];
      q[s][2 * h + 1] = a.x * d[1] + a.y * d[3];
    }
  }
};

// Keeps the q_h of a tile, by the blocks of columns.
struct FirstScratch {
  float q[4][heads][tile_rows];

  __device__ void store(FirstProducts& products, const Thread& self) {
    sum_samples(products.q, self);
    const int row = 8 * (8 * self.half + self.g) + 2 * self.t;
    const int ninth_row = 128 + 8 * self.half + 2 * self.t;
#pragma unroll
    for (int h = 0; h < heads; ++h) {
      float(&to)[tile_rows] = q[self.block][h];
      to[row] = products.q[0][2 * h];
      to[row + 1] = products.q[0][2 * h + 1];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float sum = sum_over_columns(products.q[8][2 * h + e]);
        if (self.g == 0) to[ninth_row + e] = sum;
      }
    }
  }
  // Returns number threadIdx.x of [heads][nodes][nodes].
  __device__ float attention(const FusedLayer& layer, const FirstLayer& first, int buffer) const {
    const int k = threadIdx.x;
    if (k >= attention_numbers) return 0;
    const int h = k / (kernel_nodes * kernel_nodes), i = k / kernel_nodes % kernel_nodes;
    const int j = k % kernel_nodes;
    const float sum = of_nodes(first, buffer, h, i, j);
    return layer.paired && i < 4 && j < 4 ? sum + of_nodes(first, buffer, h, 4 + i, 4 + j) : sum;
  }

 private:
  __device__ float of_nodes(const FirstLayer& first, int buffer, int h, int i, int j) const {
    float sum = 0;
#pragma unroll 4
    for (int s = 0; s < tile_samples; ++s) {
      const int row = row_of(s, i);
      const float of_sample = (q[0][h][row] + q[1][h][row]) + (q[2][h][row] + q[3][h][row]);
      sum += of_sample * first.inputs[buffer][0][row_of(s, j)];
    }
    return sum;
  }
};

}  // namespace posattn::cuda::positional
