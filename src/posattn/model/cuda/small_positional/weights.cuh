// Keeps a slot's maps of a layer (M_0, M_1, M_2) in shared memory, as left operands of the tensor
// core.
#pragma once

#include "posattn/model/cuda/small_positional/tile.cuh"

namespace posattn::cuda::positional {

// Left operands of a warp's sixteen columns: row g stands for column 16 block + 2 g, row g + 8 for
// the one after it; k = 2t, 2t + 1, 2t + 8, 2t + 9 of step 2 i + j for the four columns from
// 32 i + 8 t + 4 j on.
template <bool exact, int count = maps>
struct MapOperands {
  Left<exact> left[count][4];
};

template <bool exact, int count = maps>
struct alignas(16) Weights {
  static constexpr int planes = exact ? 2 : 1;
  uint4 operands[planes][count][4][4][32];  // [part][map][step][block][lane]
  float sums[warps], constants[warps];      // largest: sums of magnitudes, constants
  // The largest sum of magnitudes along a row of the scaled maps, |c|, and the maps' exponent.
  struct Bounds {
    float row, constant;
    int exponent;
  };

  // All warps together; two barriers inside, one must follow. `folded`: M(out, in) of each map.
  // W(n, k) is M(n, k), or, transposed, M(k, n). Constants: so many vectors one after the other.
  template <bool transposed, int constant_vectors = 1>
  __device__ Bounds load(const float* folded, const float* constant, const Thread& self) {
    const int row = self.column(), k = 32 * self.half + 8 * self.t;
    float w[count][2][8];
    float sum[2] = {};
#pragma unroll
    for (int m = 0; m < count; ++m) {
      const float* map = folded + m * columns * columns;
      if constexpr (transposed) {
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const float2 two = *reinterpret_cast<const float2*>(map + (k + i) * columns + row);
          w[m][0][i] = two.x, w[m][1][i] = two.y;
        }
      } else {
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
          const float4 four =
              *reinterpret_cast<const float4*>(map + (row + i / 8) * columns + k + i % 8);
          float* to = &w[m][i / 8][i % 8];
          to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
        }
      }
#pragma unroll
      for (int i = 0; i < 16; ++i) sum[i / 8] += fabsf(w[m][i / 8][i % 8]);
    }
    float most = 0;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 1);
      sum[i] += __shfl_xor_sync(0xffffffffu, sum[i], 2);
      most = fmaxf(most, sum[i]);
    }
    const uint32_t largest = warp_maximum(__float_as_uint(most));
    float most_constant = 0;
#pragma unroll
    for (int i = 0; i < constant_vectors; ++i) {
      const float2 c = *reinterpret_cast<const float2*>(constant + i * columns + row);
      most_constant = fmaxf(most_constant, fmaxf(fabsf(c.x), fabsf(c.y)));
    }
    const uint32_t largest_constant = warp_maximum(__float_as_uint(most_constant));
    __syncthreads();  // all are done with the slot before
    if (self.lane == 0) {
      sums[self.warp] = __uint_as_float(largest);
      constants[self.warp] = __uint_as_float(largest_constant);
    }
    __syncthreads();
    Bounds out = bounds();
    const float up = power_of_two(out.exponent);
#pragma unroll
    for (int m = 0; m < count; ++m) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        Pair<exact> a[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* x = &w[m][i & 1][4 * j + (i & 2)];
          a[i] = pair_of<exact>(x[0] * up, x[1] * up);
        }
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          operands[p][m][2 * self.half + j][self.block][self.lane] =
              make_uint4(a[0].part[p], a[1].part[p], a[2].part[p], a[3].part[p]);
        }
      }
    }
    return out;
  }

  __device__ MapOperands<exact, count> of(const Thread& self) const {
    MapOperands<exact, count> out;
#pragma unroll
    for (int m = 0; m < count; ++m) {
#pragma unroll
      for (int step = 0; step < 4; ++step) {
#pragma unroll
        for (int p = 0; p < planes; ++p) {
          const uint4 four = operands[p][m][step][self.block][self.lane];
          uint32_t(&to)[4] = out.left[m][step].part[p];
          to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
        }
      }
    }
    return out;
  }

 private:
  // Each half of the warps has seen half of every row.
  __device__ Bounds bounds() const {
    float row[2] = {}, constant = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      row[w >> 2] = fmaxf(row[w >> 2], sums[w]);
      constant = fmaxf(constant, constants[w]);
    }
    const float sum = row[0] + row[1];
    const int exponent = clamped(6 - exponent_of(sum), most_exponent);
    return {sum * power_of_two(exponent), constant, exponent};
  }
};

}  // namespace posattn::cuda::positional
