#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/small_positional/first_tables.h"

namespace posattn::cuda::positional {
namespace {

constexpr int threads = 256, columns = 64, maps = 3, heads = 2;

struct Slot {
  const PositionsInInput& input;
  const float *folded, *positions;
  int k;  // columns of s

  __device__ Slot(const PositionsInInput& of, int slot)
      : input(of),
        folded(of.folded + slot * of.folded_size),
        positions(of.positions.data + slot * of.positions.slot_stride),
        k(1 + of.encoding_size) {}
  __device__ float map(int m, int out, int in) const {
    return folded[input.places.maps + (m * columns + out) * k + in];
  }
  __device__ float position(int node, int q) const {
    return positions[node * input.encoding_size + q];
  }
  __device__ float attention(int h, int i, int j) const {
    return folded[input.places.attention + (h * input.nodes + i) * input.nodes + j];
  }
  // mapped[m][j] = M_m(:, 1..) P_j. A barrier must follow.
  __device__ void map_positions(float (&mapped)[maps][kernel_nodes][columns]) const {
    for (int e = threadIdx.x; e < maps * input.nodes * columns; e += threads) {
      const int m = e / (input.nodes * columns), j = e / columns % input.nodes, out = e % columns;
      float sum = 0;
      for (int q = 0; q < input.encoding_size; ++q) sum += map(m, out, 1 + q) * position(j, q);
      mapped[m][j][out] = sum;
    }
  }
};

__global__ void make_first_tables(PositionsInInput input, float* tables) {
  __shared__ float mapped[maps][kernel_nodes][columns];
  const int number = static_cast<int>(blockIdx.x);
  if (input.steps[number].samples == 0) return;
  const Slot slot(input, number);
  float* out = tables + int64_t{number} * first_table_size;
  slot.map_positions(mapped);
  for (int e = threadIdx.x; e < maps * columns; e += threads) {
    out[e] = slot.map(e / columns, e % columns, 0);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < input.nodes * columns; e += threads) {
    const int i = e / columns, column = e % columns;
    float sum = slot.folded[input.places.constant + column] + mapped[0][i][column];
    for (int h = 0; h < heads; ++h) {
      for (int j = 0; j < input.nodes; ++j) {
        sum += slot.attention(h, i, j) * mapped[1 + h][j][column];
      }
    }
    out[maps * columns + e] = sum;
  }
}

__global__ void finish_first_tables(PositionsInInput input, float* folded_gradients) {
  __shared__ float mapped[maps][kernel_nodes][columns];
  __shared__ float sums[first_table_size];  // da, then D
  const int number = static_cast<int>(blockIdx.x), nodes = input.nodes;
  if (input.steps[number].samples == 0) return;
  const Slot slot(input, number);
  float* gradient = folded_gradients + number * input.folded_size;
  slot.map_positions(mapped);
  for (int e = threadIdx.x; e < (maps + nodes) * columns; e += threads) {
    sums[e] = gradient[input.places.maps + e];
  }
  __syncthreads();
  const float* errors = sums + maps * columns;  // D
  for (int e = threadIdx.x; e < maps * columns * slot.k; e += threads) {
    const int m = e / (columns * slot.k), out = e / slot.k % columns, q = e % slot.k - 1;
    float sum = q < 0 ? sums[m * columns + out] : 0;
    for (int i = 0; q >= 0 && i < nodes; ++i) {
      float mixed = m == 0 ? slot.position(i, q) : 0;
      for (int j = 0; m > 0 && j < nodes; ++j) {
        mixed += slot.attention(m - 1, i, j) * slot.position(j, q);
      }
      sum += errors[i * columns + out] * mixed;
    }
    gradient[input.places.maps + e] = sum;
  }
  for (int e = threadIdx.x; e < columns; e += threads) {
    float sum = 0;
    for (int i = 0; i < nodes; ++i) sum += errors[i * columns + e];
    gradient[input.places.constant + e] = sum;
  }
  for (int e = threadIdx.x; e < heads * nodes * nodes; e += threads) {
    const int h = e / (nodes * nodes), i = e / nodes % nodes, j = e % nodes;
    float sum = gradient[input.places.attention + e];
    for (int column = 0; column < columns; ++column) {
      sum += errors[i * columns + column] * mapped[1 + h][j][column];
    }
    gradient[input.places.attention + e] = sum;
  }
}

}  // namespace

void enqueue_make_first_tables(const PositionsInInput& input, float* tables, cudaStream_t stream) {
  launch(make_first_tables, dim3(input.slots), dim3(threads), 0, stream, input, tables);
}

void enqueue_finish_first_tables(const PositionsInInput& input, float* folded_gradients,
                                 cudaStream_t stream) {
  launch(finish_first_tables, dim3(input.slots), dim3(threads), 0, stream, input, folded_gradients);
}

}  // namespace posattn::cuda::positional
