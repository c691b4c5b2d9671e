// How a product's operands come from global memory into shared memory.
#pragma once

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/product.h"

namespace posattn::cuda {

// One operand of a tile of C: `extent` rows of A (columns of B) times tile_depth, stage after
// stage, copied by `team` threads. In shared memory
//   along_depth: [extent][tile_depth + 8]    for operands contiguous along the depth
//   otherwise:   [tile_depth][extent + 4]    for operands contiguous along rows (columns of B)
// Both paddings spread what a warp reads for a fragment, see pair(), over all banks.
//
// What lies beyond the depth's end becomes zero up to the next multiple of 8, which is as far as
// the products go. What lies beyond the last row or column may be anything: it only reaches
// elements outside of C.
template <int extent, int tile_depth, int team, bool along_depth>
class OperandTile {
 public:
  static constexpr int floats = along_depth ? extent * (tile_depth + 8) : tile_depth * (extent + 4);

  __device__ static int place(int i, int k) {
    return along_depth ? i * (tile_depth + 8) + k : k * (extent + 4) + i;
  }
  // Elements (i, k) and (i, k + 1), k even. Lanes t of a fragment take k = 2t and 2t + 1 where the
  // tensor core has t and t + 4: in which order a depth of 8 is summed does not matter, and two
  // neighbours are one read.
  __device__ static float2 pair(const float* tile, int i, int k) {
    const float* first = tile + place(i, k);
    if constexpr (along_depth) {
      return *reinterpret_cast<const float2*>(first);
    } else {
      return make_float2(first[0], tile[place(i, k + 1)]);
    }
  }

  // Of elements (first + i, k) with first + i < count and k < depth_end. `aligned`: the
  // contiguous side is a whole number of fours, each of which may go as one copy.
  __device__ OperandTile(const float* source, const Axis& axis, const Axis& depth_axis, int thread,
                         int first, int count, int depth_end, bool aligned)
      : axis_(axis),
        depth_axis_(depth_axis),
        in_line_(thread % line * 4),
        first_line_(thread / line),
        first_(first),
        count_(count),
        depth_end_(depth_end),
        aligned_(aligned),
        source_(source) {
    if (!aligned) return;
    if (!along_depth) {
      source_ += axis.offset(first + in_line_);
    } else if (axis.group == 0) {
      source_ += axis.offset(first + first_line_);
    }
  }

  // Starts copying the elements from depth k0 on.
  __device__ void load(float* tile, int k0) const {
    if (!aligned_) {
      load_elements(tile, k0);
    } else if (along_depth) {
      const int left = depth_end_ - k0 - in_line_;
      if (left <= -(in_line_ % 8)) return;  // no product goes there
      const float* from = source_ + (left > 0 ? depth_axis_.offset(k0 + in_line_) : 0);
      const int present = left > 0 ? 16 : 0;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        const int i = first_line_ + c * lines;
        if (first_ + i >= count_) continue;
        const int64_t line_offset =
            axis_.group == 0 ? c * lines * axis_.stride : axis_.offset(first_ + i);
        copy_async_part<16>(tile + place(i, in_line_), from + line_offset, present);
      }
    } else if (first_ + in_line_ < count_) {
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        const int k = first_line_ + c * lines, left = depth_end_ - k0 - k;
        if (left <= -(k % 8)) continue;
        copy_async_part<16>(tile + place(in_line_, k),
                            source_ + (left > 0 ? depth_axis_.offset(k0 + k) : 0),
                            left > 0 ? 16 : 0);
      }
    }
  }

 private:
  // A thread copies `chunks` times four elements, every `lines`-th line of the tile at one place.
  static constexpr int chunks = extent * tile_depth / 4 / team;
  static constexpr int line = (along_depth ? tile_depth : extent) / 4, lines = team / line;
  static_assert(chunks * 4 * team == extent * tile_depth && team % line == 0);

  // Element by element, for any strides.
  __device__ void load_elements(float* tile, int k0) const {
#pragma unroll 1
    for (int c = 0; c < chunks; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int other = first_line_ + c * lines;
        const int i = along_depth ? other : in_line_ + e, k = along_depth ? in_line_ + e : other;
        const int left = depth_end_ - k0 - k;
        if (first_ + i >= count_ || left <= -(k % 8)) continue;
        const int64_t offset = left > 0 ? axis_.offset(first_ + i) + depth_axis_.offset(k0 + k) : 0;
        copy_async_part<4>(tile + place(i, k), source_ + offset, left > 0 ? 4 : 0);
      }
    }
  }

  const Axis& axis_;
  const Axis& depth_axis_;
  int in_line_, first_line_;  // of the thread's first four elements
  int first_, count_, depth_end_;
  bool aligned_;
  const float* source_;  // of the matrix, or of the thread's first line where that saves work
};

}  // namespace posattn::cuda
