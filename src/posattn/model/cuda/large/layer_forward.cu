#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/attention.cuh"
#include "posattn/model/cuda/large/products.cuh"
#include "posattn/model/cuda/step/multiprocessors.h"

namespace posattn::cuda::large {

namespace {

// Whether the next tile comes while one is at work; there is no room for wide ones.
template <int tiles>
constexpr bool comes_ahead = tiles == 1;
// s, with its successor, and z = A s (before it, from data, t = s G + g).
template <int tiles>
constexpr int buffers = comes_ahead<tiles> ? 3 : 2;

// The products of a tile: M_0, then of each head G (from data) and M.
struct ForwardOrder {
  const float* folded;  // the slot's
  int64_t maps, scores;
  int heads, hidden, columns;
  bool from_data;

  __device__ int products() const { return 1 + (from_data ? 2 : 1) * heads; }
  __device__ Weights operator()(int product) const {
    if (from_data && product % 2 == 1) {
      return {folded + scores + product / 2 * columns * columns, columns, columns, true};
    }
    const int map = from_data ? product / 2 : product;
    return {folded + maps + map * hidden * columns, hidden, columns, false};
  }
};

// A head's coefficients of a tile from its data, in shared memory and kept.
template <bool exact, int tiles, class Panels>
__device__ inline void attend(float* attention, float* t, const float* s, const Layer& layer,
                              const Tile<tiles>& shape, Panels& panels, const float* folded,
                              int head, Samples samples, int present_nodes, int warp, int lane) {
  const int columns = layer.columns;
  multiply_rows<exact>(t, shape, s, folded + layer.score_bias + head * columns, columns, panels,
                       warp, lane);
  __syncthreads();
  dot_rows<exact, false>(
      t, s, shape, layer.nodes, columns, warp, lane, StartAtZero(),
      [&](int sample, int i, int j, float score) {
        attention[sample * shape.attention_floats + i * shape.attention_stride + j] = score;
      });
  __syncthreads();
  float* kept =
      layer.kept_attention + (samples.first * layer.heads + head) * layer.nodes * layer.nodes;
  softmax_rows<exact>(attention, shape, layer, present_nodes, kept, samples.present);
  __syncthreads();
}

// One block: some tiles of a slot.
template <bool exact, int tiles, bool from_data>
__global__ void __launch_bounds__(threads, 1)
    forward_kernel(Layer layer, Tile<tiles> shape, int block_tiles) {
  const int slot = static_cast<int>(blockIdx.y);
  const SlotStep step = layer.steps[slot];
  const int first_tile = static_cast<int>(blockIdx.x) * block_tiles;
  if (first_tile * shape.samples >= step.samples) return;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  const int columns = layer.columns, hidden = layer.hidden, nodes = layer.nodes;
  const float* folded = layer.folded + slot * layer.folded_size;

  float* s = reinterpret_cast<float*>(dynamic_shared());
  float* next = comes_ahead<tiles> ? s + shape.row_floats() : s;
  float* z = next + shape.row_floats();
  float* attention = z + shape.row_floats();
  fill_with_zeros(s, buffers<tiles> * shape.row_floats() + shape.matrices_floats());
  __syncthreads();
  if (!from_data) {
    load_attention<exact, false>(attention, shape, folded + layer.attention, layer.heads, nodes);
  }
  if (layer.rows == nullptr) {
    load_positions<exact>(s, shape, layer, slot);
    if (comes_ahead<tiles>) load_positions<exact>(next, shape, layer, slot);
  }

  Panels<exact, tiles, ForwardOrder> panels(
      attention + shape.matrices_floats(),
      {folded, layer.maps, layer.scores, layer.heads, hidden, columns, from_data});

  const auto samples_of = [&](int tile) {
    const int left = step.samples - tile * shape.samples;
    return Samples{int64_t{slot} * layer.samples + tile * shape.samples,
                   left < shape.samples ? left : shape.samples};
  };
  const auto start = [&](int tile) {
    start_input<exact>(next, shape, layer, slot, tile * shape.samples, samples_of(tile));
    commit_copies();
  };
  int end = first_tile + block_tiles;
  while ((end - 1) * shape.samples >= step.samples) --end;
  start(first_tile);
  for (int tile = first_tile; tile < end; ++tile) {
    const Samples samples = samples_of(tile);
    wait_copies<0>();
    __syncthreads();
    if (comes_ahead<tiles>) {
      float* const arrived = next;
      next = s;
      s = arrived;
      if (tile + 1 < end) start(tile + 1);
    }
    RowSums<tiles> u[tiles];
#pragma unroll
    for (int part = 0; part < tiles; ++part) {
      u[part].start_with(folded + layer.constant, hidden, 64 * part, warp, lane);
    }
#pragma unroll 1
    for (int map = 0; map <= layer.heads; ++map) {
      const int head = map - 1;
      if (head > 0) __syncthreads();  // z is read no more
      if (from_data && head >= 0) {
        attend<exact>(attention, z, s, layer, shape, panels, folded, head, samples, step.real_nodes,
                      warp, lane);
      }
      if (head >= 0) {
        mix<exact>(z, s, attention + (from_data ? 0 : head * shape.attention_floats),
                   from_data ? shape.attention_floats : 0, false, shape, nodes, columns, nullptr,
                   warp, lane);
      }
      add_row_products<exact>(u, head < 0 ? s : z, panels, warp, lane);
    }
    float* output = layer.output + samples.first * nodes * hidden;
    const int present_rows = samples.present * nodes;
#pragma unroll
    for (int part = 0; part < tiles; ++part) {
      u[part].for_pairs(64 * part, warp, lane, [&](int row, int column, float x, float y) {
        if (row >= present_rows || column >= hidden) return;
        // Rounding would make a small number of a zero, which backward must still see; a NaN stays.
        store_pair(output + row * hidden, column, hidden, x <= 0 ? 0 : operand<exact>(x),
                   y <= 0 ? 0 : operand<exact>(y));
      });
    }
    // The last barrier was after the last use of s.
    if (!comes_ahead<tiles> && tile + 1 < end) start(tile + 1);
  }
}

template <bool exact, int tiles>
size_t bytes_of(const Tile<tiles>& shape) {
  return (size_t{buffers<tiles>} * shape.row_floats() + shape.matrices_floats() +
          Panels<exact, tiles, ForwardOrder>::floats) *
         sizeof(float);
}

template <bool exact, int tiles, bool from_data>
void launch_forward(const Layer& layer, cudaStream_t stream) {
  const Tile<tiles> shape = {tile_shape(layer)};
  const size_t bytes = bytes_of<exact>(shape);
  const auto kernel = &forward_kernel<exact, tiles, from_data>;
  allow_shared_bytes(kernel, bytes);
  const int block_tiles =
      tiles_of_block(ceil_div(layer.samples, shape.samples), layer.slots, layer.multiprocessors, 1);
  const int64_t blocks = ceil_div(layer.samples, block_tiles * shape.samples);
  launch(kernel, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(layer.slots)),
         dim3(threads), bytes, stream, layer, shape, block_tiles);
}

template <bool exact, int tiles>
void launch_forward(const Layer& layer, cudaStream_t stream) {
  layer.from_data ? launch_forward<exact, tiles, true>(layer, stream)
                  : launch_forward<exact, tiles, false>(layer, stream);
}

template <bool exact>
void launch_forward(const Layer& layer, cudaStream_t stream) {
  is_narrow(layer) ? launch_forward<exact, 1>(layer, stream)
                   : launch_forward<exact, 2>(layer, stream);
}

}  // namespace

int64_t forward_shared_bytes(const Layer& layer) {
  const TileShape shape = tile_shape(layer);
  return static_cast<int64_t>(is_narrow(layer) ? bytes_of<true>(Tile<1>{shape})
                                               : bytes_of<true>(Tile<2>{shape}));
}

void enqueue_forward(const Layer& layer, Precision precision, cudaStream_t stream) {
  precision == Precision::fp32 ? launch_forward<true>(layer, stream)
                               : launch_forward<false>(layer, stream);
}

}  // namespace posattn::cuda::large
