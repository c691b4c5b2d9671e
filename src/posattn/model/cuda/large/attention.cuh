// Attention of a tile: mixing the nodes of each sample, products of a sample's rows with its rows
// (scores, and gradients of attention), softmax and its gradient.
#pragma once

#include <cmath>
#include <type_traits>

#include "posattn/model/cuda/large/tile.cuh"

namespace posattn::cuda::large {

// Most eights of nodes in a warp's share of a product.
constexpr int most_shared_tiles = 5;

// body(integral_constant count), so that loops over a share unroll. 1 <= count <= 5.
template <class Body>
__device__ inline void with_count(int count, Body body) {
  switch (count) {
    case 1:
      body(std::integral_constant<int, 1>());
      break;
    case 2:
      body(std::integral_constant<int, 2>());
      break;
    case 3:
      body(std::integral_constant<int, 3>());
      break;
    case 4:
      body(std::integral_constant<int, 4>());
      break;
    default:
      body(std::integral_constant<int, 5>());
      break;
  }
}

// One warp's share of mix(): `count` eights of nodes from `tile` on and sixteen columns. The
// product is (to)^T = (from)^T A^T, since nodes then need padding to eight only. Within eight the
// nodes are taken in the order 0, 4, 1, 5, ...: a lane's sums then belong to nodes t and t + 4 and
// to columns 2g and 2g + 1, which it stores without bank conflicts.
template <bool exact, int count, int tiles>
__device__ inline void mix_share(float* to, const float* from, const float* attention,
                                 bool transposed, const Tile<tiles>& shape, int nodes, int column,
                                 int columns, int tile, float* sums, int lane) {
  const int g = lane >> 2, t = lane & 3, node = (g >> 1) + 4 * (g & 1);
  const int along_depth = transposed ? shape.attention_stride : 1;
  const int along_nodes = transposed ? 1 : shape.attention_stride;
  const float* coefficients = attention + (8 * tile + node) * along_nodes + t * along_depth;
  const float* place = from + t * shape.stride + column + 2 * g;
  float c[count][4] = {};
  float(*pointers[count])[4];
#pragma unroll
  for (int q = 0; q < count; ++q) pointers[q] = &c[q];
  float of_attention[count] = {};
#pragma unroll 1
  for (int k = 0; k < nodes; k += 8) {
    const float2 low = load2(place + k * shape.stride);
    const float2 high = load2(place + (k + 4) * shape.stride);
    float2 b[count];
#pragma unroll
    for (int q = 0; q < count; ++q) {
      const float* pair = coefficients + 8 * q * along_nodes + k * along_depth;
      b[q] = make_float2(pair[0], pair[4 * along_depth]);
      if (sums != nullptr) of_attention[q] += b[q].x + b[q].y;
    }
    multiply<exact, count>(pointers, make_float4(low.x, low.y, high.x, high.y), b);
  }
  float* stored = to + column + 2 * g;
#pragma unroll
  for (int q = 0; q < count; ++q) {
    const int first = 8 * (tile + q) + t;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = first + 4 * half;
      if (i >= nodes || column + 2 * g >= columns) continue;
      *reinterpret_cast<float2*>(stored + i * shape.stride) =
          make_float2(operand<exact>(c[q][half]), operand<exact>(c[q][half + 2]));
    }
    if (sums != nullptr) {
      float sum = of_attention[q];
      sum += __shfl_xor_sync(0xffffffffu, sum, 1);
      sum += __shfl_xor_sync(0xffffffffu, sum, 2);
      if (t == 0 && 8 * (tile + q) + node < nodes) sums[8 * (tile + q) + node] = sum;
    }
  }
}

// to = A from (transposed: A^T from) for every sample; A of sample i is the i-th matrix, or the
// first one for all (matrix_floats = 0). Where `sums` is given, it gets, per row of `to`, the sum
// of the coefficients.
template <bool exact, int tiles>
__device__ inline void mix(float* to, const float* from, const float* attention, int matrix_floats,
                           bool transposed, const Tile<tiles>& shape, int nodes, int columns,
                           float* sums, int warp, int lane) {
  const int padded = padded_to_8(columns);
  const int parts = (shape.node_tiles + shape.mixed_tiles - 1) / shape.mixed_tiles;
  const int sixteens = (columns + 15) / 16;
  for (int share = warp; share < shape.samples * parts * sixteens; share += warps) {
    const int sample = share / (parts * sixteens), rest = share - sample * parts * sixteens;
    const int sixteen = rest / parts, tile = (rest - sixteen * parts) * shape.mixed_tiles;
    const int left = shape.node_tiles - tile;
    const int offset = sample * nodes * shape.stride;
    with_count(left < shape.mixed_tiles ? left : shape.mixed_tiles, [&](auto count) {
      mix_share<exact, count.value>(
          to + offset, from + offset, attention + sample * matrix_floats, transposed, shape, nodes,
          16 * sixteen, padded, tile,
          sums != nullptr && sixteen == 0 ? sums + sample * nodes : nullptr, lane);
    });
  }
}

// One warp's share of dot_rows(): sixteen rows i of x from `first_row` on with `count` eights of
// rows j of y, summed over `samples` samples.
template <bool exact, int count, int tiles>
__device__ inline void dot_share(float (&c)[count][4], const float* x, const float* y,
                                 const Tile<tiles>& shape, int nodes, int samples, int columns,
                                 int first_row, int tile, int lane) {
  const int g = lane >> 2, t = lane & 3;
  // Rows behind the last node are not used: any will do.
  const int low = (first_row + g < nodes ? first_row + g : nodes - 1) * shape.stride + 2 * t;
  const int high =
      (first_row + g + 8 < nodes ? first_row + g + 8 : nodes - 1) * shape.stride + 2 * t;
  // Two sums, so that products need not wait for those before.
  float other[count][4] = {};
  float(*pointers[2][count])[4];
#pragma unroll
  for (int q = 0; q < count; ++q) {
    pointers[0][q] = &c[q];
    pointers[1][q] = &other[q];
  }
#pragma unroll 1
  for (int sample = 0; sample < samples; ++sample) {
    const float* place = x + sample * nodes * shape.stride;
    const float* columns_of_y = y + (sample * nodes + 8 * tile + g) * shape.stride + 2 * t;
#pragma unroll 1
    for (int first = 0; first < columns; first += 16) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int k = first + 8 * half;
        if (k >= columns) break;
        const float2 one = load2(place + low + k), two = load2(place + high + k);
        float2 b[count];
#pragma unroll
        for (int q = 0; q < count; ++q) b[q] = load2(columns_of_y + 8 * q * shape.stride + k);
        multiply<exact, count>(pointers[half], make_float4(one.x, two.x, one.y, two.y), b);
      }
    }
  }
#pragma unroll
  for (int q = 0; q < count; ++q) {
#pragma unroll
    for (int e = 0; e < 4; ++e) c[q][e] += other[q][e];
  }
}

// store(sample, i, j, x_i . y_j + start(sample, i, j)) over `columns` columns for all i and j, for
// every sample, or, with over_samples, once for the sum over the samples (sample = 0). What start
// reads has the time of the products to arrive.
template <bool exact, bool over_samples, int tiles, class Start, class Store>
__device__ inline void dot_rows(const float* x, const float* y, const Tile<tiles>& shape, int nodes,
                                int columns, int warp, int lane, Start start, Store store) {
  const int g = lane >> 2, t = lane & 3;
  const int parts = (shape.node_tiles + shape.dotted_tiles - 1) / shape.dotted_tiles;
  const int sixteens = (nodes + 15) / 16;
  const int shares = (over_samples ? 1 : shape.samples) * sixteens * parts;
  for (int share = warp; share < shares; share += warps) {
    const int sample = share / (sixteens * parts), rest = share - sample * sixteens * parts;
    const int sixteen = rest / parts, tile = (rest - sixteen * parts) * shape.dotted_tiles;
    const int left = shape.node_tiles - tile;
    const int offset = sample * nodes * shape.stride;
    with_count(left < shape.dotted_tiles ? left : shape.dotted_tiles, [&](auto count) {
      const auto for_sums = [&](auto body) {
#pragma unroll
        for (int q = 0; q < count.value; ++q) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int i = 16 * sixteen + g + 8 * (e >> 1), j = 8 * (tile + q) + 2 * t + (e & 1);
            if (i < nodes && j < nodes) body(q, e, i, j);
          }
        }
      };
      float c[count.value][4] = {}, old[count.value][4] = {};
      for_sums([&](int q, int e, int i, int j) { old[q][e] = start(sample, i, j); });
      dot_share<exact, count.value>(c, x + offset, y + offset, shape, nodes,
                                    over_samples ? shape.samples : 1, columns, 16 * sixteen, tile,
                                    lane);
      for_sums([&](int q, int e, int i, int j) { store(sample, i, j, old[q][e] + c[q][e]); });
    });
  }
}
struct StartAtZero {
  __device__ float operator()(int, int, int) const { return 0; }
};

// Eight lanes take a row of coefficients: lane l has j = l, l + 8, ...
constexpr int row_lanes = 8;
constexpr int lane_coefficients = 9;

__device__ inline float sum_of_row(float x) {
#pragma unroll
  for (int other = 1; other < row_lanes; other *= 2) x += __shfl_xor_sync(0xffffffffu, x, other);
  return x;
}

// body(sample, i, l, exists) for every row of the tile's attention; all lanes call it together,
// those without a row too, which must not touch the tile.
template <class Body>
__device__ inline void for_attention_rows(const TileShape& shape, int nodes, Body body) {
  const int thread = static_cast<int>(threadIdx.x);
  for (int first = 0; first < shape.rows; first += threads / row_lanes) {
    const int row = first + thread / row_lanes;
    const bool exists = row < shape.rows;
    const int sample = exists ? row / nodes : 0;
    body(sample, exists ? row - sample * nodes : 0, thread % row_lanes, exists);
  }
}

// Softmax of the scores over the nodes that are present; `kept` gets the rows of present samples.
template <bool exact>
__device__ inline void softmax_rows(float* attention, const TileShape& shape, const Layer& layer,
                                    int present_nodes, float* kept, int present_samples) {
  const int nodes = layer.nodes;
  for_attention_rows(shape, nodes, [&](int sample, int i, int l, bool exists) {
    float* row = attention + sample * shape.attention_floats + i * shape.attention_stride;
    float x[lane_coefficients];
    float most = -INFINITY;
#pragma unroll
    for (int e = 0; e < lane_coefficients; ++e) {
      const int j = l + row_lanes * e;
      const bool heard = exists && j < nodes && (j < present_nodes || j >= layer.real_nodes);
      x[e] = heard ? row[j] : -INFINITY;
      most = fmaxf(most, x[e]);
    }
#pragma unroll
    for (int other = 1; other < row_lanes; other *= 2) {
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, other));
    }
    float sum = 0;
#pragma unroll
    for (int e = 0; e < lane_coefficients; ++e) {
      x[e] = expf(x[e] - most);
      sum += x[e];
    }
    const float scale = 1 / sum_of_row(sum);
    if (!exists) return;
    float* to = kept + int64_t{sample} * layer.heads * nodes * nodes + i * nodes;
#pragma unroll
    for (int e = 0; e < lane_coefficients; ++e) {
      const int j = l + row_lanes * e;
      if (j >= nodes) continue;
      const float a = operand<exact>(x[e] * scale);
      row[j] = a;
      if (sample < present_samples) to[j] = a;
    }
  });
}

// Starts to bring the transposes of the kept coefficients of one head; zero for absent samples.
__device__ inline void start_kept(float* attention, const TileShape& shape, const Layer& layer,
                                  const float* kept, int present_samples) {
  const int nodes = layer.nodes;
  for_attention_rows(shape, nodes, [&](int sample, int i, int l, bool exists) {
    if (!exists) return;
    float* column = attention + sample * shape.attention_floats + i;
    const float* from = kept + int64_t{sample} * layer.heads * nodes * nodes + i * nodes;
#pragma unroll
    for (int e = 0; e < lane_coefficients; ++e) {
      const int j = l + row_lanes * e;
      if (j >= nodes) continue;
      if (sample < present_samples) {
        copy_async_part<4>(column + j * shape.attention_stride, from + j, 4);
      } else {
        column[j * shape.attention_stride] = 0;
      }
    }
  });
}

// From the gradient of the coefficients that of the scores, in place: A (dA - sum_j A dA).
// `attention` holds the transposes of A.
template <bool exact>
__device__ inline void softmax_gradient(float* gradient, const float* attention,
                                        const TileShape& shape, int nodes) {
  for_attention_rows(shape, nodes, [&](int sample, int i, int l, bool exists) {
    const float* column = attention + sample * shape.attention_floats + i;
    float* row = gradient + sample * shape.attention_floats + i * shape.attention_stride;
    float a[lane_coefficients], da[lane_coefficients];
    float sum = 0;
#pragma unroll
    for (int e = 0; e < lane_coefficients; ++e) {
      const int j = l + row_lanes * e;
      a[e] = exists && j < nodes ? column[j * shape.attention_stride] : 0;
      da[e] = exists && j < nodes ? row[j] : 0;
      sum += a[e] * da[e];
    }
    sum = sum_of_row(sum);
    if (!exists) return;
#pragma unroll
    for (int e = 0; e < lane_coefficients; ++e) {
      const int j = l + row_lanes * e;
      if (j < nodes) row[j] = operand<exact>(a[e] * (da[e] - sum));
    }
  });
}

// Attention from positions, or its transposes: all heads, once per block.
template <bool exact, bool transposed>
__device__ inline void load_attention(float* attention, const TileShape& shape, const float* from,
                                      int heads, int nodes) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int row = static_cast<int>(threadIdx.x) / 32; row < heads * nodes; row += warps) {
    const int head = row / nodes, i = row - head * nodes;
    float* to = attention + head * shape.attention_floats;
    for (int j = lane; j < nodes; j += 32) {
      const int place =
          transposed ? j * shape.attention_stride + i : i * shape.attention_stride + j;
      to[place] = operand<exact>(from[row * nodes + j]);
    }
  }
}

}  // namespace posattn::cuda::large
