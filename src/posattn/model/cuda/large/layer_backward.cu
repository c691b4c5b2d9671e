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

namespace posattn::cuda::large {

namespace {

constexpr int buffers = 3;  // s, du, and one for y, v, dt and dS^T s in turn

// The products of a tile: of M_0 for ds; then of each head M for ds, M for v, and, from data, twice
// G for ds. Those for ds only where it is wanted.
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
    if (step < 2) return map(1 + head, wants_ds && step == 0);
    return {folded + scores + head * columns * columns, columns, columns, step == 3};
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
  const float* folded;
  float* gradients;      // the group's
  float *s, *du, *work;  // rows
  float *attention, *dscores, *column_sums;
  Samples samples;
  bool first;
  int warp, lane;
  Panels<exact, tiles, BackwardOrder>& panels;
  RowSums<tiles> ds[tiles];

  __device__ bool wants_ds() const { return layer.previous_errors != nullptr; }

  __device__ void start_attention(int head) {
    const int nodes = layer.nodes;
    start_kept(attention, shape, layer,
               layer.kept_attention + (samples.first * layer.heads + head) * nodes * nodes,
               samples.present);
    commit_copies();
  }

  // dM_h and its share of ds, from y.
  __device__ void through_map(int map, const float* y) {
    const int64_t place = layer.maps + int64_t{map} * layer.hidden * layer.columns;
    add_gradient<exact, false>({gradients + place, layer.hidden, layer.columns, first},
                               map == 0 ? gradients + layer.constant : nullptr, y, s, shape, warp,
                               lane);
    if (wants_ds()) add_rows(y);
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

  // From v in `work`; ends with `work` in use.
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
    if (head + 1 < layer.heads) start_attention(head + 1);
    mix<exact, false>(work, s, dscores, shape.attention_floats, shape, nodes, columns, nullptr,
                      warp, lane);
    __syncthreads();
    const int64_t scores = layer.scores + int64_t{head} * columns * columns;
    const int64_t bias = layer.score_bias + head * columns;
    add_gradient<exact, true>({gradients + scores, columns, columns, first}, gradients + bias, s,
                              work, shape, warp, lane);
    if (!wants_ds()) return;
    add_rows(work);
    __syncthreads();
    mix<exact, true>(work, s, dscores, shape.attention_floats, shape, nodes, columns, column_sums,
                     warp, lane);
    add_rows(work);
    const float* g = folded + bias;
    for_ds([&](int row, int column, float& x, float& y) {
      if (row >= shape.rows) return;
      if (column < columns) x += column_sums[row] * g[column];
      if (column + 1 < columns) y += column_sums[row] * g[column + 1];
    });
  }

  __device__ void store_previous_errors() {
    const int columns = layer.columns, present = samples.present * layer.nodes;
    float* to = layer.previous_errors + samples.first * layer.nodes * columns;
    for_ds([&](int row, int column, float x, float y) {
      if (row >= present || column >= columns) return;
      const float2 input = load2(s + row * shape.stride + column);
      store_pair(to + row * columns, column, columns, input.x > 0 ? operand<exact>(x) : 0,
                 input.y > 0 ? operand<exact>(y) : 0);
    });
  }

  __device__ void run() {
#pragma unroll
    for (int part = 0; part < tiles; ++part) ds[part].clear();
#pragma unroll 1
    for (int map = 0; map <= layer.heads; ++map) {
      const int head = map - 1;
      if (head >= 0) {
        if (from_data && head > 0) wait_copies<0>();
        if (head > 0) __syncthreads();
        const float* matrix = attention + (from_data ? 0 : head * shape.attention_floats);
        mix<exact, false>(work, du, matrix, from_data ? shape.attention_floats : 0, shape,
                          layer.nodes, layer.hidden, nullptr, warp, lane);
        __syncthreads();
      }
      through_map(map, head < 0 ? du : work);
      if (head < 0) continue;
      __syncthreads();
      values();
      __syncthreads();
      if (from_data) {
        data_attention(head);
      } else {
        positional_attention(head);
      }
    }
    if (wants_ds()) store_previous_errors();
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
  BackwardTile<exact, tiles, from_data> part = {layer,
                                                shape,
                                                folded,
                                                gradients,
                                                s,
                                                du,
                                                work,
                                                attention,
                                                dscores,
                                                column_sums,
                                                {},
                                                true,
                                                static_cast<int>(threadIdx.x) / 32,
                                                static_cast<int>(threadIdx.x) % 32,
                                                panels,
                                                {}};
  const int left_of_group = step.samples - group_start;
  const int end =
      group_start + (left_of_group < shape.group_samples ? left_of_group : shape.group_samples);
  for (int start = group_start; start < end; start += shape.samples) {
    const int left = end - start;
    part.samples = {int64_t{slot} * layer.samples + start,
                    left < shape.samples ? left : shape.samples};
    if (!part.first) __syncthreads();
    start_input<exact>(s, shape, layer, slot, start, part.samples);
    start_rows(du, shape, layer.errors, layer.nodes, layer.hidden, part.samples);
    if (from_data) part.start_attention(0);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    part.run();
    part.first = false;
  }
}

template <bool exact, int tiles, bool from_data>
void launch_backward(const Layer& layer, cudaStream_t stream) {
  const Tile<tiles> shape = {tile_shape(layer)};
  const int floats =
      buffers * shape.row_floats() +
      (from_data ? 2 * shape.matrices_floats() + Tile<tiles>::most_rows : shape.matrices_floats()) +
      Panels<exact, tiles, BackwardOrder>::floats;
  const size_t bytes = floats * sizeof(float);
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

void enqueue_backward(const Layer& layer, Precision precision, cudaStream_t stream) {
  precision == Precision::fp32 ? launch_backward<true>(layer, stream)
                               : launch_backward<false>(layer, stream);
}

}  // namespace posattn::cuda::large
