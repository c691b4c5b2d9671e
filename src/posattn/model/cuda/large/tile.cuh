// A tile of the larger models' kernels: up to 144 rows (whole samples; 80 of wide layers) of a
// layer in shared memory, and how they come there.
//
// All buffers of rows have one stride, 8 modulo 32, so that two kinds of reads are free of
// bank conflicts: fragments whose depth are columns, 8 bytes at [row g][column 2t] (the order of
// the depth within eight is free, so a lane takes 2t and 2t + 1 on both sides), and fragments whose
// depth are rows, 8 bytes at [row t][column 2g] (so is the order of sixteen columns). Here
// g = lane / 4 and t = lane % 4, as in mma_tf32.
// Columns up to the next multiple of 8 and rows behind the tile's hold zeros.
#pragma once

#include "posattn/model/cuda/large/layer.h"
#include "posattn/model/cuda/step/tile.cuh"

namespace posattn::cuda::large {

constexpr int warps = 12;
constexpr int threads = 32 * warps;

struct TileShape {
  int samples;  // of a tile
  // Of a group. Part of the result's rounding, like the size of a tile: never a function of the
  // fleet.
  int group_samples;
  int rows;  // samples x nodes
  int stored_rows;
  int node_tiles;  // eights of nodes
  // A matrix of attention: [8 node_tiles, attention_stride], zeros behind the nodes. From positions
  // a block holds one per head, from data one per sample.
  int attention_stride, attention_floats, matrices;
  int mixed_tiles;   // most eights of nodes of one warp's share in mix()
  int dotted_tiles;  // likewise in the products of rows with rows

  __host__ __device__ int matrices_floats() const { return matrices * attention_floats; }
};
TileShape tile_shape(const Layer& layer);

// For layers of up to 64 `tiles` outputs.
template <int tiles>
struct Tile : TileShape {
  static constexpr int stride = 64 * tiles + 8;
  static constexpr int row_fragments = tiles == 1 ? 9 : 5;
  static constexpr int most_rows = 16 * row_fragments;

  __host__ __device__ int row_floats() const { return stored_rows * stride; }
};

// Whether the smaller kind of tile has room for a layer.
inline bool is_narrow(const Layer& layer) {
  return layer.hidden <= 64 && layer.columns <= Tile<1>::stride;
}

__host__ __device__ constexpr int padded_to_8(int count) { return (count + 7) / 8 * 8; }

// The samples a block looks at: what is where in global memory.
struct Samples {
  int64_t first;  // slot * samples of a slot + sample: index among all samples
  int present;    // of the tile's
};

__device__ inline float2 load2(const float* p) { return *reinterpret_cast<const float2*>(p); }
// Stores x and y at columns `column` (even) and column + 1 of a row of `columns`.
__device__ inline void store_pair(float* row, int column, int columns, float x, float y) {
  if (columns % 2 == 0) {
    if (column < columns) *reinterpret_cast<float2*>(row + column) = make_float2(x, y);
  } else {
    if (column < columns) row[column] = x;
    if (column + 1 < columns) row[column + 1] = y;
  }
}

__device__ inline void fill_with_zeros(float* shared, int floats) {
  for (int at = 4 * static_cast<int>(threadIdx.x); at < floats; at += 4 * threads) {
    store4(shared + at, 0, 0, 0, 0);
  }
}

// Starts the copy of a tile's rows of `columns`, from their place in [samples, nodes, columns];
// rows of absent samples become zero.
template <int tiles>
__device__ inline void start_rows(float* shared, const Tile<tiles>& shape, const float* rows,
                                  int nodes, int columns, Samples samples) {
  constexpr int lanes = 16 * tiles;  // of a row
  const int present = samples.present * nodes;
  const float* from = rows + samples.first * nodes * columns;
  const int first = static_cast<int>(threadIdx.x) % lanes;
  for (int row = static_cast<int>(threadIdx.x) / lanes; row < shape.rows; row += threads / lanes) {
    float* to = shared + row * shape.stride;
    if (columns % 4 == 0) {
      for (int column = 4 * first; column < columns; column += 4 * lanes) {
        if (row < present) {
          copy_async(to + column, from + row * columns + column);
        } else {
          store4(to + column, 0, 0, 0, 0);
        }
      }
    } else {
      for (int column = first; column < columns; column += lanes) {
        to[column] = row < present ? from[row * columns + column] : 0;
      }
    }
  }
}

// Layer 0: columns 1 .. of the rows, the same in every tile.
template <bool exact, int tiles>
__device__ inline void load_positions(float* shared, const Tile<tiles>& shape, const Layer& layer,
                                      int slot) {
  const float* positions = layer.positions + slot * layer.positions_slot;
  const int columns = layer.columns - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = static_cast<int>(threadIdx.x) / 32; row < shape.rows; row += warps) {
    const float* from = positions + row % layer.nodes * columns;
    for (int column = lane; column < columns; column += 32) {
      shared[row * shape.stride + 1 + column] = operand<exact>(from[column]);
    }
  }
}

// Starts to bring a tile's s, or, for layer 0, its column of data.
template <bool exact, int tiles>
__device__ inline void start_input(float* shared, const Tile<tiles>& shape, const Layer& layer,
                                   int slot, int first_sample, Samples samples) {
  if (layer.rows != nullptr) {
    start_rows(shared, shape, layer.rows, layer.nodes, layer.columns, samples);
  } else {
    const int row = static_cast<int>(threadIdx.x);
    if (row >= shape.rows) return;
    const int sample = row / layer.nodes, node = row % layer.nodes;
    const float* from = layer.inputs + int64_t{slot} * layer.nodes * layer.samples;
    shared[row * shape.stride] =
        sample < samples.present
            ? operand<exact>(from[int64_t{node} * layer.samples + first_sample + sample])
            : 0;
  }
}

}  // namespace posattn::cuda::large
