// Backward through a layer of side_tile.cuh. With dz = du P, of each head
//   dA = dz v^T,   dS = A (dA - row sums of A dA),   dv = A^T dz,
//   dq = turned back dS k,   dk = turned back dS^T q,
//   dQ = dq^T s,   dK = dk^T s,   and of biases the sums over samples of dq and dk,
// and of all of it
//   dM = du^T s,   dP = du^T z,   dV = dv^T s,   dc = column sums of du,
//   ds = du M + dv V + sum over heads of (dq Q + dk K).
#include <algorithm>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/gradient.cuh"
#include "posattn/model/cuda/medium/side_launch.h"
#include "posattn/model/cuda/medium/side_tile.cuh"

namespace posattn::cuda::medium {
namespace {

constexpr int buffers = 5;  // s, du, v then dv, dz, z

// And of a head q then dq, k and dk; dS.
template <int node_tiles, int score_tiles>
constexpr int backward_bytes = 2 * (buffers * side_buffer + 3 * Sides<score_tiles>::buffer +
                                    Sides<score_tiles>::maps) +
                               512 * most_side_samples<node_tiles>() * node_tiles* node_tiles;

// A tile in shared memory, and what a warp adds up over the tiles of its block.
template <int node_tiles, int score_tiles>
struct BackwardTile {
  using S = Sides<score_tiles>;
  static constexpr int side_parts = 2 * score_tiles;  // of dQ, and of dK
  const Layer& layer;
  const SideMaps<score_tiles>& maps;
  Half *s, *du, *v, *dz, *z, *q, *k, *dk;
  uint4* dscores;  // [samples, sixteens of queries, of keys, 32]
  uint32_t* largest;
  const float* biases;
  float* dbiases;  // [2 heads][nodes][columns], of the block's group
  int warp, lane;
  float bias_up[2 * heads] = {};
  int samples = 0;
  bool first_tile = true;
  const uint4* attention = nullptr;  // the tile's, of all heads
  Scale s_scale = {}, du_scale = {};
  float q_up = 0, k_up = 0;  // of the head's sides
  // Of dQ, dK and dP's columns of the head, two of 4 score_tiles + 4 parts; of dM (the first eight
  // warps); of dV (the last eight).
  GradientPart of_head[heads][2] = {}, dm = {}, dvalues = {};
  BlockSums ds = {};

  __device__ float v_down() const { return s_scale.down * maps.v_scale.down * (1 / product_down); }
  __device__ float dz_down() const {
    return du_scale.down * maps.p_scale.down * (1 / product_down);
  }
  __device__ const uint4* operands(int head, Unit at) const {
    return attention + kept_place<node_tiles>(at.sample, head, at.node) + lane;
  }
  // rows W^T or rows W of the warp's block, stored times product_down.
  template <bool transposed>
  __device__ void store_product(Half* to, const Half* rows, const Half* weights) const {
    const OwnBlock own(computed_here(warp));
    BlockSums sums;
    sums.template add<columns, stride, transposed>(
        rows + own.row * stride, weights + own.column * (transposed ? 1 : stride), lane);
    sums.for_pairs(lane, [&](int row, int column, float x, float y) {
      store_halves(to + (own.row + row) * stride + own.column + column, product_down * x,
                   product_down * y);
    });
  }
  // ds += rows W, times `factor`.
  template <int depth, int row_stride>
  __device__ void add_to_ds(const Half* rows, const Half* weights, float factor) {
    const OwnBlock own(computed_here(warp));
    BlockSums sums;
    sums.template add<depth, row_stride, true>(rows + own.row * row_stride, weights + own.column,
                                               lane);
    ds.add_scaled(sums, factor);
  }

  // v, dz, the first part of ds, dM.
  __device__ void begin() {
    store_product<false>(v, s, maps.v());
    store_product<true>(dz, du, maps.p());
    ds = BlockSums();
    add_to_ds<columns, stride>(du, maps.m(), du_scale.down * maps.m_scale.down);
    if (warp < GradientPart::count) {
      dm.template add<side_rows>(du, s, du_scale.down * s_scale.down, computed_here(warp), lane);
    }
  }
  template <int head>
  __device__ void make_sides() {
    const auto make = [&](Half* to, int index, float& up) {
      const Scale weight = maps.side_scale[index];
      up = fminf(s_scale.up * weight.up * (product_down / 2), bias_up[index]);
      make_side<score_tiles>(to, s, maps.side(index), biases + index * layer.nodes * S::columns,
                             up * s_scale.down * weight.down, up, layer, computed_here(warp), lane);
    };
    make(q, 2 * head, q_up);
    make(k, 2 * head + 1, k_up);
  }

  // z and dS. Returns what dS was multiplied with. There is a barrier in it.
  template <int head>
  __device__ Scale follow_queries() {
    constexpr int share =
        (most_side_samples<node_tiles>() * node_tiles + data_warps - 1) / data_warps;
    const int nodes = layer.nodes, units = samples * node_tiles;
    float c[share][2 * node_tiles][4];
    float most = 0;
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int unit = computed_here(warp) + i * data_warps;
      if (unit >= units) continue;
      const auto at = Unit::of<node_tiles>(unit);
      const float largest_here = follow_unit<node_tiles>(
          c[i], operands(head, at), v + 32 * head, dz + 32 * head, z + 32 * head, at, nodes, lane);
      most = fmaxf(most, largest_here);
    }
    put_largest(largest, __float_as_uint(most), warp, lane);
    __syncthreads();
    const Scale scale = scale_of(get_largest<data_warps>(largest, lane));
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int unit = computed_here(warp) + i * data_warps;
      if (unit >= units) continue;
      uint4* to = dscores + unit * node_tiles * 32 + lane;
#pragma unroll
      for (int j = 0; j < node_tiles; ++j) {
        to[32 * j] = as_uint4(as_operand(c[i][2 * j], c[i][2 * j + 1], scale.up));
      }
    }
    return scale;
  }

  // A unit's sums, times product_down and turned back -> shared memory, those of nodes alone.
  __device__ void store_side(Half* to, float (&c)[score_tiles][2][4], Unit at) const {
#pragma unroll
    for (int pair = 0; pair < score_tiles; ++pair) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int node = at.node + (lane >> 2) + 8 * half;
          const int column = 16 * pair + 8 * n + 2 * (lane & 3);
          if (node >= layer.nodes) continue;
          float x = product_down * c[pair][n][2 * half];
          float y = product_down * c[pair][n][2 * half + 1];
          turn(layer, node, column, -1, x, y);
          store_halves(to + (at.sample * layer.nodes + node) * S::row_stride + column, x, y);
        }
      }
    }
  }

  // dk, dv.
  template <int head>
  __device__ void follow_keys() {
    const int nodes = layer.nodes, units = samples * node_tiles;
    for (int unit = computed_here(warp); unit < units; unit += data_warps) {
      const auto at = Unit::of<node_tiles>(unit);
      const int row = at.sample * nodes;
      float mixed[score_tiles][2][4] = {};
#pragma unroll
      for (int j = 0; j < node_tiles; ++j) {  // sixteen queries
        const uint4* from =
            dscores + ((at.sample * node_tiles + j) * node_tiles + at.node / 16) * 32 + lane;
        add_mixed<score_tiles, S::row_stride>(mixed, transpose(as_operand(*from)),
                                              q + (row + 16 * j) * S::row_stride, lane);
      }
      store_side(dk, mixed, at);
      float values[2][2][4] = {};
#pragma unroll
      for (int j = 0; j < node_tiles; ++j) {
        const Unit queries = {at.sample, 16 * j};
        const DataOperand a = transpose(as_operand(operands(head, queries)[at.node / 16 * 32]));
        add_mixed(values, a, dz + (row + 16 * j) * stride + 32 * head, lane);
      }
      store_mixed(v + 32 * head, values, attention_down * gathered_down, at, nodes, lane);
    }
  }
  // dq where q was.
  __device__ void replace_queries() {
    const int nodes = layer.nodes, units = samples * node_tiles;
    for (int unit = computed_here(warp); unit < units; unit += data_warps) {
      const auto at = Unit::of<node_tiles>(unit);
      float mixed[score_tiles][2][4] = {};
#pragma unroll
      for (int j = 0; j < node_tiles; ++j) {
        add_mixed<score_tiles, S::row_stride>(
            mixed, as_operand(dscores[(unit * node_tiles + j) * 32 + lane]),
            k + (at.sample * nodes + 16 * j) * S::row_stride, lane);
      }
      store_side(q, mixed, at);
    }
  }

  // The head's part of ds, and its gradients.
  template <int head>
  __device__ void gather(Scale scale) {
    const float score_down = scale.down * attention_down * dz_down() * v_down();
    const float dq_down = score_down * (1 / product_down) / k_up;
    const float dk_down = score_down * (1 / product_down) / q_up;
    add_to_ds<S::columns, S::row_stride>(q, maps.side(2 * head),
                                         dq_down * maps.side_scale[2 * head].down);
    add_to_ds<S::columns, S::row_stride>(dk, maps.side(2 * head + 1),
                                         dk_down * maps.side_scale[2 * head + 1].down);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int part = computed_here(warp) + i * data_warps;
      GradientPart& sums = of_head[head][i];
      if (part < side_parts) {
        sums.template add<side_rows, S::row_stride>(q, s, dq_down * s_scale.down, part, lane);
      } else if (part < 2 * side_parts) {
        sums.template add<side_rows, S::row_stride>(dk, s, dk_down * s_scale.down,
                                                    part - side_parts, lane);
      } else if (part < 2 * side_parts + 4) {
        sums.template add<side_rows>(du, z, du_scale.down * v_down(),
                                     2 * (part - 2 * side_parts) + head, lane);
      }
    }
    add_biases(q, 2 * head, dq_down);
    add_biases(dk, 2 * head + 1, dk_down);
  }
  // The same thread has the same numbers in every tile.
  __device__ void add_biases(const Half* side, int index, float factor) {
    const int nodes = layer.nodes;
    float* to = dbiases + index * nodes * S::columns;
    for (int at = static_cast<int>(threadIdx.x); at < nodes * S::columns; at += data_threads) {
      const int node = at / S::columns, column = at - node * S::columns;
      float sum = 0;
      for (int sample = 0; sample < samples; ++sample) {
        sum += unpack_halves(side[(sample * nodes + node) * S::row_stride + column]).x;
      }
      to[at] = (first_tile ? 0 : to[at]) + factor * sum;
    }
  }

  // dV, ds whole.
  __device__ void end() {
    const float dv_down = dz_down() * (1 / gathered_down);
    add_to_ds<columns, stride>(v, maps.v(), dv_down * maps.v_scale.down);
    if (warp >= data_warps - GradientPart::count) {
      dvalues.template add<side_rows>(v, s, dv_down * s_scale.down, last_part(), lane);
    }
    first_tile = false;
  }
  __device__ int last_part() const {
    return computed_here(warp) - (data_warps - GradientPart::count);
  }

  __device__ void store(float* gradients) {
    constexpr int size = columns * columns, side = S::columns * columns;
    float *maps_place = gradients + layer.maps, *scores = gradients + layer.scores;
    if (warp < GradientPart::count) dm.store(maps_place, warp, lane);
    if (warp >= data_warps - GradientPart::count) {
      dvalues.store(maps_place + size, last_part(), lane);
    }
#pragma unroll
    for (int head = 0; head < heads; ++head) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int part = warp + i * data_warps;
        const GradientPart& sums = of_head[head][i];
        if (part < side_parts) {
          sums.store(scores + 2 * head * side, part, lane);
        } else if (part < 2 * side_parts) {
          sums.store(scores + (2 * head + 1) * side, part - side_parts, lane);
        } else if (part < 2 * side_parts + 4) {
          sums.store(maps_place + 2 * size, 2 * (part - 2 * side_parts) + head, lane);
        }
      }
    }
  }
};

// One block: a group of a slot.
template <int node_tiles, int score_tiles>
__global__ void __launch_bounds__(data_threads, 1)
    medium_side_backward_kernel(Layer layer, int tile_samples, int group) {
  using S = Sides<score_tiles>;
  __shared__ uint32_t largest[SideMaps<score_tiles>::count * 32];
  const int slot = static_cast<int>(blockIdx.y), nodes = layer.nodes;
  const int present = layer.steps[slot].samples;
  if (present == 0) return;
  float* gradients = layer.partials + (int64_t{slot} * gridDim.x + blockIdx.x) * layer.folded_size;
  int sample = static_cast<int>(blockIdx.x) * group;
  if (sample >= present) {
    write_zeros(gradients + layer.maps, 3 * columns * columns, data_threads);
    write_zeros(gradients + layer.constant, columns, data_threads);
    write_zeros(gradients + layer.scores, 2 * heads * S::columns * columns, data_threads);
    write_zeros(gradients + layer.score_bias, 2 * heads * nodes * S::columns, data_threads);
    return;
  }
  const int last = min(present, sample + group);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* sides = s + buffers * side_buffer;
  Half* weights = sides + 3 * S::buffer;
  fill_with_zeros(s, static_cast<int>(weights - s), data_threads);
  const auto maps = load_side_maps<score_tiles>(weights, largest, layer, folded, warp, lane);
  __syncthreads();  // `largest` is read no more
  BackwardTile<node_tiles, score_tiles> tile = {
      .layer = layer,
      .maps = maps,
      .s = s,
      .du = s + side_buffer,
      .v = s + 2 * side_buffer,
      .dz = s + 3 * side_buffer,
      .z = s + 4 * side_buffer,
      .q = sides,
      .k = sides + S::buffer,
      .dk = sides + 2 * S::buffer,
      .dscores = reinterpret_cast<uint4*>(weights + S::maps),
      .largest = largest + 64,
      .biases = folded + layer.score_bias,
      .dbiases = gradients + layer.score_bias,
      .warp = warp,
      .lane = lane};
#pragma unroll
  for (int i = 0; i < 2 * heads; ++i) {
    tile.bias_up[i] = bias_scale<score_tiles>(tile.biases + i * nodes * S::columns, nodes, lane);
  }
  float4 dconstant = make_float4(0, 0, 0, 0);
  for (; sample < last; sample += tile_samples) {
    const int samples = min(tile_samples, last - sample), rows = samples * nodes;
    const int64_t first_sample = int64_t{slot} * layer.samples + sample;
    const int64_t place = first_sample * nodes * columns;
    const int more = max(0, min(tile_samples, last - sample - tile_samples)) * nodes;
    load_backward_rows<side_rows>(tile.s, tile.du, tile.s_scale, tile.du_scale, largest,
                                  layer.rows + place, layer.errors + place, rows, more, dconstant,
                                  warp, lane);
    tile.samples = samples;
    tile.attention = layer.kept_attention + kept_place<node_tiles>(first_sample, 0, 0);
    __syncthreads();
    tile.begin();
    const auto follow = [&]<int head>() {
      tile.template make_sides<head>();
      __syncthreads();
      const Scale scale = tile.template follow_queries<head>();
      __syncthreads();
      tile.template follow_keys<head>();
      __syncthreads();
      tile.replace_queries();
      __syncthreads();
      tile.template gather<head>(scale);
    };
    follow.template operator()<0>();
    __syncthreads();  // the head's sides are read no more
    follow.template operator()<1>();
    tile.end();
    float* to = layer.previous_errors + place;
    const bool everywhere = !layer.rectified;
    const OwnBlock own(computed_here(warp));
    tile.ds.for_pairs(lane, [&](int row, int column, float x, float next) {
      row += own.row;
      column += own.column;
      if (row >= rows) return;
      const auto positive = *reinterpret_cast<const uint32_t*>(s + row * stride + column);
      *reinterpret_cast<float2*>(to + row * columns + column) =
          make_float2(everywhere || (positive & 0xffffu) != 0 ? x : 0,
                      everywhere || positive >> 16 != 0 ? next : 0);
    });
  }
  tile.store(gradients);
  __syncthreads();  // the tile is read no more
  store_column_sums<data_threads>(gradients + layer.constant, reinterpret_cast<float*>(s),
                                  dconstant);
}

}  // namespace

// About twenty samples, as from positions.
int side_group_samples(int nodes) {
  const int samples = side_samples(nodes);
  return (20 + samples / 2) / samples * samples;
}

int64_t side_shared_bytes(int nodes, int side_columns) {
  Layer layer;
  layer.nodes = nodes;
  layer.side_columns = side_columns;
  int64_t bytes = side_forward_shared_bytes(side_columns);
  with_side_sizes(layer, [&]<int node_tiles, int score_tiles>() {
    bytes = std::max(bytes, int64_t{backward_bytes<node_tiles, score_tiles>});
  });
  return bytes;
}

void enqueue_side_backward(const Layer& layer, cudaStream_t stream) {
  with_side_sizes(layer, [&]<int node_tiles, int score_tiles>() {
    constexpr int bytes = backward_bytes<node_tiles, score_tiles>;
    static_assert(bytes <= most_shared_bytes);
    const auto kernel = &medium_side_backward_kernel<node_tiles, score_tiles>;
    allow_shared_bytes(kernel, bytes);
    launch(kernel, dim3(groups(layer, Precision::tf32), layer.slots), dim3(data_threads), bytes,
           stream, layer, side_samples(layer.nodes), side_group_samples(layer.nodes));
  });
}

}  // namespace posattn::cuda::medium
