// Forward through a layer of side_tile.cuh.
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/side_launch.h"
#include "posattn/model/cuda/medium/side_tile.cuh"
#include "posattn/model/cuda/step/multiprocessors.h"

namespace posattn::cuda::medium {
namespace {

// s, v, z, the sides, weights, and the next tile's rows as they come.
template <int score_tiles>
constexpr int forward_bytes = 2 * (3 * side_buffer + 2 * heads * Sides<score_tiles>::buffer +
                                   Sides<score_tiles>::maps) +
                              4 * side_rows* columns;

// One block: `tiles` tiles of a slot.
template <int node_tiles, int score_tiles>
__global__ void __launch_bounds__(data_threads, 1)
    medium_side_forward_kernel(Layer layer, int tile_samples, int tiles) {
  using S = Sides<score_tiles>;
  __shared__ uint32_t largest[SideMaps<score_tiles>::count * 32];
  const int slot = static_cast<int>(blockIdx.y);
  const SlotStep step = layer.steps[slot];
  int sample = static_cast<int>(blockIdx.x) * tiles * tile_samples;
  if (sample >= step.samples) return;
  const int last = min(step.samples, sample + tiles * tile_samples);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int nodes = layer.nodes;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* v = s + side_buffer;
  Half* z = v + side_buffer;
  Half* sides = z + side_buffer;
  Half* weights = sides + 2 * heads * S::buffer;
  float* copy = reinterpret_cast<float*>(weights + S::maps);
  using Tile = Rows<data_threads, side_rows>;
  const auto place_of = [&](int first) {
    return (int64_t{slot} * layer.samples + first) * nodes * columns;
  };
  const auto start = [&](int first) {
    Tile::start_copy(copy, layer.rows + place_of(first), min(tile_samples, last - first) * nodes);
    commit_copies();
  };
  start(sample);
  fill_with_zeros(s, static_cast<int>(weights - s), data_threads);
  const auto maps = load_side_maps<score_tiles>(weights, largest, layer, folded, warp, lane);
  const float* biases = folded + layer.score_bias;  // [2 heads][nodes][columns]
  float bias_up[2 * heads];
#pragma unroll
  for (int i = 0; i < 2 * heads; ++i) {
    bias_up[i] = bias_scale<score_tiles>(biases + i * nodes * S::columns, nodes, lane);
  }
  __syncthreads();  // `largest` is read no more

  const OwnBlock own(warp);
  for (; sample < last; sample += tile_samples) {
    const int samples = min(tile_samples, last - sample), rows = samples * nodes;
    const int64_t place = place_of(sample);
    wait_copies<0>();
    uint32_t most = 0;
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) most = largest_of(most, Tile::load_copy(copy, i));
    put_largest(largest, most, warp, lane);
    __syncthreads();  // and nobody reads the tile before
    const Scale scale = scale_of(get_largest<data_warps>(largest, lane));
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      Tile::template store<false, 0>(s, Tile::load_copy(copy, i), scale.up, i);
    }
    if (sample + tile_samples < last) start(sample + tile_samples);
    __syncthreads();
    BlockSums u;
    {
      BlockSums products, values;
      products.template add<columns, stride, false>(s + own.row * stride,
                                                    maps.m() + own.column * stride, lane);
      values.template add<columns, stride, false>(s + own.row * stride,
                                                  maps.v() + own.column * stride, lane);
      values.for_pairs(lane, [&](int row, int column, float x, float y) {
        store_halves(v + (own.row + row) * stride + own.column + column, product_down * x,
                     product_down * y);
      });
      u.for_pairs(lane, [&](int, int column, float& x, float& y) {
        const float2 constant =
            *reinterpret_cast<const float2*>(folded + layer.constant + own.column + column);
        x = constant.x;
        y = constant.y;
      });
      u.add_scaled(products, scale.down * maps.m_scale.down);
    }
    float side_up[2 * heads];
#pragma unroll
    for (int i = 0; i < 2 * heads; ++i) {
      const Scale weight = maps.side_scale[i];
      side_up[i] = fminf(scale.up * weight.up * (product_down / 2), bias_up[i]);
      make_side<score_tiles>(sides + i * S::buffer, s, maps.side(i),
                             biases + i * nodes * S::columns, side_up[i] * scale.down * weight.down,
                             side_up[i], layer, warp, lane);
    }
    __syncthreads();
    const int units = samples * node_tiles;
    for (int unit = warp; unit < heads * units; unit += data_warps) {
      const int head = unit >= units ? 1 : 0;
      const auto at = Unit::of<node_tiles>(unit - head * units);
      const int first_row = at.sample * nodes;
      const Half* queries = sides + 2 * head * S::buffer;
      float c[2 * node_tiles][4];
      dot_rows<node_tiles, S::columns, S::row_stride>(
          c, queries + (first_row + at.node) * S::row_stride,
          queries + S::buffer + first_row * S::row_stride, lane);
      const float up = head == 0 ? side_up[0] * side_up[1] : side_up[2] * side_up[3];
      softmax<node_tiles>(c, 1 / up, layer, step.real_nodes, at.node, lane);
      uint4* kept = layer.kept_attention +
                    kept_place<node_tiles>(int64_t{slot} * layer.samples + sample + at.sample, head,
                                           at.node) +
                    lane;
      float mixed[2][2][4] = {};
#pragma unroll
      for (int k = 0; k < node_tiles; ++k) {
        const DataOperand a = as_operand(c[2 * k], c[2 * k + 1], attention_up);
        kept[32 * k] = as_uint4(a);
        add_mixed(mixed, a, v + (first_row + 16 * k) * stride + 32 * head, lane);
      }
      store_mixed(z + 32 * head, mixed, attention_down, at, nodes, lane);
    }
    __syncthreads();
    BlockSums products;
    products.template add<columns, stride, false>(z + own.row * stride,
                                                  maps.p() + own.column * stride, lane);
    u.add_scaled(products, scale.down * maps.v_scale.down * (1 / product_down) * maps.p_scale.down);
    u.for_pairs(lane, [&](int row, int column, float x, float y) {
      if (own.row + row >= rows) return;
      // A NaN stays.
      *reinterpret_cast<float2*>(layer.output + place + (own.row + row) * columns + own.column +
                                 column) = make_float2(x <= 0 ? 0 : x, y <= 0 ? 0 : y);
    });
  }
}

}  // namespace

int64_t side_forward_shared_bytes(int side_columns) {
  return side_columns == 64 ? forward_bytes<4> : forward_bytes<5>;
}

void enqueue_side_forward(const Layer& layer, cudaStream_t stream) {
  with_side_sizes(layer, [&]<int node_tiles, int score_tiles>() {
    constexpr int bytes = forward_bytes<score_tiles>;
    static_assert(bytes <= most_shared_bytes);
    const auto kernel = &medium_side_forward_kernel<node_tiles, score_tiles>;
    allow_shared_bytes(kernel, bytes);
    const int samples = side_samples(layer.nodes);
    const int64_t all = ceil_div(layer.samples, samples);
    const int tiles = tiles_of_block(all, layer.slots, multiprocessors(), 2);
    launch(kernel, dim3(static_cast<unsigned>(ceil_div(all, tiles)), layer.slots),
           dim3(data_threads), bytes, stream, layer, samples, tiles);
  });
}

}  // namespace posattn::cuda::medium
