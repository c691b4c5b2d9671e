// How a product's operands come from global memory into shared memory.
#pragma once

#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/product_index.cuh"

namespace posattn::cuda {

// One operand of a tile of C in shared memory: `extent` rows of A (columns of B) times `depth`,
//   along_depth: [extent][depth + 8]    for operands contiguous along the depth
//   otherwise:   [depth][extent + 4]    for operands contiguous along rows (columns of B)
// Both paddings spread what a warp reads for a fragment, see pair(), over all banks.
//
// What lies beyond the depth's end is zero. What lies beyond the last row or column may be
// anything: it only reaches elements outside of C.
template <int extent_, int depth_, bool along_depth_>
struct OperandTile {
  static constexpr int extent = extent_, depth = depth_;
  static constexpr bool along_depth = along_depth_;
  static constexpr int pitch = along_depth ? depth + 8 : extent + 4;  // of a line
  static constexpr int floats = pitch * (along_depth ? extent : depth);

  __device__ static int place(int i, int k) { return along_depth ? i * pitch + k : k * pitch + i; }
  // Elements (i, k) and (i, k + 1), k even. Lanes t of a fragment take k = 2t and 2t + 1 where the
  // tensor core has t and t + 4: in which order a depth of 8 is summed does not matter, and two
  // neighbours are one read.
  __device__ static float2 pair(const float* tile, int i, int k) {
    const float* first = tile + place(i, k);
    if constexpr (along_depth) {
      return *reinterpret_cast<const float2*>(first);
    } else {
      return make_float2(first[0], first[pitch]);
    }
  }
};

// What a block copies of an operand: elements (first + i, begin + k) with first + i < count and
// begin + k < end, i along `axis` and k along `depth_axis`.
struct OperandPart {
  const float* source;
  const AxisIndex& axis;
  const AxisIndex& depth_axis;
  int first, count, begin, end;
};

// Each of `team` threads copies `chunks` times four elements of a tile: every `lines`-th line at
// one place.
template <class Tile, int team>
struct OperandShare {
  static constexpr int line = (Tile::along_depth ? Tile::depth : Tile::extent) / 4;
  static constexpr int lines = team / line;
  static constexpr int chunks = Tile::extent * Tile::depth / 4 / team;
  static_assert(chunks * 4 * team == Tile::extent * Tile::depth && team % line == 0);

  __device__ static int in_line(int thread) { return thread % line * 4; }
  __device__ static int first_line(int thread) { return thread / line; }
};

// Starts to copy `count` elements, four at most; the rest of four becomes zero.
__device__ inline void copy_four(float* to, const float* from, int count) {
  if (count >= 4) {
    copy_async(to, from);
    return;
  }
#pragma unroll 1
  for (int e = 0; e < 4; ++e) {
    if (e < count) {
      copy_async_part<4>(to + e, from + e, 4);
    } else {
      to[e] = 0;
    }
  }
}

// Copies of four elements at once where every stage lies a fixed distance, `advance`, after the one
// before, and a tile's lines lie a fixed distance apart: no group of lines or of the depth ends
// within a tile. One pointer does.
template <class Tile, int team>
class DirectCopies {
  using Share = OperandShare<Tile, team>;

 public:
  __device__ DirectCopies(const OperandPart& part, int64_t advance, bool /*aligned*/, int thread,
                          float* shared)
      : advance_(advance),
        line_step_(Share::lines * (Tile::along_depth ? part.axis : part.depth_axis).stride) {
    const int in_line = Share::in_line(thread), first_line = Share::first_line(thread);
    const int i = part.first + (Tile::along_depth ? first_line : in_line);
    k_ = Tile::along_depth ? in_line : first_line;
    from_ = part.source + part.axis.offset(i) + part.depth_axis.offset(part.begin + k_);
    to_ = shared + first_line * Tile::pitch + in_line;
    left_ = part.count - i;
  }

  // Starts to copy the next stage, from which on `depth_left` is left; the stage after it goes
  // `step` further in shared memory.
  __device__ void load(int depth_left, int step) {
    float* to = to_;
    const float* from = from_;
    if (depth_left >= Tile::depth && (Tile::along_depth || left_ >= 4)) {
#pragma unroll
      for (int c = 0; c < Share::chunks; ++c) {
        if (!Tile::along_depth || c * Share::lines < left_) {
          copy_async(to + c * Share::lines * Tile::pitch, from);
        }
        from += line_step_;
      }
    } else {
#pragma unroll 1
      for (int c = 0; c < Share::chunks; ++c) {
        const int line = c * Share::lines;
        if (Tile::along_depth) {
          if (line < left_) copy_four(to, from, depth_left - k_);
        } else {
          copy_four(to, from, line + k_ < depth_left ? left_ : 0);
        }
        to += Share::lines * Tile::pitch;
        from += line_step_;
      }
    }
    from_ += advance_;
    to_ += step;
  }

 private:
  int64_t advance_, line_step_;
  const float* from_;  // of the next stage
  float* to_;          // likewise, in shared memory
  int left_;           // rows or columns from the first element on
  int k_;              // of the first element in a stage
};

// Copies for any strides: four elements at once if `aligned`, else element by element. Loops are
// rolled, since this is code of rare operands and small ones.
template <class Tile, int team>
class AnyCopies {
  using Share = OperandShare<Tile, team>;

 public:
  __device__ AnyCopies(const OperandPart& part, int64_t /*advance*/, bool aligned, int thread,
                       float* shared)
      : part_(part), thread_(thread), aligned_(aligned), tile_(shared) {}

  // Starts to copy the next stage.
  __device__ void load(int /*depth_left*/, int step) {
    const int place = Share::in_line(thread_);
#pragma unroll 1
    for (int c = 0; c < Share::chunks; ++c) {
      const int line = Share::first_line(thread_) + c * Share::lines;
      float* to = tile_ + line * Tile::pitch + place;
      const int left = Tile::along_depth ? part_.end - part_.begin : part_.count - part_.first;
      const bool four = aligned_ && place + 4 <= left;
#pragma unroll 1
      for (int e = 0; e < 4; e += four ? 4 : 1) {
        const int i = part_.first + (Tile::along_depth ? line : place + e);
        const int k = part_.begin + (Tile::along_depth ? place + e : line);
        const bool inside = i < part_.count && k < part_.end;
        const float* from = part_.source;
        if (inside) from += part_.axis.offset(i) + part_.depth_axis.offset(k);
        if (four) {
          copy_four(to, from, inside ? 4 : 0);
        } else if (inside) {
          copy_async_part<4>(to + e, from, 4);
        } else {
          to[e] = 0;
        }
      }
    }
    part_.begin += Tile::depth;
    tile_ += step;
  }

 private:
  OperandPart part_;  // from the next stage on
  int thread_;
  bool aligned_;
  float* tile_;  // likewise
};

}  // namespace posattn::cuda
