// Backward through a layer with attention from data. With dz = du P, of each head
//   dA = dz v^T,   dS = A (dA - row sums of A dA),   dv = A^T dz,   y = dS s,   y' = dS^T s,
// and of all of it
//   dM = du^T s,   dP = du^T z,   dV = dv^T s,   dc = column sums of du,
//   dG = s^T y,    dg = column sums of y,
//   ds = du M + dv V + sum over heads of (y G^T + y' G + column sums of dS g^T).
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/data_gradient.cuh"
#include "posattn/model/cuda/medium/data_softmax.cuh"
#include "posattn/model/cuda/medium/gradient.cuh"
#include "posattn/model/cuda/medium/launch.h"

namespace posattn::cuda::medium {
namespace {

constexpr int buffers = 7;  // s, du, v then dv, dz, z, y, y'

// How many operands of dS one head has, of sixteen queries by sixteen keys each.
template <int node_tiles>
constexpr int score_operands() {
  int most = 0;
  for (int nodes = fewest_nodes; nodes <= 16 * node_tiles; ++nodes) {
    if ((nodes + 15) / 16 == node_tiles && data_samples(nodes) > most) most = data_samples(nodes);
  }
  return most * node_tiles * node_tiles;
}
template <int node_tiles>
constexpr int backward_bytes = 2 * (buffers * data_buffer + DataMaps::count * matrix_halves) +
                               512 * score_operands<node_tiles>();

// A tile in shared memory, and what a warp adds up over the tiles of its block.
template <int node_tiles>
struct BackwardTile {
  const Layer& layer;
  const DataMaps& maps;
  Half *s, *du, *v, *dz, *z, *y, *y_transposed;
  uint4* dscores;      // [samples, sixteens of queries, of keys, 32]
  float* column_sums;  // of dS, by row
  uint32_t* largest;
  const float* g;
  int warp, lane;
  int samples = 0;
  const uint4* attention = nullptr;  // the tile's, of all heads
  Scale s_scale = {}, du_scale = {};
  // of_head: dG in eight warps, dP's columns of the head in the other four. dM is in the first
  // eight warps, dV in the last eight.
  GradientPart of_head[heads] = {}, dm = {}, dvalues = {};
  float dbias[heads] = {};  // dg of column threadIdx.x % 64, of some rows
  RowSums ds = {};

  __device__ float v_down() const { return s_scale.down * maps.v_scale.down * (1 / product_down); }
  __device__ float dz_down() const {
    return du_scale.down * maps.p_scale.down * (1 / product_down);
  }
  __device__ const uint4* operands(int head, Unit at) const {
    return attention + kept_place<node_tiles>(at.sample, head, at.node) + lane;
  }

  // Makes v, dz, the first part of ds, and dM.
  __device__ void begin() {
    {
      RowSums values;
      multiply_data_rows(s, computed_here(warp), computed_here(lane),
                         RowProduct<false>{values, maps.v()});
      values.store(v, product_down, computed_here(warp), computed_here(lane));
    }
    RowSums products, direct;
    multiply_data_rows(du, computed_here(warp), computed_here(lane),
                       RowProduct<true>{products, maps.p()}, RowProduct<true>{direct, maps.m()});
    products.store(dz, product_down, computed_here(warp), computed_here(lane));
    ds = RowSums();
    ds.add(direct, du_scale.down * maps.m_scale.down);
    if (warp < GradientPart::count) {
      dm.add(du, s, du_scale.down * s_scale.down, computed_here(warp), computed_here(lane));
    }
  }

  // z, dS and y. Returns what dS was multiplied with. There is a barrier in it.
  template <int head>
  __device__ Scale follow_queries() {
    constexpr int share = unit_share<node_tiles>();
    const int nodes = layer.nodes, units = samples * node_tiles;
    float c[share][2 * node_tiles][4];
    float most = 0;
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int unit = computed_here(warp) + i * data_warps;
      if (unit >= units) continue;
      const auto at = Unit::of<node_tiles>(unit);
      const float largest_here =
          follow_unit<node_tiles>(c[i], operands(head, at), v + 32 * head, dz + 32 * head,
                                  z + 32 * head, at, nodes, computed_here(lane));
      most = fmaxf(most, largest_here);
    }
    put_largest(largest, __float_as_uint(most), warp, lane);
    __syncthreads();  // y is read no more either
    const Scale scale = scale_of(get_largest<data_warps>(largest, lane));
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int unit = computed_here(warp) + i * data_warps;
      if (unit >= units) continue;
      const auto at = Unit::of<node_tiles>(unit);
      const int here = computed_here(lane);
      uint4* to = dscores + unit * node_tiles * 32 + here;
      float mixed[4][2][4] = {};
#pragma unroll
      for (int k = 0; k < node_tiles; ++k) {
        const DataOperand a = as_operand(c[i][2 * k], c[i][2 * k + 1], scale.up);
        to[32 * k] = as_uint4(a);
        add_mixed(mixed, a, s + (at.sample * nodes + 16 * k) * stride, here);
      }
      store_mixed(y, mixed, product_down, at, nodes, here);
    }
    return scale;
  }

  // y', column sums of dS, dv.
  template <int head>
  __device__ void follow_keys() {
    const int nodes = layer.nodes, units = samples * node_tiles;
    for (int unit = computed_here(warp); unit < units; unit += data_warps) {
      const auto at = Unit::of<node_tiles>(unit);
      const int here = computed_here(lane), row = at.sample * nodes;
      float mixed[4][2][4] = {};
      float sum[2] = {0, 0};
#pragma unroll
      for (int k = 0; k < node_tiles; ++k) {  // sixteen queries
        const uint4* from =
            dscores + ((at.sample * node_tiles + k) * node_tiles + at.node / 16) * 32 + here;
        const DataOperand a = transpose(as_operand(*from));
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const float2 x = unpack_halves(a.high[e]);
          sum[e & 1] += x.x + x.y;
        }
        add_mixed(mixed, a, s + (row + 16 * k) * stride, here);
      }
      store_mixed(y_transposed, mixed, product_down, at, nodes, here);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        sum[half] = row_sum(sum[half]);
        const int node = at.node + (here >> 2) + 8 * half;
        if ((here & 3) == 0 && node < nodes) column_sums[row + node] = sum[half];
      }
      float values[2][2][4] = {};
#pragma unroll
      for (int k = 0; k < node_tiles; ++k) {
        const Unit queries = {at.sample, 16 * k};
        const DataOperand a = transpose(as_operand(operands(head, queries)[at.node / 16 * 32]));
        add_mixed(values, a, dz + (row + 16 * k) * stride + 32 * head, here);
      }
      store_mixed(v + 32 * head, values, attention_down * gathered_down, at, nodes, here);
    }
  }

  // Makes the head's part of ds, dG, dg, and its columns of dP.
  template <int head>
  __device__ void gather(Scale scale) {
    const int rows = samples * layer.nodes;
    const float score_down = scale.down * attention_down * dz_down() * v_down();
    const float y_down = score_down * s_scale.down * (1 / product_down);
    {
      RowSums products;
      multiply_data_rows(y, computed_here(warp), computed_here(lane),
                         RowProduct<false>{products, maps.g(head)});
      multiply_data_rows(y_transposed, computed_here(warp), computed_here(lane),
                         RowProduct<true>{products, maps.g(head)});
      ds.add(products, y_down * maps.g_scale[head].down);
    }
    ds.for_pairs(computed_here(warp), computed_here(lane),
                 [&](int row, int column, float& x, float& next) {
                   const float sum = row < rows ? score_down * column_sums[row] : 0;
                   x += sum * g[head * columns + column];
                   next += sum * g[head * columns + column + 1];
                 });
    if (warp < GradientPart::count) {
      of_head[head].add(s, y, s_scale.down * y_down, computed_here(warp), computed_here(lane));
    } else {
      of_head[head].add(du, z, du_scale.down * v_down(), value_part(head), computed_here(lane));
    }
    float sum = 0;
    const int column = static_cast<int>(threadIdx.x) % columns;
    for (int row = static_cast<int>(threadIdx.x) / columns; row < rows;
         row += data_threads / columns) {
      sum += unpack_halves(y[row * stride + column]).x;
    }
    dbias[head] += sum * y_down;
  }
  // Which part of dP one of the last four warps has.
  __device__ int value_part(int head) const {
    return 2 * (computed_here(warp) - GradientPart::count) + head;
  }

  // Makes dV and completes ds.
  __device__ void end() {
    const float dv_down = dz_down() * (1 / gathered_down);
    RowSums products;
    multiply_data_rows(v, computed_here(warp), computed_here(lane),
                       RowProduct<true>{products, maps.v()});
    ds.add(products, dv_down * maps.v_scale.down);
    if (warp >= data_warps - GradientPart::count) {
      dvalues.add(v, s, dv_down * s_scale.down, last_part(), computed_here(lane));
    }
  }
  __device__ int last_part() const {
    return computed_here(warp) - (data_warps - GradientPart::count);
  }

  __device__ void store(float* gradients) {
    constexpr int size = columns * columns;
    float *maps_place = gradients + layer.maps, *scores = gradients + layer.scores;
    if (warp < GradientPart::count) dm.store(maps_place, warp, lane);
    if (warp >= data_warps - GradientPart::count) {
      dvalues.store(maps_place + size, last_part(), lane);
    }
#pragma unroll
    for (int head = 0; head < heads; ++head) {
      if (warp < GradientPart::count) {
        of_head[head].store(scores + head * size, warp, lane);
      } else {
        of_head[head].store(maps_place + 2 * size, value_part(head), lane);
      }
    }
  }
};

// A block takes a group of a slot.
template <int node_tiles>
__global__ void __launch_bounds__(data_threads, 1)
    medium_data_backward_kernel(Layer layer, int tile_samples, int group) {
  __shared__ uint32_t largest[DataMaps::count * 32];
  __shared__ float column_sums[data_stored_rows];
  const int slot = static_cast<int>(blockIdx.y), nodes = layer.nodes;
  const int present = layer.steps[slot].samples;
  if (present == 0) return;
  float* gradients = layer.partials + (int64_t{slot} * gridDim.x + blockIdx.x) * layer.folded_size;
  int sample = static_cast<int>(blockIdx.x) * group;
  if (sample >= present) {
    write_zeros(gradients + layer.maps, 3 * columns * columns, data_threads);
    write_zeros(gradients + layer.constant, columns, data_threads);
    write_zeros(gradients + layer.scores, heads * columns * columns, data_threads);
    write_zeros(gradients + layer.score_bias, heads * columns, data_threads);
    return;
  }
  const int last = min(present, sample + group);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* weights = s + buffers * data_buffer;
  fill_with_zeros(s, buffers * data_buffer, data_threads);
  const DataMaps maps = load_data_maps(weights, largest, layer, folded, warp, lane);
  __syncthreads();  // `largest` is read no more
  BackwardTile<node_tiles> tile = {
      .layer = layer,
      .maps = maps,
      .s = s,
      .du = s + data_buffer,
      .v = s + 2 * data_buffer,
      .dz = s + 3 * data_buffer,
      .z = s + 4 * data_buffer,
      .y = s + 5 * data_buffer,
      .y_transposed = s + 6 * data_buffer,
      .dscores = reinterpret_cast<uint4*>(weights + DataMaps::count * matrix_halves),
      .column_sums = column_sums,
      .largest = largest + 64,
      .g = folded + layer.score_bias,
      .warp = warp,
      .lane = lane};
  float4 dconstant = make_float4(0, 0, 0, 0);
  for (; sample < last; sample += tile_samples) {
    const int samples = min(tile_samples, last - sample), rows = samples * nodes;
    const int64_t first_sample = int64_t{slot} * layer.samples + sample;
    const int64_t place = first_sample * nodes * columns;
    const int more = max(0, min(tile_samples, last - sample - tile_samples)) * nodes;
    load_backward_rows(tile.s, tile.du, tile.s_scale, tile.du_scale, largest, layer.rows + place,
                       layer.errors + place, rows, more, dconstant, warp, lane);
    tile.samples = samples;
    tile.attention = layer.kept_attention + kept_place<node_tiles>(first_sample, 0, 0);
    __syncthreads();
    tile.begin();
    __syncthreads();
    const Scale first = tile.template follow_queries<0>();
    __syncthreads();
    tile.template follow_keys<0>();
    __syncthreads();
    tile.template gather<0>(first);
    const Scale second = tile.template follow_queries<1>();
    __syncthreads();
    tile.template follow_keys<1>();
    __syncthreads();
    tile.template gather<1>(second);
    tile.end();
    float* to = layer.previous_errors + place;
    const bool everywhere = !layer.rectified;
    tile.ds.for_pairs(
        computed_here(warp), computed_here(lane), [&](int row, int column, float x, float next) {
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
  const int thread = static_cast<int>(threadIdx.x);
  float* bias_sums = reinterpret_cast<float*>(tile.dz);  // [heads][threads]
#pragma unroll
  for (int head = 0; head < heads; ++head)
    bias_sums[head * data_threads + thread] = tile.dbias[head];
  __syncthreads();
  if (thread >= heads * columns) return;
  float bias = 0;
  for (int part = 0; part < data_threads / columns; ++part) {
    bias += bias_sums[thread / columns * data_threads + part * columns + thread % columns];
  }
  gradients[layer.score_bias + thread] = bias;
}

}  // namespace

// A group has about twenty samples, as with attention from positions.
int data_group_samples(int nodes) {
  const int samples = data_samples(nodes);
  return (20 + samples / 2) / samples * samples;
}

int64_t data_shared_bytes(int nodes) {
  return with_node_tiles<false>(
      nodes, [&]<bool, int node_tiles>() { return int64_t{backward_bytes<node_tiles>}; });
}

void enqueue_data_backward(const Layer& layer, cudaStream_t stream) {
  with_node_tiles<false>(layer.nodes, [&]<bool, int node_tiles>() {
    constexpr int bytes = backward_bytes<node_tiles>;
    static_assert(bytes <= most_shared_bytes);
    const auto kernel = &medium_data_backward_kernel<node_tiles>;
    allow_shared_bytes(kernel, bytes);
    launch(kernel, dim3(groups(layer, Precision::tf32), layer.slots), dim3(data_threads), bytes,
           stream, layer, data_samples(layer.nodes), data_group_samples(layer.nodes));
  });
}

}  // namespace posattn::cuda::medium
