// A tile of 16 samples x 9 nodes x 64 columns as halves (fp16), times a power of two; for fp32 a
// second plane holds the rest that the first leaves, so that 21 bits and more are kept. Ten bits
// are tf32's. One layout serves shared and global memory. Rows lie in 18 *row tiles* of eight:
// number s < 16 has nodes 0 to 7 of sample s, 16 and 17 have node 8 of samples 0 to 7 and 8 to 15.
//
// Maps are the left operand, out^T = M rows^T, so that accumulators of a row tile are
// (column, node of a sample). As halves they are the left operand of the next product, over the
// nodes: mixing. So a warp has sixteen columns of all maps for eight samples. A row's chunks of
// sixteen bytes are swizzled, so that
//   - 16-byte loads of chunks t and 4 + t of row g are right operands over 32 columns each,
//   - load_matrices of eight rows, transposed, gives operands over the rows (weights' gradients)
// without bank conflicts.
//
// Powers of two: stored numbers are below 2^8, as a bound promises before they are computed, and
// maps have rows whose magnitudes add up to less than 2^7. So a product is below 2^15 and may
// become halves as it is; attention, at most one, has no scale.
#pragma once

#include "posattn/model/cuda/small_positional/walk.cuh"

namespace posattn::cuda::positional {

constexpr int columns = 64;
constexpr int row_tiles = 18;
constexpr int tile_rows = 8 * row_tiles;
constexpr int row_words = columns / 2;
constexpr int row_tile_words = 8 * row_words;
constexpr int plane_words = row_tiles * row_tile_words;

__host__ __device__ constexpr int sample_of_row(int row) {
  return row < 128 ? row >> 3 : row - 128;
}
__host__ __device__ constexpr int node_of_row(int row) { return row < 128 ? row & 7 : 8; }
__host__ __device__ constexpr int row_of(int sample, int node) {
  return node < 8 ? 8 * sample + node : 128 + sample;
}

// The bits of row % 8 in reverse give the order of the eight chunks of a row.
__device__ inline int swizzle(int row) { return ((row & 1) << 2) | (row & 2) | ((row >> 2) & 1); }
__device__ inline int word_of(int row, int chunk) {
  return row * row_words + ((chunk ^ swizzle(row)) << 2);
}

// Which numbers halves stand for: stored = number x 2^exponent, |stored| <= largest.
struct Range {
  int exponent;
  float largest;
};

__device__ inline int clamped(int x, int limit) { return min(max(x, -limit), limit); }
__device__ inline int exponent_of(float x) {
  return static_cast<int>(__float_as_uint(x) >> 23 & 255u) - 127;
}
constexpr int most_exponent = 60;  // the sum of two is still that of a float

// How accumulators (number x 2^exponent, up to `bound`) become numbers below 2^8.
struct Narrowing {
  int exponent;
  float factor;
  __device__ Narrowing(int exponent_before, float bound)
      : exponent(clamped(exponent_before + 7 - exponent_of(bound), most_exponent)),
        factor(power_of_two(clamped(exponent - exponent_before, 2 * most_exponent))) {}
};

template <bool exact>
struct alignas(16) Tile {
  static constexpr int planes = exact ? 2 : 1;
  uint32_t words[planes][plane_words];
  int exponent;
  uint32_t unused[3];
  uint32_t largest[warps];  // as bits: of what each warp has stored

  __device__ Range range() const {
    uint32_t most = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) most = max(most, largest[w]);
    return {exponent, __uint_as_float(most)};
  }
  __device__ void set_range(int stored_exponent, float most, const Thread& self) {
    const uint32_t bits = warp_maximum(__float_as_uint(most));
    if (self.lane == 0) largest[self.warp] = bits;
    if (threadIdx.x == 0) exponent = stored_exponent;
  }

  // Starts the copy of a tile, of the block together.
  __device__ void start_copy(const Tile* from) {
    constexpr int chunks = sizeof(Tile) / 16;
    auto* to = reinterpret_cast<char*>(this) + 16 * threadIdx.x;
    const auto* source = reinterpret_cast<const char*>(from) + 16 * threadIdx.x;
#pragma unroll
    for (int i = 0; i < (chunks + threads - 1) / threads; ++i) {
      if ((i + 1) * threads <= chunks || i * threads + static_cast<int>(threadIdx.x) < chunks) {
        copy_async(to + i * threads * 16, source + i * threads * 16);
      }
    }
  }
};

// Halves of two neighbours, and what they leave.
template <bool exact>
struct Pair {
  uint32_t part[exact ? 2 : 1];
};
template <bool exact>
__device__ inline Pair<exact> pair_of(float x, float y) {
  Pair<exact> out;
  out.part[0] = pack_halves(x, y);
  if constexpr (exact) {
    const float2 rounded = unpack_halves(out.part[0]);
    out.part[1] = pack_halves(x - rounded.x, y - rounded.y);
  }
  return out;
}

// Left and Right hold operands of m16n8k16: [part][register].
template <bool exact>
struct Left {
  uint32_t part[exact ? 2 : 1][4];
};
template <bool exact>
struct Right {
  uint32_t part[exact ? 2 : 1][2];
};

template <bool exact>
constexpr int terms = exact ? 3 : 1;
// Which parts the term-th product takes: for fp32 low x high, high x low, high x high.
template <bool exact>
__device__ constexpr int left_part(int term) {
  return exact && term == 0 ? 1 : 0;
}
template <bool exact>
__device__ constexpr int right_part(int term) {
  return exact && term == 1 ? 1 : 0;
}
template <bool exact>
__device__ inline void multiply_term(float (&c)[4], const Left<exact>& a, const Right<exact>& b,
                                     int term) {
  const uint32_t(&x)[4] = a.part[left_part<exact>(term)];
  const uint32_t(&y)[2] = b.part[right_part<exact>(term)];
  mma_f16(c, x[0], x[1], x[2], x[3], y[0], y[1]);
}
template <bool exact>
__device__ inline void multiply(float (&c)[4], const Left<exact>& a, const Right<exact>& b) {
#pragma unroll
  for (int term = 0; term < terms<exact>; ++term) multiply_term<exact>(c, a, b, term);
}

// Where a thread's two pairs of a row tile lie: columns column() and column() + 1 of nodes 2t and
// 2t + 1.
struct OwnPlaces {
  int even, odd;
  __device__ explicit OwnPlaces(const Thread& self)
      : even(word_of(2 * self.t, 2 * self.block + (self.g >> 2)) + (self.g & 3)),
        odd((even ^ 16) + row_words) {}
};
template <bool exact>
__device__ inline void store_pair(uint32_t* place, float x, float y) {
  const Pair<exact> pair = pair_of<exact>(x, y);
#pragma unroll
  for (int p = 0; p < (exact ? 2 : 1); ++p) place[p * plane_words] = pair.part[p];
}
// Stores accumulators of a row tile, c0 and c1 of the first column, c2 and c3 of the second.
template <bool exact>
__device__ inline void store_own(uint32_t* row_tile, const OwnPlaces& own, const float (&c)[4]) {
  store_pair<exact>(row_tile + own.even, c[0], c[2]);
  store_pair<exact>(row_tile + own.odd, c[1], c[3]);
}

}  // namespace posattn::cuda::positional
