#include <algorithm>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/launch.h"
#include "posattn/model/cuda/medium/mixing.cuh"
#include "posattn/model/cuda/medium/rows.cuh"
#include "posattn/model/cuda/step/folded_engine.h"

namespace posattn::cuda::medium {
namespace {

constexpr int buffers = 3;  // s, v, z

// A block takes `tiles` tiles of a slot.
template <bool exact, int node_tiles>
__global__ void __launch_bounds__(Sizes<exact, node_tiles>::threads, 1)
    medium_forward_kernel(Layer layer, int tile_samples, int tiles) {
  using S = Sizes<exact, node_tiles>;
  __shared__ uint32_t largest[3 * 32];
  const int slot = static_cast<int>(blockIdx.y);
  const int present = layer.steps[slot].samples;
  int sample = static_cast<int>(blockIdx.x) * tiles * tile_samples;
  if (sample >= present) return;
  const int last = min(present, sample + tiles * tile_samples);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int nodes = layer.nodes;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* v = s + S::buffer;
  Half* z = v + S::buffer;
  Half* attention = z + S::buffer;
  Half* weights = attention + S::attention_buffer;
  // The next tile's rows as they come.
  float* copy = reinterpret_cast<float*>(weights + S::maps_buffer);
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
  const Maps maps = load_maps<exact, S::threads>(weights, largest, folded + layer.maps, warp, lane);
  load_attention<exact, node_tiles>(attention, folded + layer.attention, nodes, warp, lane);

  const int first_row = warp / 2 * 16, first_column = warp % 2 * 32;
  float constant[2][2][2];
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float* c = folded + layer.constant + first_column + 16 * pair + 8 * n + 2 * (lane & 3);
      constant[pair][n][0] = c[0];
      constant[pair][n][1] = c[1];
    }
  }
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
      Tile::template store<exact, S::plane>(s, Tile::load_copy(copy, i), scale.up, i);
    }
    if (sample + tile_samples < last) start(sample + tile_samples);
    __syncthreads();
    float u[2][2][4];
    {
      float values[2][2][4] = {};
      multiply_rows<exact, false, S::plane>(values, s + first_row * stride,
                                            maps.v + first_column * stride, lane);
      store_rows<exact, S::plane>(v + first_row * stride + first_column, values, product_down,
                                  lane);
      float products[2][2][4] = {};
      multiply_rows<exact, false, S::plane>(products, s + first_row * stride,
                                            maps.m + first_column * stride, lane);
      const float down = scale.down * maps.m_scale.down;
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            u[pair][n][e] = constant[pair][n][e & 1] + down * products[pair][n][e];
          }
        }
      }
    }
    __syncthreads();
    Mixing<exact, node_tiles, false>{attention, v, nodes, samples, warp, lane}.mix_to(
        z, attention_down);
    __syncthreads();
    float products[2][2][4] = {};
    multiply_rows<exact, false, S::plane>(products, z + first_row * stride,
                                          maps.p + first_column * stride, lane);
    // In steps, so that small factors of small numbers do not vanish.
    const float down = scale.down * maps.v_scale.down * (1 / product_down);
    float* output = layer.output + place + first_column + 2 * (lane & 3);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + (lane >> 2) + 8 * half;
      if (row >= rows) break;
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const float* p = &products[pair][n][2 * half];
          const float x = u[pair][n][2 * half] + maps.p_scale.down * p[0] * down;
          const float y = u[pair][n][2 * half + 1] + maps.p_scale.down * p[1] * down;
          // A NaN stays.
          *reinterpret_cast<float2*>(output + row * columns + 16 * pair + 8 * n) =
              make_float2(x <= 0 ? 0 : x, y <= 0 ? 0 : y);
        }
      }
    }
  }
}

}  // namespace

int64_t forward_shared_bytes(int nodes) {
  const auto bytes = [&]<bool exact, int node_tiles>() {
    return int64_t{Sizes<exact, node_tiles>::shared_bytes(buffers, 1)};
  };
  return std::max(with_node_tiles<true>(nodes, bytes), with_node_tiles<false>(nodes, bytes));
}

void enqueue_forward(const Layer& layer, Precision precision, cudaStream_t stream) {
  with_sizes(layer.nodes, precision, [&]<bool exact, int node_tiles>() {
    using S = Sizes<exact, node_tiles>;
    const int samples = S::rows / layer.nodes;
    constexpr int bytes = S::shared_bytes(buffers, 1);
    static_assert(bytes <= most_shared_bytes);
    const auto kernel = &medium_forward_kernel<exact, node_tiles>;
    allow_shared_bytes(kernel, bytes);
    const int64_t all = ceil_div(layer.samples, samples);
    const int tiles = tiles_of_block(all, layer.slots, multiprocessors(), 2);
    launch(kernel, dim3(static_cast<unsigned>(ceil_div(all, tiles)), layer.slots), dim3(S::threads),
           bytes, stream, layer, samples, tiles);
  });
}

}  // namespace posattn::cuda::medium
