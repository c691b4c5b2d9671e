// Backward through a layer. With dz = du P (of both heads) and dv_h = A_h^T dz_h,
//   dM = du^T s,   dP = du^T z,   dV = dv^T s,   dc = column sums of du,   dA_h = dz_h v_h^T,
//   ds = du M + dv V.
#include <algorithm>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/medium/gradient.cuh"
#include "posattn/model/cuda/medium/launch.h"
#include "posattn/model/cuda/medium/mixing.cuh"
#include "posattn/model/cuda/medium/rows.cuh"

namespace posattn::cuda::medium {
namespace {

// The buffers of halves are s, du, v, dz and z; without room for five z takes the place of v. dv
// takes the place of v, or then of dz.
template <class Sizes>
constexpr int buffers = Sizes::shared_bytes(5, 0) <= most_shared_bytes ? 5 : 4;
// Whether the next tile's rows come to shared memory while one is at work; else they come to the
// second-level cache.
template <class Sizes>
constexpr bool ahead = Sizes::shared_bytes(buffers<Sizes>, 2) <= most_shared_bytes;

// A block takes a group of a slot.
template <bool exact, int node_tiles>
__global__ void __launch_bounds__(Sizes<exact, node_tiles>::threads, 1)
    medium_backward_kernel(Layer layer, int tile_samples, int group) {
  using S = Sizes<exact, node_tiles>;
  __shared__ uint32_t largest[3 * 32];
  const int slot = static_cast<int>(blockIdx.y), nodes = layer.nodes;
  const int present = layer.steps[slot].samples;
  if (present == 0) return;
  float* gradients = layer.partials + (int64_t{slot} * gridDim.x + blockIdx.x) * layer.folded_size;
  int sample = static_cast<int>(blockIdx.x) * group;
  if (sample >= present) {
    write_zeros(gradients + layer.maps, 3 * columns * columns, S::threads);
    write_zeros(gradients + layer.constant, columns, S::threads);
    write_zeros(gradients + layer.attention, heads * nodes * nodes, S::threads);
    return;
  }
  const int last = min(present, sample + group);
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const float* folded = layer.folded + slot * layer.folded_size;

  Half* s = reinterpret_cast<Half*>(dynamic_shared());
  Half* du = s + S::buffer;
  Half* v = du + S::buffer;
  Half* dz = v + S::buffer;
  constexpr bool in_place = buffers<S> == 4;
  Half* z = in_place ? v : dz + S::buffer;
  Half* dv = in_place ? dz : v;
  Half* attention = s + buffers<S> * S::buffer;
  Half* weights = attention + S::attention_buffer;
  float* s_copy = reinterpret_cast<float*>(weights + S::maps_buffer);
  using Tile = Rows<S::threads, S::rows>;
  float* du_copy = s_copy + S::rows * columns;
  const auto place_of = [&](int first) {
    return (int64_t{slot} * layer.samples + first) * nodes * columns;
  };
  const auto start = [&](int first) {
    const int rows = min(tile_samples, last - first) * nodes;
    if constexpr (ahead<S>) {
      Tile::start_copy(s_copy, layer.rows + place_of(first), rows);
      Tile::start_copy(du_copy, layer.errors + place_of(first), rows);
      commit_copies();
    } else {
      for (int at = 32 * static_cast<int>(threadIdx.x); at < rows * columns;
           at += 32 * S::threads) {
        prefetch(layer.rows + place_of(first) + at);
        prefetch(layer.errors + place_of(first) + at);
      }
    }
  };
  start(sample);
  fill_with_zeros(s, static_cast<int>(weights - s), S::threads);
  const Maps maps = load_maps<exact, S::threads>(weights, largest, folded + layer.maps, warp, lane);
  load_attention<exact, node_tiles>(attention, folded + layer.attention, nodes, warp, lane);
  __syncthreads();  // `largest` is read no more

  MapGradient<exact, node_tiles> dm, dp, dv_map;
  AttentionGradient<exact, node_tiles> dattention;
  float4 column_sums = make_float4(0, 0, 0, 0);
  for (; sample < last; sample += tile_samples) {
    const int samples = min(tile_samples, last - sample), rows = samples * nodes;
    const int64_t place = place_of(sample);
    float4 s_rows[Tile::count], du_rows[Tile::count];
    if constexpr (ahead<S>) wait_copies<0>();
    uint32_t s_most = 0, du_most = 0;
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      s_rows[i] = ahead<S> ? Tile::load_copy(s_copy, i) : Tile::load(layer.rows + place, rows, i);
      du_rows[i] =
          ahead<S> ? Tile::load_copy(du_copy, i) : Tile::load(layer.errors + place, rows, i);
      s_most = largest_of(s_most, s_rows[i]);
      du_most = largest_of(du_most, du_rows[i]);
      column_sums.x += du_rows[i].x;
      column_sums.y += du_rows[i].y;
      column_sums.z += du_rows[i].z;
      column_sums.w += du_rows[i].w;
    }
    put_largest(largest, s_most, warp, lane);
    put_largest(largest + 32, du_most, warp, lane);
    __syncthreads();  // and nobody reads the tile before
    const Scale s_scale = scale_of(get_largest<S::warps>(largest, lane));
    const Scale du_scale = scale_of(get_largest<S::warps>(largest + 32, lane));
#pragma unroll
    for (int i = 0; i < Tile::count; ++i) {
      Tile::template store<exact, S::plane>(s, s_rows[i], s_scale.up, i);
      Tile::template store<exact, S::plane>(du, du_rows[i], du_scale.up, i);
    }
    if (sample + tile_samples < last) start(sample + tile_samples);
    __syncthreads();
    // What one is to be multiplied with: of v and z, of dz, of dv.
    const float v_down = s_scale.down * maps.v_scale.down * (1 / product_down);
    const float dz_down = du_scale.down * maps.p_scale.down * (1 / product_down);
    const float dv_down = dz_down * (1 / gathered_down);
    {
      const WarpTile at(computed_here(warp));
      const int here = computed_here(lane);
      float products[2][2][4] = {};
      multiply_rows<exact, false, S::plane>(products, s + at.row * stride,
                                            maps.v + at.column * stride, here);
      store_rows<exact, S::plane>(v + at.place(), products, product_down, here);
    }
    {
      const WarpTile at(computed_here(warp));
      const int here = computed_here(lane);
      float products[2][2][4] = {};
      multiply_rows<exact, true, S::plane>(products, du + at.row * stride, maps.p + at.column,
                                           here);
      store_rows<exact, S::plane>(dz + at.place(), products, product_down, here);
    }
    dm.add(du, s, du_scale.down * s_scale.down, computed_here(warp), computed_here(lane));
    __syncthreads();
    {
      dattention.add(dz, v, dz_down * v_down, nodes, samples, computed_here(warp),
                     computed_here(lane));
      const Mixing<exact, node_tiles, false> mixing = {
          attention, v, nodes, samples, computed_here(warp), computed_here(lane)};
      in_place ? mixing.mix_in_place(z, attention_down) : mixing.mix_to(z, attention_down);
    }
    __syncthreads();
    {
      dp.add(du, z, du_scale.down * v_down, computed_here(warp), computed_here(lane));
      const Mixing<exact, node_tiles, true> mixing = {
          attention, dz, nodes, samples, computed_here(warp), computed_here(lane)};
      constexpr float factor = attention_down * gathered_down;
      in_place ? mixing.mix_in_place(dv, factor) : mixing.mix_to(dv, factor);
    }
    __syncthreads();
    dv_map.add(dv, s, dv_down * s_scale.down, computed_here(warp), computed_here(lane));
    const WarpTile at(computed_here(warp));
    const int here = computed_here(lane);
    float ds[2][2][4] = {}, products[2][2][4] = {};
    multiply_rows<exact, true, S::plane>(products, du + at.row * stride, maps.m + at.column, here);
    add_scaled(ds[0], products[0], du_scale.down * maps.m_scale.down);
    add_scaled(ds[1], products[1], du_scale.down * maps.m_scale.down);
    clear(products[0]);
    clear(products[1]);
    multiply_rows<exact, true, S::plane>(products, dv + at.row * stride, maps.v + at.column, here);
    add_scaled(ds[0], products[0], dv_down * maps.v_scale.down);
    add_scaled(ds[1], products[1], dv_down * maps.v_scale.down);
    float* to = layer.previous_errors + place + at.column + 2 * (here & 3);
    const bool everywhere = !layer.rectified;
    const Half* signs = s + at.column + 2 * (here & 3);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = at.row + (here >> 2) + 8 * half;
      if (row >= rows) break;
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
#pragma unroll
        for (int n = 0; n < 2; ++n) {
          const int column = 16 * pair + 8 * n;
          const auto positive = *reinterpret_cast<const uint32_t*>(signs + row * stride + column);
          const float* x = &ds[pair][n][2 * half];
          *reinterpret_cast<float2*>(to + row * columns + column) =
              make_float2(everywhere || (positive & 0xffffu) != 0 ? x[0] : 0,
                          everywhere || positive >> 16 != 0 ? x[1] : 0);
        }
      }
    }
  }
  dm.store(gradients + layer.maps, warp, lane);
  dv_map.store(gradients + layer.maps + columns * columns, warp, lane);
  dp.store(gradients + layer.maps + 2 * columns * columns, warp, lane);
  dattention.store(gradients + layer.attention, nodes, warp, lane);
  __syncthreads();  // the tile is read no more
  store_column_sums<S::threads>(gradients + layer.constant, reinterpret_cast<float*>(s),
                                column_sums);
}

}  // namespace

// About twenty samples: 1000 samples of ten runs then keep all multiprocessors of a large GPU at
// work, and partial gradients are few.
int group_samples(const Layer& layer, Precision precision) {
  if (layer.from_data) return data_group_samples(layer.nodes);
  const int samples = with_sizes(layer.nodes, precision, [&]<bool exact, int node_tiles>() {
    return Sizes<exact, node_tiles>::rows / layer.nodes;
  });
  return (20 + samples / 2) / samples * samples;
}

int groups(const Layer& layer, Precision precision) {
  return static_cast<int>(ceil_div(layer.samples, group_samples(layer, precision)));
}

int64_t shared_bytes(int nodes) {
  const auto bytes = [&]<bool exact, int node_tiles>() {
    using S = Sizes<exact, node_tiles>;
    return int64_t{S::shared_bytes(buffers<S>, ahead<S> ? 2 : 0)};
  };
  return std::max({with_node_tiles<true>(nodes, bytes), with_node_tiles<false>(nodes, bytes),
                   forward_shared_bytes(nodes)});
}

void enqueue_backward(const Layer& layer, Precision precision, cudaStream_t stream) {
  with_sizes(layer.nodes, precision, [&]<bool exact, int node_tiles>() {
    using S = Sizes<exact, node_tiles>;
    const int samples = S::rows / layer.nodes;
    constexpr int bytes = S::shared_bytes(buffers<S>, ahead<S> ? 2 : 0);
    static_assert(bytes <= most_shared_bytes);
    const auto kernel = &medium_backward_kernel<exact, node_tiles>;
    allow_shared_bytes(kernel, bytes);
    launch(kernel, dim3(groups(layer, precision), layer.slots), dim3(S::threads), bytes, stream,
           layer, samples, group_samples(layer, precision));
  });
}

}  // namespace posattn::cuda::medium
