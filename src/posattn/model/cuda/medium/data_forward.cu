#include <algorithm>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/data_layer.h"
#include "posattn/model/cuda/medium/data_tile.cuh"
#include "posattn/model/cuda/medium/launch.h"

namespace posattn::cuda::medium {
namespace {

constexpr int buffers = 1 + 2 * heads;  // s; of each head t = s G + g, then z = A s

template <int node_tiles>
constexpr int forward_bytes = 2 * (buffers * DataSizes<node_tiles>::buffer +
                                   data_maps * matrix_halves) +
                              4 * DataSizes<node_tiles>::rows* columns;

// A head's attention of sixteen nodes: coefficients in c, kept as well.
template <int node_tiles>
__device__ inline void attend(float (&c)[2 * node_tiles][4], float down, const large::Layer& layer,
                              int present_nodes, float* kept, int node, int lane) {
  const int nodes = layer.nodes;
  float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int key = 8 * n + 2 * (lane & 3) + (e & 1);
      const bool heard = key < nodes && (key < present_nodes || key >= layer.real_nodes);
      c[n][e] = heard ? c[n][e] * down : -INFINITY;
      most[e >> 1] = fmaxf(most[e >> 1], c[n][e]);
    }
  }
  float sum[2] = {0, 0};
#pragma unroll
  for (int half = 0; half < 2; ++half) most[half] = row_maximum(most[half]);
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c[n][e] = __expf(c[n][e] - most[e >> 1]);
      sum[e >> 1] += c[n][e];
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) sum[half] = 1 / row_sum(sum[half]);
#pragma unroll
  for (int n = 0; n < 2 * node_tiles; ++n) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      c[n][e] *= sum[e >> 1];
      const int query = node + (lane >> 2) + (e >> 1) * 8, key = 8 * n + 2 * (lane & 3) + (e & 1);
      if (query < nodes && key < nodes) kept[query * nodes + key] = c[n][e];
    }
  }
}

// One block: `tiles` tiles of a slot.
template <int node_tiles>
__global__ void __launch_bounds__(DataSizes<node_tiles>::threads, 1)
    medium_data_forward_kernel(large::Layer layer, int tile_samples, int tiles) {
  using S = DataSizes<node_tiles>;
  __shared__ uint32_t largest[data_maps * 32];
  const int slot = static_cast<int>(blockIdx.y);
  const SlotStep step = layer.steps[slot];
  int sample = static_cast<int>(blockIdx.x) * tiles * tile_samples;
  if (sample >= step.samples) return;
  const int last = min(step.samples, sample + tiles * tile_samples);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int nodes = layer.nodes;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* t = s + S::buffer;          // of both heads
  Half* z = t + heads * S::buffer;  // likewise
  Half* weights = z + heads * S::buffer;
  float* copy = reinterpret_cast<float*>(weights + data_maps * matrix_halves);
  using Tile = Rows<S::threads, S::rows>;
  const auto place_of = [&](int first) {
    return (int64_t{slot} * layer.samples + first) * nodes * columns;
  };
  const auto start = [&](int first) {
    Tile::start_copy(copy, layer.rows + place_of(first), min(tile_samples, last - first) * nodes);
    commit_copies();
  };
  start(sample);
  fill_with_zeros(s, static_cast<int>(weights - s), S::threads);
  const DataMaps maps = load_data_maps<S::threads>(weights, largest, folded + layer.maps,
                                                   folded + layer.scores, warp, lane);
  // The scale of g, which t must have room for.
  const float* g = folded + layer.score_bias;
  uint32_t bias_most = 0;
  for (int i = lane; i < heads * columns; i += 32) {
    const uint32_t bits = __float_as_uint(g[i]) & 0x7fffffffu;
    bias_most = bits > bias_most ? bits : bias_most;
  }
  const float bias_up = scale_of(warp_maximum(bias_most)).up * 0.5f;
  __syncthreads();  // `largest` is read no more

  for (; sample < last; sample += tile_samples) {
    const int samples = min(tile_samples, last - sample), rows = samples * nodes;
    const int64_t place = place_of(sample);
    wait_copies<0>();
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) most = largest_of(most, Tile::load_copy(copy, i));
    put_largest(largest, most, warp, lane);
    __syncthreads();  // and nobody reads the tile before
    const Scale scale = scale_of(get_largest<S::warps>(largest, lane));
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      Tile::template store<false, 0>(s, Tile::load_copy(copy, i), scale.up, i);
    }
    if (sample + tile_samples < last) start(sample + tile_samples);
    __syncthreads();
    RowSums u;
    u.for_pairs(warp, lane, [&](int, int column, float& x, float& y) {
      x = folded[layer.constant + column];
      y = folded[layer.constant + column + 1];
    });
    add_product<false>(u, s, maps.map(0), scale.down * maps.scale[0].down, warp, lane);
    float t_up[heads];
#pragma unroll
    for (int head = 0; head < heads; ++head) {
      const Scale g_scale = maps.scale[1 + heads + head];
      t_up[head] = fminf(scale.up * g_scale.up * (product_down / 2), bias_up);
      const float factor = t_up[head] * scale.down * g_scale.down;
      RowSums product;
      product.template add<true>(s, maps.scores(head), warp, lane);
      Half* to = t + head * S::buffer;
      product.for_pairs(warp, lane, [&](int row, int column, float x, float y) {
        const float* bias = g + head * columns + column;
        store_pair<false, 0>(to + row * stride + column, factor * x + t_up[head] * bias[0],
                             factor * y + t_up[head] * bias[1]);
      });
    }
    __syncthreads();
    const int units = samples * node_tiles;
    for (int unit = warp; unit < heads * units; unit += S::warps) {
      const int head = unit >= units ? 1 : 0;
      const auto at = NodeTile::of<node_tiles>(unit - head * units);
      const Half* s_place = s + at.sample * nodes * stride;
      float c[2 * node_tiles][4];
      dot_rows<node_tiles>(c, t + head * S::buffer + (at.sample * nodes + at.node) * stride,
                           s_place, lane);
      float* kept =
          layer.kept_attention +
          ((int64_t{slot} * layer.samples + sample + at.sample) * heads + head) * nodes * nodes;
      const float down = scale.down / (head == 0 ? t_up[0] : t_up[1]);
      attend<node_tiles>(c, down, layer, step.real_nodes, kept, at.node, lane);
      float mixed[4][2][4] = {};
#pragma unroll
      for (int k = 0; k < node_tiles; ++k) {
        Operand<false> a;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float(&x)[4] = c[2 * k + half];
          a.high[2 * half] = pack_halves(x[0] * attention_up, x[1] * attention_up);
          a.high[2 * half + 1] = pack_halves(x[2] * attention_up, x[3] * attention_up);
        }
#pragma unroll
        for (int pair = 0; pair < 4; ++pair) {
          const Half* b = s_place + 16 * k * stride + 16 * pair + upright(lane, stride);
          multiply(mixed[pair], a, load_operand<false, true, 0>(b));
        }
      }
      store_mixed(z + head * S::buffer, mixed, attention_down, at, nodes, lane);
    }
    __syncthreads();
#pragma unroll
    for (int head = 0; head < heads; ++head) {
      add_product<false>(u, z + head * S::buffer, maps.map(1 + head),
                         scale.down * maps.scale[1 + head].down, warp, lane);
    }
    float* output = layer.output + place;
    u.for_pairs(warp, lane, [&](int row, int column, float x, float y) {
      if (row >= rows) return;
      // Rounded as the large engine's layers are; a NaN stays.
      *reinterpret_cast<float2*>(output + row * columns + column) =
          make_float2(x <= 0 ? 0 : round_to_tf32(x), y <= 0 ? 0 : round_to_tf32(y));
    });
  }
}

// As in layer_forward.cu, but a block's start counts as half a tile.
int tiles_of_block(int64_t tiles, int64_t slots, int64_t processors) {
  int best = 1;
  int64_t least = INT64_MAX;
  for (int count = 1; count <= 32; ++count) {
    const int64_t cost = ceil_div(ceil_div(tiles, count) * slots, processors) * (2 * count + 1);
    if (cost < least) {
      best = count;
      least = cost;
    }
  }
  return best;
}

}  // namespace

bool takes_data_layer(const large::Layer& layer, Precision precision) {
  const auto forward = []<bool, int node_tiles>() { return int64_t{forward_bytes<node_tiles>}; };
  const int64_t bytes = std::max(with_node_tiles<false>(layer.nodes, forward),
                                 data_backward_shared_bytes(layer.nodes));
  return bytes <= device_limits().shared_bytes && precision == Precision::tf32 && layer.from_data &&
         layer.rows != nullptr && layer.heads == heads && layer.columns == columns &&
         layer.hidden == columns && layer.nodes >= fewest_nodes && layer.nodes <= most_nodes;
}

void enqueue_data_forward(const large::Layer& layer, cudaStream_t stream) {
  with_node_tiles<false>(layer.nodes, [&]<bool, int node_tiles>() {
    using S = DataSizes<node_tiles>;
    constexpr int bytes = forward_bytes<node_tiles>;
    static_assert(bytes <= most_shared_bytes);
    const int samples = S::rows / layer.nodes;
    const auto kernel = &medium_data_forward_kernel<node_tiles>;
    allow_shared_bytes(kernel, bytes);
    const int64_t all = ceil_div(layer.samples, samples);
    const int tiles = tiles_of_block(all, layer.slots, layer.multiprocessors);
    launch(kernel, dim3(static_cast<unsigned>(ceil_div(all, tiles)), layer.slots), dim3(S::threads),
           bytes, stream, layer, samples, tiles);
  });
}

}  // namespace posattn::cuda::medium
