// Backward through a layer whose attention comes from the data. With v_h = s M_h^T,
// y_h = A_h^T du, dS_h = A_h (dA_h - row sums of A_h dA_h) where dA_h = du v_h^T,
//   dM_0 = du^T s,   dM_h = y_h^T s,   dG_h = s^T (dS_h s),   dc, dg: column sums of du, dS_h s,
//   ds = du M_0 + sum_h [y_h M_h + (dS_h s) G_h^T + (dS_h^T s) G_h + (column sums of dS_h) g_h].
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/data_layer.h"
#include "posattn/model/cuda/medium/data_tile.cuh"
#include "posattn/model/cuda/medium/launch.h"

namespace posattn::cuda::medium {
namespace {

constexpr int buffers = 5;  // s, du, v and then y, dS s, dS^T s

template <int node_tiles>
struct BackwardSizes : DataSizes<node_tiles> {
  using Base = DataSizes<node_tiles>;
  // Sixteens of nodes of a warp.
  static constexpr int share = (Base::most_samples * node_tiles + Base::warps - 1) / Base::warps;
  static constexpr int matrices = Base::most_samples * Base::attention_halves;
  static constexpr int sums = node_tiles * Base::stored_rows();  // of columns of dS
  static constexpr int bytes =
      2 * (buffers * Base::buffer + data_maps * matrix_halves + 2 * matrices) + 4 * sums;
};

// Gradients of the five 64 x 64 matrices, over all tiles of a block: tiles of 16 x 16, dealt to the
// warps in turn. Products start at zero in every tile (see gradient.cuh).
struct Gradients {
  static constexpr int warps = 12, share = (16 * data_maps + warps - 1) / warps;
  float sum[share][2][4] = {};

  // The matrix number `index` += Y^T X.
  template <int index>
  __device__ void add(const Half* y, const Half* x, float factor, int warp, int lane) {
#pragma unroll
    for (int i = 16 * index / warps; i <= (16 * index + 15) / warps; ++i) {
      const int unit = warps * i + warp - 16 * index;
      if (unit < 0 || unit >= 16) continue;
      const Half* a = y + unit / 4 * 16 + turned(lane, stride);
      const Half* b = x + unit % 4 * 16 + upright(lane, stride);
      float c[2][4] = {};
#pragma unroll
      for (int k = 0; k < 9; ++k) {
        multiply(c, load_operand<false, true, 0>(a + 16 * k * stride),
                 load_operand<false, true, 0>(b + 16 * k * stride));
      }
      add_scaled(sum[i], c, factor);
    }
  }
  __device__ void store(float* maps, float* scores, int warp, int lane) const {
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int unit = warps * i + warp, index = unit / 16;
      if (index >= data_maps) break;
      float* to = index <= heads ? maps + index * columns * columns
                                 : scores + (index - 1 - heads) * columns * columns;
      to += (unit % 16 / 4 * 16 + (lane >> 2)) * columns + unit % 4 * 16 + 2 * (lane & 3);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float(&x)[4] = sum[i][n];
        *reinterpret_cast<float2*>(to + 8 * n) = make_float2(x[0], x[1]);
        *reinterpret_cast<float2*>(to + 8 * n + 8 * columns) = make_float2(x[2], x[3]);
      }
    }
  }
};

// From c = dA of sixteen nodes, dS; the coefficients A, which were kept, go to `matrix`.
template <int node_tiles>
__device__ inline void score_gradients(float (&c)[2 * node_tiles][4], Half* matrix,
                                       const float* kept, int nodes, int node, int lane) {
  using S = DataSizes<node_tiles>;
  // As halves, which is what products will see of them, and half the registers.
  uint32_t a[2 * node_tiles][2];
  float sum[2] = {0, 0};
  Half* place = matrix + (node + (lane >> 2)) * S::attention_stride + 2 * (lane & 3);
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int query = node + (lane >> 2) + 8 * half, key = 8 * n + 2 * (lane & 3);
      const float* row = kept + query * nodes + key;
      a[n][half] = pack_halves(query < nodes && key < nodes ? attention_up * row[0] : 0,
                               query < nodes && key + 1 < nodes ? attention_up * row[1] : 0);
      *reinterpret_cast<uint32_t*>(place + 8 * half * S::attention_stride + 8 * n) = a[n][half];
      const float2 x = unpack_halves(a[n][half]);
      sum[half] += x.x * c[n][2 * half] + x.y * c[n][2 * half + 1];
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    sum[half] = row_sum(sum[half]) * attention_down;
#pragma unroll
    for (int n = 0; n < 2 * node_tiles; ++n) {
      const float2 x = unpack_halves(a[n][half]);
      c[n][2 * half] = attention_down * x.x * (c[n][2 * half] - sum[half]);
      c[n][2 * half + 1] = attention_down * x.y * (c[n][2 * half + 1] - sum[half]);
    }
  }
}

// dS times `up` to `matrix`; its columns' sums to `sums`, a row of all rows.
template <int node_tiles>
__device__ inline void store_score_gradients(Half* matrix, float* sums,
                                             const float (&c)[2 * node_tiles][4], float up,
                                             int node, int lane) {
  using S = DataSizes<node_tiles>;
  Half* place = matrix + (node + (lane >> 2)) * S::attention_stride + 2 * (lane & 3);
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
    float sum[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      store_pair<false, 0>(place + 8 * half * S::attention_stride + 8 * n, up * c[n][2 * half],
                           up * c[n][2 * half + 1]);
      sum[half] = c[n][half] + c[n][half + 2];
#pragma unroll
      for (int other = 4; other < 32; other *= 2) {
        sum[half] += __shfl_xor_sync(0xffffffffu, sum[half], other);
      }
    }
    if (lane < 4) *reinterpret_cast<float2*>(sums + 8 * n + 2 * lane) = make_float2(sum[0], sum[1]);
  }
}

// to = A x, or A^T x, for sixteen nodes and 64 columns.
template <int node_tiles, bool transposed>
__device__ inline void mix_rows(Half* to, const Half* matrix, const Half* x, float factor,
                                NodeTile at, int nodes, int lane) {
  using S = DataSizes<node_tiles>;
  const Half* a_place =
      matrix + at.sample * S::attention_halves +
      (transposed ? turned(lane, S::attention_stride) + at.node
                  : upright(lane, S::attention_stride) + at.node * S::attention_stride);
  const Half* b_place = x + at.sample * nodes * stride + upright(lane, stride);
  float c[4][2][4] = {};
#pragma unroll
  for (int k = 0; k < node_tiles; ++k) {
    const auto a = load_operand<false, transposed, 0>(
        a_place + 16 * k * (transposed ? S::attention_stride : 1));
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      multiply(c[pair], a, load_operand<false, true, 0>(b_place + 16 * k * stride + 16 * pair));
    }
  }
  store_mixed(to, c, factor, at, nodes, lane);
}

__device__ inline void write_zeros(float* to, int count, int threads) {
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads) to[at] = 0;
}

template <int node_tiles>
struct BackwardTile {
  using S = BackwardSizes<node_tiles>;
  const large::Layer& layer;
  const DataMaps& maps;
  const float* folded;
  Half *s, *du, *y, *y1, *y2, *attention, *dscores;
  float* column_sums;  // of dS [node_tiles][stored rows]
  uint32_t* largest;
  int warp, lane;
  Gradients gradients = {};
  float dbias[heads] = {};  // dg of column threadIdx.x % 64, of some rows
  int samples = 0;
  int64_t first_sample = 0;  // among all slots'
  Scale s_scale = {}, du_scale = {};
  RowSums ds = {};

  template <int head>
  __device__ void add_head() {
    const int nodes = layer.nodes, units = samples * node_tiles;
    const float map_down = maps.scale[1 + head].down, scores_down = maps.scale[3 + head].down;
    const float v_down = s_scale.down * map_down * (1 / product_down);
    {
      RowSums v;
      v.template add<false>(s, maps.map(1 + head), computed_here(warp), computed_here(lane));
      v.for_pairs(
          computed_here(warp), computed_here(lane), [&](int row, int column, float x, float z) {
            store_pair<false, 0>(y + row * stride + column, product_down * x, product_down * z);
          });
    }
    __syncthreads();
    Scale scale;
    {
      float c[S::share][2 * node_tiles][4];
      float most = 0;
#pragma unroll
      for (int i = 0; i < S::share; ++i) {
        const int unit = computed_here(warp) + i * S::warps;
        if (unit >= units) continue;
        const auto at = NodeTile::of<node_tiles>(unit);
        const int row = at.sample * nodes;
        dot_rows<node_tiles>(c[i], du + (row + at.node) * stride, y + row * stride,
                             computed_here(lane));
        score_gradients<node_tiles>(
            c[i], attention + at.sample * S::attention_halves,
            layer.kept_attention + ((first_sample + at.sample) * heads + head) * nodes * nodes,
            nodes, at.node, lane);
#pragma unroll
        for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) most = fmaxf(most, fabsf(c[i][n][e]));
        }
      }
      put_largest(largest, __float_as_uint(most), warp, lane);
      __syncthreads();  // v is read no more either
      scale = scale_of(get_largest<S::warps>(largest, lane));
#pragma unroll
      for (int i = 0; i < S::share; ++i) {
        const int unit = computed_here(warp) + i * S::warps;
        if (unit >= units) continue;
        const auto at = NodeTile::of<node_tiles>(unit);
        store_score_gradients<node_tiles>(
            dscores + at.sample * S::attention_halves,
            column_sums + at.node / 16 * S::stored_rows() + at.sample * nodes, c[i], scale.up,
            at.node, lane);
      }
    }
    __syncthreads();
    for (int unit = computed_here(warp); unit < 3 * units; unit += S::warps) {
      const int here = computed_here(lane);
      const int kind = unit / units;
      const auto at = NodeTile::of<node_tiles>(unit - kind * units);
      if (kind == 0) {
        mix_rows<node_tiles, true>(y, attention, du, attention_down * gathered_down, at, nodes,
                                   here);
      } else if (kind == 1) {
        mix_rows<node_tiles, false>(y1, dscores, s, product_down, at, nodes, here);
      } else {
        mix_rows<node_tiles, true>(y2, dscores, s, product_down, at, nodes, here);
      }
    }
    __syncthreads();
    // dS times the scale of dA's operands; of dS s
    const float y_down = du_scale.down * (1 / gathered_down);
    const float score_factor = du_scale.down * v_down;
    const float mixed_down = scale.down * score_factor * s_scale.down * (1 / product_down);
    gradients.template add<1 + head>(y, s, y_down * s_scale.down, computed_here(warp),
                                     computed_here(lane));
    gradients.template add<3 + head>(s, y1, s_scale.down * mixed_down, computed_here(warp),
                                     computed_here(lane));
    add_product<true>(ds, y, maps.map(1 + head), y_down * map_down, computed_here(warp),
                      computed_here(lane));
    add_product<false>(ds, y1, maps.scores(head), mixed_down * scores_down, computed_here(warp),
                       computed_here(lane));
    add_product<true>(ds, y2, maps.scores(head), mixed_down * scores_down, computed_here(warp),
                      computed_here(lane));
    const int rows = samples * nodes;
    const float* g = folded + layer.score_bias + head * columns;
    ds.for_pairs(computed_here(warp), computed_here(lane),
                 [&](int row, int column, float& x, float& z) {
                   if (row >= rows) return;
                   float sum = 0;
#pragma unroll
                   for (int tile = 0; tile < node_tiles; ++tile) {
                     sum += column_sums[tile * S::stored_rows() + row];
                   }
                   x += score_factor * sum * g[column];
                   z += score_factor * sum * g[column + 1];
                 });
    // dg
    float sum = 0;
    const int column = static_cast<int>(threadIdx.x) % columns;
    for (int row = static_cast<int>(threadIdx.x) / columns; row < rows;
         row += S::threads / columns) {
      sum += unpack_halves(y1[row * stride + column]).x;
    }
    dbias[head] += sum * mixed_down;
    __syncthreads();  // the head's numbers are read no more
  }
};

// One block: a group of a slot.
template <int node_tiles>
__global__ void __launch_bounds__(DataSizes<node_tiles>::threads, 1)
    medium_data_backward_kernel(large::Layer layer, int tile_samples, int group) {
  using S = BackwardSizes<node_tiles>;
  __shared__ uint32_t largest[data_maps * 32];
  const int slot = static_cast<int>(blockIdx.y), nodes = layer.nodes;
  const int present = layer.steps[slot].samples;
  if (present == 0) return;
  float* partials = layer.partials + (int64_t{slot} * gridDim.x + blockIdx.x) * layer.folded_size;
  int sample = static_cast<int>(blockIdx.x) * group;
  if (sample >= present) {
    write_zeros(partials + layer.maps, (1 + heads) * columns * columns, S::threads);
    write_zeros(partials + layer.constant, columns, S::threads);
    write_zeros(partials + layer.scores, heads * columns * columns, S::threads);
    write_zeros(partials + layer.score_bias, heads * columns, S::threads);
    return;
  }
  const int last = min(present, sample + group);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* du = s + S::buffer;
  Half* attention = s + buffers * S::buffer;
  Half* dscores = attention + S::matrices;
  Half* weights = dscores + S::matrices;
  float* column_sums = reinterpret_cast<float*>(weights + data_maps * matrix_halves);
  fill_with_zeros(s, buffers * S::buffer, S::threads);
  const DataMaps maps = load_data_maps<S::threads>(weights, largest, folded + layer.maps,
                                                   folded + layer.scores, warp, lane);
  __syncthreads();  // `largest` is read no more
  using Tile = Rows<S::threads, S::rows>;
  BackwardTile<node_tiles> tile = {.layer = layer,
                                   .maps = maps,
                                   .folded = folded,
                                   .s = s,
                                   .du = du,
                                   .y = du + S::buffer,
                                   .y1 = du + 2 * S::buffer,
                                   .y2 = du + 3 * S::buffer,
                                   .attention = attention,
                                   .dscores = dscores,
                                   .column_sums = column_sums,
                                   .largest = largest + 64,
                                   .warp = warp,
                                   .lane = lane};
  float4 dconstant = make_float4(0, 0, 0, 0);
  const auto place_of = [&](int first) {
    return (int64_t{slot} * layer.samples + first) * nodes * columns;
  };
  for (; sample < last; sample += tile_samples) {
    const int samples = min(tile_samples, last - sample), rows = samples * nodes;
    const int64_t place = place_of(sample);
    float4 s_rows[Tile::count], du_rows[Tile::count];
    uint32_t s_most = 0, du_most = 0;
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      s_rows[i] = Tile::load(layer.rows + place, rows, i);
      du_rows[i] = Tile::load(layer.errors + place, rows, i);
    }
    if (sample + tile_samples < last) {
      const int more = min(tile_samples, last - sample - tile_samples) * nodes * columns;
      for (int at = 32 * static_cast<int>(threadIdx.x); at < more; at += 32 * S::threads) {
        prefetch(layer.rows + place_of(sample + tile_samples) + at);
        prefetch(layer.errors + place_of(sample + tile_samples) + at);
      }
    }
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      s_most = largest_of(s_most, s_rows[i]);
      du_most = largest_of(du_most, du_rows[i]);
      dconstant.x += du_rows[i].x;
      dconstant.y += du_rows[i].y;
      dconstant.z += du_rows[i].z;
      dconstant.w += du_rows[i].w;
    }
    put_largest(largest, s_most, warp, lane);
    put_largest(largest + 32, du_most, warp, lane);
    __syncthreads();  // and nobody reads the tile before
    tile.samples = samples;
    tile.first_sample = int64_t{slot} * layer.samples + sample;
    tile.s_scale = scale_of(get_largest<S::warps>(largest, lane));
    tile.du_scale = scale_of(get_largest<S::warps>(largest + 32, lane));
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      Tile::template store<false, 0>(s, s_rows[i], tile.s_scale.up, i);
      Tile::template store<false, 0>(du, du_rows[i], tile.du_scale.up, i);
    }
    __syncthreads();
    tile.ds = RowSums();
    add_product<true>(tile.ds, du, maps.map(0), tile.du_scale.down * maps.scale[0].down,
                      computed_here(warp), computed_here(lane));
    tile.gradients.template add<0>(du, s, tile.du_scale.down * tile.s_scale.down,
                                   computed_here(warp), computed_here(lane));
    tile.template add_head<0>();
    tile.template add_head<1>();
    float* to = layer.previous_errors + place;
    tile.ds.for_pairs(
        computed_here(warp), computed_here(lane), [&](int row, int column, float x, float y) {
          if (row >= rows) return;
          const auto positive = *reinterpret_cast<const uint32_t*>(s + row * stride + column);
          *reinterpret_cast<float2*>(to + row * columns + column) =
              make_float2((positive & 0xffffu) != 0 ? round_to_tf32(x) : 0,
                          positive >> 16 != 0 ? round_to_tf32(y) : 0);
        });
  }
  tile.gradients.store(partials + layer.maps, partials + layer.scores, warp, lane);
  __syncthreads();  // the tile is read no more
  const int thread = static_cast<int>(threadIdx.x);
  float* shared = reinterpret_cast<float*>(s);
  reinterpret_cast<float4*>(shared)[thread] = dconstant;  // as rows of 64
  float* bias_sums = shared + 4 * S::threads;             // [heads][threads]
  for (int head = 0; head < heads; ++head) bias_sums[head * S::threads + thread] = tile.dbias[head];
  __syncthreads();
  if (thread >= columns) return;
  float sum = 0;
  for (int row = 0; row < S::threads / 16; ++row) sum += shared[row * columns + thread];
  partials[layer.constant + thread] = sum;
  for (int head = 0; head < heads; ++head) {
    float bias = 0;
    for (int part = thread; part < S::threads; part += columns) {
      bias += bias_sums[head * S::threads + part];
    }
    partials[layer.score_bias + head * columns + thread] = bias;
  }
}

}  // namespace

int64_t data_backward_shared_bytes(int nodes) {
  return with_node_tiles<false>(
      nodes, []<bool, int node_tiles>() { return int64_t{BackwardSizes<node_tiles>::bytes}; });
}

void enqueue_data_backward(const large::Layer& layer, int group, cudaStream_t stream) {
  with_node_tiles<false>(layer.nodes, [&]<bool, int node_tiles>() {
    using S = BackwardSizes<node_tiles>;
    static_assert(S::bytes <= most_shared_bytes);
    const auto kernel = &medium_data_backward_kernel<node_tiles>;
    allow_shared_bytes(kernel, S::bytes);
    launch(kernel, dim3(large::groups(layer), layer.slots), dim3(S::threads), S::bytes, stream,
           layer, S::rows / layer.nodes, group);
  });
}

}  // namespace posattn::cuda::medium
