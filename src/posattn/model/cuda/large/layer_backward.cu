// Backward through a layer. With y_h = A_h^T du (y_0 = du) and v_h = s M_h^T,
//   dM_h = y_h^T s,   dc = column sums of du,   ds = sum_h y_h M_h,   dA_h = du v_h^T per sample,
// and, from data, with dS = A (dA - row sums of A dA) and dt = dS s,
//   dG = s^T dt,   dg = column sums of dt,
//   ds += dt G^T + dS^T (s G + g) = dt G^T + (dS^T s) G + (column sums of dS) g.
// So every term of ds is a product of rows with weights, and its sums stay in registers.
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/large/attention.cuh"
#include "posattn/model/cuda/large/gradient.cuh"
#include "posattn/model/cuda/large/products.cuh"
#include "posattn/model/cuda/medium/data_layer.h"

namespace posattn::cuda::large {

namespace {

constexpr int buffers = 3;  // s, du, and one for y, v, dt and dS^T s in turn

// The products of a tile: of M_0 for ds; then of each head M for v, from data twice G for ds, and M
// for ds. Those for ds only where it is wanted.
struct BackwardOrder {
  const float* folded;  // the slot's
  int64_t maps, scores;
  int heads, hidden, columns;
  bool from_data, wants_ds;

  __device__ int head_products() const { return wants_ds ? (from_data ? 4 : 2) : 1; }
  __device__ int products() const { return heads * head_products() + (wants_ds ? 1 : 0); }
  __device__ Weights operator()(int product) const {
    if (wants_ds && product == 0) return map(0, true);
    const int index = product - (wants_ds ? 1 : 0), head = index / head_products();
    const int step = index - head * head_products();
    if (step == 0) return map(1 + head, false);
    if (step == head_products() - 1) return map(1 + head, true);
    return {folded + scores + head * columns * columns, columns, columns, step == 2};
  }

 private:
  // M as it lies there is [hidden, columns].
  __device__ Weights map(int index, bool for_ds) const {
    const float* data = folded + maps + index * hidden * columns;
    return for_ds ? Weights{data, columns, hidden, true} : Weights{data, hidden, columns, false};
  }
};

template <bool exact, int tiles, bool from_data>
struct BackwardTile {
  const Layer& layer;
  const Tile<tiles>& shape;
  int slot;
  const float* folded;
  float* gradients;      // the group's
  float *s, *du, *work;  // rows
  float *attention, *dscores, *column_sums;
  int first_sample, end_sample;  // what is left of the group, this tile and later ones
  bool first;                    // of the group's tiles
  int warp, lane;
  Panels<exact, tiles, BackwardOrder>& panels;
  RowSums<tiles> ds[tiles];

  __device__ bool wants_ds() const { return layer.previous_errors != nullptr; }

  // Of the tile that starts with a sample of the slot.
  __device__ Samples samples_from(int sample) const {
    const int left = end_sample - sample;
    return {int64_t{slot} * layer.samples + sample, left < shape.samples ? left : shape.samples};
  }
  __device__ void start_attention(int sample, int head) {
    const Samples samples = samples_from(sample);
    const int nodes = layer.nodes;
    start_kept(attention, shape, layer,
               layer.kept_attention + (samples.first * layer.heads + head) * nodes * nodes,
               samples.present);
    commit_copies();
  }
  __device__ void start_errors(int sample) {
    start_rows(du, shape, layer.errors, layer.nodes, layer.hidden, samples_from(sample));
    commit_copies();
  }
  __device__ void start_s(int sample) {
    start_input<exact>(s, shape, layer, slot, sample, samples_from(sample));
    commit_copies();
  }

  // dM_h from y.
  __device__ void map_gradient(int map, const float* y) {
    const int64_t place = layer.maps + int64_t{map} * layer.hidden * layer.columns;
    add_gradient<exact, false>({gradients + place, layer.hidden, layer.columns, first},
                               map == 0 ? gradients + layer.constant : nullptr, y, s, shape, warp,
                               lane);
  }
  // ds += rows W with the weights that come next.
  __device__ void add_rows(const float* rows) {
    add_row_products<exact>(ds, rows, panels, warp, lane);
  }

  template <class DoPair>
  __device__ void for_ds(DoPair do_pair) {
#pragma unroll
    for (int part = 0; part < tiles; ++part) ds[part].for_pairs(64 * part, warp, lane, do_pair);
  }

  // v of the head -> work.
  __device__ void values() {
    multiply_rows<exact>(work, shape, s, nullptr, layer.hidden, panels, warp, lane);
  }

  // dA summed over the samples.
  __device__ void positional_attention(int head) {
    const int nodes = layer.nodes;
    float* gradient = gradients + layer.attention + head * nodes * nodes;
    dot_rows<exact, true>(
        du, work, shape, nodes, layer.hidden, warp, lane,
        [&](int, int i, int j) { return first ? 0.0F : gradient[i * nodes + j]; },
        [&](int, int i, int j, float sum) { gradient[i * nodes + j] = sum; });
  }

  // From v in `work`.
  __device__ void data_attention(int head) {
    const int nodes = layer.nodes, columns = layer.columns;
    dot_rows<exact, false>(
        du, work, shape, nodes, layer.hidden, warp, lane, StartAtZero(),
        [&](int sample, int i, int j, float x) {
          dscores[sample * shape.attention_floats + i * shape.attention_stride + j] = x;
        });
    __syncthreads();
    softmax_gradient<exact>(dscores, attention, shape, nodes);
    __syncthreads();
    const int64_t scores = layer.scores + int64_t{head} * columns * columns;
    const int64_t bias = layer.score_bias + head * columns;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {  // dt, then dS^T s
      const bool transposed = pass == 1;
      mix<exact>(work, s, dscores, shape.attention_floats, transposed, shape, nodes, columns,
                 transposed ? column_sums : nullptr, warp, lane);
      __syncthreads();
      if (!transposed) {
        add_gradient<exact, true>({gradients + scores, columns, columns, first}, gradients + bias,
                                  s, work, shape, warp, lane);
      }
      if (!wants_ds()) return;
      add_rows(work);
      __syncthreads();
    }
    const float* g = folded + bias;
    for_ds([&](int row, int column, float& x, float& y) {
      if (row >= shape.rows) return;
      if (column < columns) x += column_sums[row] * g[column];
      if (column + 1 < columns) y += column_sums[row] * g[column + 1];
    });
  }

  // The gradient of a head's attention; then y -> work.
  __device__ void errors_of_head(int head) {
    if (from_data) wait_copies<0>();
    values();
    __syncthreads();
    if (from_data) {
      data_attention(head);
    } else {
      positional_attention(head);
    }
    __syncthreads();
    mix<exact>(work, du, attention + (from_data ? 0 : head * shape.attention_floats),
               from_data ? shape.attention_floats : 0, false, shape, layer.nodes, layer.hidden,
               nullptr, warp, lane);
    __syncthreads();
  }

  // A bit for each of this thread's sums of ds: whether s > 0.
  __device__ uint32_t signs_of_s() {
    uint32_t signs = 0;
    int bit = 0;
    for_ds([&](int row, int column, float, float) {
      const float2 input = row < shape.rows && column < layer.columns
                               ? load2(s + row * shape.stride + column)
                               : make_float2(0, 0);
      signs |= (input.x > 0 ? 1u : 0u) << bit | (input.y > 0 ? 2u : 0u) << bit;
      bit += 2;
    });
    return signs;
  }
  __device__ void store_previous_errors(uint32_t signs) {
    const Samples samples = samples_from(first_sample);
    const int columns = layer.columns, present = samples.present * layer.nodes;
    float* to = layer.previous_errors + samples.first * layer.nodes * columns;
    int bit = 0;
    for_ds([&](int row, int column, float x, float y) {
      const uint32_t pair = signs >> bit;
      bit += 2;
      if (row >= present || column >= columns) return;
      store_pair(to + row * columns, column, columns, (pair & 1) != 0 ? operand<exact>(x) : 0,
                 (pair & 2) != 0 ? operand<exact>(y) : 0);
    });
  }

  // The tile's rows are there. Those of the next are asked for when these are used no more.
  __device__ void run() {
#pragma unroll
    for (int part = 0; part < tiles; ++part) ds[part].clear();
    const uint32_t signs = wants_ds() ? signs_of_s() : 0;
    const int next = first_sample + shape.samples;
#pragma unroll 1
    for (int map = 0; map <= layer.heads; ++map) {
      const bool goes_on = map == layer.heads && next < end_sample;
      if (map > 0) errors_of_head(map - 1);
      if (goes_on) start_errors(next);
      if (from_data && map > 0 && map < layer.heads) start_attention(first_sample, map);
      if (from_data && goes_on) start_attention(next, 0);
      const float* y = map > 0 ? work : du;
      map_gradient(map, y);
      if (goes_on) {
        __syncthreads();
        start_s(next);
      }
      if (wants_ds()) add_rows(y);
    }
    if (wants_ds()) store_previous_errors(signs);
  }
};

__device__ inline void write_zeros(float* to, int count) {
  for (int at = static_cast<int>(threadIdx.x); at < count; at += threads) to[at] = 0;
}

// A group without a present sample.
__device__ inline void write_zero_gradients(const Layer& layer, float* gradients) {
  const int columns = layer.columns, heads = layer.heads;
  write_zeros(gradients + layer.maps, (1 + heads) * layer.hidden * columns);
  write_zeros(gradients + layer.constant, layer.hidden);
  if (layer.from_data) {
    write_zeros(gradients + layer.scores, heads * columns * columns);
    write_zeros(gradients + layer.score_bias, heads * columns);
  } else {
    write_zeros(gradients + layer.attention, heads * layer.nodes * layer.nodes);
  }
}

// One block: a group of a slot.
template <bool exact, int tiles, bool from_data>
__global__ void __launch_bounds__(threads, 1) backward_kernel(Layer layer, Tile<tiles> shape) {
  const int slot = static_cast<int>(blockIdx.y), group = static_cast<int>(blockIdx.x);
  const SlotStep step = layer.steps[slot];
  if (step.samples == 0) return;
  float* gradients = layer.partials + (int64_t{slot} * gridDim.x + group) * layer.folded_size;
  const int group_start = group * shape.group_samples;
  if (group_start >= step.samples) {
    write_zero_gradients(layer, gradients);
    return;
  }
  float* s = reinterpret_cast<float*>(dynamic_shared());
  float* du = s + shape.row_floats();
  float* work = du + shape.row_floats();
  float* attention = work + shape.row_floats();
  float* dscores = attention + shape.matrices_floats();
  float* column_sums = dscores + (from_data ? shape.matrices_floats() : 0);
  fill_with_zeros(s, static_cast<int>(column_sums - s) + (from_data ? Tile<tiles>::most_rows : 0));
  __syncthreads();
  const float* folded = layer.folded + slot * layer.folded_size;
  if (!from_data) {
    load_attention<exact, true>(attention, shape, folded + layer.attention, layer.heads,
                                layer.nodes);
  }
  if (layer.rows == nullptr) load_positions<exact>(s, shape, layer, slot);

  Panels<exact, tiles, BackwardOrder> panels(
      column_sums + (from_data ? Tile<tiles>::most_rows : 0),
      {folded, layer.maps, layer.scores, layer.heads, layer.hidden, layer.columns, from_data,
       layer.previous_errors != nullptr});
  const int left = step.samples - group_start;
  BackwardTile<exact, tiles, from_data> part = {
      layer,
      shape,
      slot,
      folded,
      gradients,
      s,
      du,
      work,
      attention,
      dscores,
      column_sums,
      group_start,
      group_start + (left < shape.group_samples ? left : shape.group_samples),
      true,
      static_cast<int>(threadIdx.x) / 32,
      static_cast<int>(threadIdx.x) % 32,
      panels,
      {}};
  part.start_s(group_start);
  part.start_errors(group_start);
  if (from_data) part.start_attention(group_start, 0);
  for (; part.first_sample < part.end_sample; part.first_sample += shape.samples) {
    wait_copies<0>();
    __syncthreads();
    part.run();
    part.first = false;
  }
}

template <bool exact, int tiles>
size_t bytes_of(const Tile<tiles>& shape, bool from_data) {
  const int floats =
      buffers * shape.row_floats() +
      (from_data ? 2 * shape.matrices_floats() + Tile<tiles>::most_rows : shape.matrices_floats()) +
      Panels<exact, tiles, BackwardOrder>::floats;
  return floats * sizeof(float);
}

template <bool exact, int tiles, bool from_data>
void launch_backward(const Layer& layer, cudaStream_t stream) {
  const Tile<tiles> shape = {tile_shape(layer)};
  const size_t bytes = bytes_of<exact>(shape, from_data);
  const auto kernel = &backward_kernel<exact, tiles, from_data>;
  allow_shared_bytes(kernel, bytes);
  launch(kernel, dim3(static_cast<unsigned>(groups(layer)), static_cast<unsigned>(layer.slots)),
         dim3(threads), bytes, stream, layer, shape);
}

template <bool exact, int tiles>
void launch_backward(const Layer& layer, cudaStream_t stream) {
  layer.from_data ? launch_backward<exact, tiles, true>(layer, stream)
                  : launch_backward<exact, tiles, false>(layer, stream);
}

template <bool exact>
void launch_backward(const Layer& layer, cudaStream_t stream) {
  is_narrow(layer) ? launch_backward<exact, 1>(layer, stream)
                   : launch_backward<exact, 2>(layer, stream);
}

}  // namespace

int64_t backward_shared_bytes(const Layer& layer) {
  const TileShape shape = tile_shape(layer);
  return static_cast<int64_t>(is_narrow(layer) ? bytes_of<true>(Tile<1>{shape}, layer.from_data)
                                               : bytes_of<true>(Tile<2>{shape}, layer.from_data));
}

void enqueue_backward(const Layer& layer, Precision precision, cudaStream_t stream) {
  if (medium::takes_data_layer(layer, precision)) {
    medium::enqueue_data_backward(layer, tile_shape(layer).group_samples, stream);
    return;
  }
  precision == Precision::fp32 ? launch_backward<true>(layer, stream)
                               : launch_backward<false>(layer, stream);
}

}  // namespace posattn::cuda::large
