#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/data_softmax.cuh"
#include "posattn/model/cuda/medium/launch.h"
#include "posattn/model/cuda/step/folded_engine.h"

namespace posattn::cuda::medium {
namespace {

constexpr int buffers = 3 + heads;  // s, v, z and a t for each head
// The buffers, the weights, and the next tile's rows as they come.
constexpr int forward_bytes =
    2 * (buffers * data_buffer + DataMaps::count * matrix_halves) + 4 * data_rows * columns;
static_assert(forward_bytes <= most_shared_bytes);

// A block takes `tiles` tiles of a slot.
template <int node_tiles>
__global__ void __launch_bounds__(data_threads, 1)
    medium_data_forward_kernel(Layer layer, int tile_samples, int tiles) {
  __shared__ uint32_t largest[DataMaps::count * 32];
  const int slot = static_cast<int>(blockIdx.y);
  const SlotStep step = layer.steps[slot];
  int sample = static_cast<int>(blockIdx.x) * tiles * tile_samples;
  if (sample >= step.samples) return;
  const int last = min(step.samples, sample + tiles * tile_samples);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int nodes = layer.nodes;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* v = s + data_buffer;
  Half* z = v + data_buffer;
  Half* t = z + data_buffer;  // of both heads
  Half* weights = t + heads * data_buffer;
  float* copy = reinterpret_cast<float*>(weights + DataMaps::count * matrix_halves);
  using Tile = Rows<data_threads, data_rows>;
  const auto place_of = [&](int first) {
    return (int64_t{slot} * layer.samples + first) * nodes * columns;
  };
  const auto start = [&](int first) {
    Tile::start_copy(copy, layer.rows + place_of(first), min(tile_samples, last - first) * nodes);
    commit_copies();
  };
  start(sample);
  fill_with_zeros(s, static_cast<int>(weights - s), data_threads);
  const DataMaps maps = load_data_maps(weights, largest, layer, folded, warp, lane);
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
    const Scale scale = scale_of(get_largest<data_warps>(largest, lane));
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      Tile::template store<false, 0>(s, Tile::load_copy(copy, i), scale.up, i);
    }
    if (sample + tile_samples < last) start(sample + tile_samples);
    __syncthreads();
    RowSums u;
    float t_up[heads];
    {
      RowSums products, values, scores[heads];
      multiply_data_rows(
          s, warp, lane, RowProduct<false>{products, maps.m()}, RowProduct<false>{values, maps.v()},
          RowProduct<true>{scores[0], maps.g(0)}, RowProduct<true>{scores[1], maps.g(1)});
      values.store(v, product_down, warp, lane);
#pragma unroll
      for (int head = 0; head < heads; ++head) {
        const Scale g_scale = maps.g_scale[head];
        t_up[head] = fminf(scale.up * g_scale.up * (product_down / 2), bias_up);
        const float factor = t_up[head] * scale.down * g_scale.down, up = t_up[head];
        Half* to = t + head * data_buffer;
        scores[head].for_pairs(warp, lane, [&](int row, int column, float x, float y) {
          const float2 bias = *reinterpret_cast<const float2*>(g + head * columns + column);
          store_halves(to + row * stride + column, factor * x + up * bias.x,
                       factor * y + up * bias.y);
        });
      }
      u.for_pairs(warp, lane, [&](int, int column, float& x, float& y) {
        const float2 constant = *reinterpret_cast<const float2*>(folded + layer.constant + column);
        x = constant.x;
        y = constant.y;
      });
      u.add(products, scale.down * maps.m_scale.down);
    }
    __syncthreads();
    const int units = samples * node_tiles;
    for (int unit = warp; unit < heads * units; unit += data_warps) {
      const int head = unit >= units ? 1 : 0;
      const auto at = Unit::of<node_tiles>(unit - head * units);
      const int first_row = at.sample * nodes;
      float c[2 * node_tiles][4];
      dot_rows<node_tiles, columns>(c, t + head * data_buffer + (first_row + at.node) * stride,
                                    s + first_row * stride, lane);
      const float down = scale.down / (head == 0 ? t_up[0] : t_up[1]);
      softmax<node_tiles>(c, down, layer, step.real_nodes, at.node, lane);
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
    RowSums products;
    multiply_data_rows(z, warp, lane, RowProduct<false>{products, maps.p()});
    u.add(products, scale.down * maps.v_scale.down * (1 / product_down) * maps.p_scale.down);
    u.for_pairs(warp, lane, [&](int row, int column, float x, float y) {
      if (row >= rows) return;
      // A NaN stays.
      *reinterpret_cast<float2*>(layer.output + place + row * columns + column) =
          make_float2(x <= 0 ? 0 : x, y <= 0 ? 0 : y);
    });
  }
}

}  // namespace

int64_t kept_operands(int nodes) {
  const int64_t node_tiles = (nodes + 15) / 16;
  return heads * node_tiles * node_tiles * 32;
}

void enqueue_data_forward(const Layer& layer, cudaStream_t stream) {
  with_node_tiles<false>(layer.nodes, [&]<bool, int node_tiles>() {
    const auto kernel = &medium_data_forward_kernel<node_tiles>;
    allow_shared_bytes(kernel, forward_bytes);
    const int samples = data_samples(layer.nodes);
    const int64_t all = ceil_div(layer.samples, samples);
    const int tiles = tiles_of_block(all, layer.slots, multiprocessors(), 2);
    launch(kernel, dim3(static_cast<unsigned>(ceil_div(all, tiles)), layer.slots),
           dim3(data_threads), forward_bytes, stream, layer, samples, tiles);
  });
}

}  // namespace posattn::cuda::medium
