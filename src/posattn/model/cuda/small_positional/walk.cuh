// Which tiles a block takes, and a thread's place in its block.
#pragma once

#include <type_traits>

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/model/cuda/small_positional/layer.h"

namespace posattn::cuda::positional {

constexpr int warps = 8;
constexpr int threads = 32 * warps;
constexpr int heads = 2;
constexpr int maps = 1 + heads;

// Stands where only some kernels have something.
struct Nothing {};
template <bool yes, class T>
using Only = std::conditional_t<yes, T, Nothing>;

struct Thread {
  int warp, lane;
  int g, t;         // lane / 4 and lane % 4, as in the fragments of mma_f16
  int block, half;  // the warp's sixteen columns 16 block .., its samples 8 half ..
  __device__ Thread()
      : warp(static_cast<int>(threadIdx.x) >> 5),
        lane(static_cast<int>(threadIdx.x) & 31),
        g(lane >> 2),
        t(lane & 3),
        block(warp & 3),
        half(warp >> 2) {}
  // Accumulators of a thread belong to columns column() (the first two) and column() + 1.
  __device__ int column() const { return 16 * block + 2 * g; }
};

// The model's node and sample that a kernel's stand for.
struct Place {
  int node, sample;
  __device__ Place(const FusedLayer& layer, int kernel_node, int kernel_sample)
      : node(!layer.paired     ? kernel_node
             : kernel_node < 8 ? kernel_node & 3
                               : layer.nodes),
        sample(!layer.paired ? kernel_sample : 2 * kernel_sample + (kernel_node >> 2 & 1)) {}
};
// A_h(i, j) of kernel's nodes; zero where one is absent or they belong to two samples.
__device__ inline float attention_of(const FusedLayer& layer, const float* attention, int h, int i,
                                     int j) {
  const int to = Place(layer, i, 0).node, from = Place(layer, j, 0).node, nodes = layer.nodes;
  const bool together = !layer.paired || i >> 2 == j >> 2;
  return to < nodes && from < nodes && together ? attention[(h * nodes + to) * nodes + from] : 0;
}

// The tiles of a block, without those of slots that rest. Items go up or down: a kernel takes them
// in the opposite order of the kernel before, so that it begins with what that one left in the L2
// cache.
struct TileWalk {
  int left;              // items to go
  int slot, item, tile;  // item and tile: of the slot

  __device__ explicit TileWalk(const FusedLayer& layer) {
    const int begin = static_cast<int>(blockIdx.x) * layer.items_per_block;
    const int end = min(begin + layer.items_per_block, layer.slots * layer.items);
    const int first = layer.descending ? end - 1 : begin;
    left = end - begin;
    slot = first / layer.items;
    item = first - slot * layer.items;
    skip_resting(layer);
    tile = item * layer.tiles_per_item;
  }
  __device__ bool done() const { return left <= 0; }
  __device__ bool ends_item(const FusedLayer& layer) const {
    return tile + 1 == layer.tiles || tile + 1 == (item + 1) * layer.tiles_per_item;
  }
  __device__ void advance(const FusedLayer& layer) {
    if (!ends_item(layer)) {
      ++tile;
      return;
    }
    --left;
    item += layer.descending ? -1 : 1;
    if (item == layer.items || item < 0) {
      next_slot(layer);
      skip_resting(layer);
    }
    tile = item * layer.tiles_per_item;
  }
  __device__ int64_t tile_index(const FusedLayer& layer) const {
    return int64_t{1} * slot * layer.tiles + tile;
  }
  __device__ int64_t item_index(const FusedLayer& layer) const {
    return int64_t{1} * slot * layer.items + item;
  }

 private:
  __device__ void next_slot(const FusedLayer& layer) {
    slot += layer.descending ? -1 : 1;
    item = layer.descending ? layer.items - 1 : 0;
  }
  __device__ void skip_resting(const FusedLayer& layer) {
    while (left > 0 && layer.steps[slot].samples == 0) {
      left -= layer.descending ? item + 1 : layer.items - item;
      next_slot(layer);
    }
  }
};

__device__ inline float power_of_two(int exponent) {
  return __uint_as_float(static_cast<uint32_t>(127 + exponent) << 23);
}

}  // namespace posattn::cuda::positional
