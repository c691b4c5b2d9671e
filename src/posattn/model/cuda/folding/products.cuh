// Products of 64 x 64 matrices in shared memory by a block of 256 threads, in fp32. A thread owns
// four rows and four adjacent columns of the result: a warp eight columns of all rows, so that a
// narrow result costs little.
#pragma once

#include "posattn/model/cuda/step/tile.cuh"

namespace posattn::cuda {

constexpr int folding_threads = 256;
// Rows are 16 bytes more than a multiple of 128 apart: 16-byte loads down a column do not conflict.
constexpr int matrix_stride = 68;
constexpr int matrix_floats = 64 * matrix_stride;

// Which index of an operand runs along memory: the one summed over, or the result's.
enum class Along { inner, outer };

struct Accumulators {
  float value[4][4] = {};  // [row][column]
};

// The row of the result that is a thread's r-th. With rows of the left operand along the inner
// index, neighbouring threads take neighbouring rows (see matrix_stride).
template <Along left>
__device__ inline int product_row(int r) {
  const int thread = (threadIdx.x & 31) >> 1;
  return left == Along::inner ? thread + 16 * r : 4 * thread + r;
}
// Returns the first of a thread's four columns.
__device__ inline int product_column() { return 8 * (threadIdx.x >> 5) + 4 * (threadIdx.x & 1); }

__device__ inline void load_four(float (&out)[4], const float* p) {
  const float4 four = load4(p);
  out[0] = four.x, out[1] = four.y, out[2] = four.z, out[3] = four.w;
}

// c += X Y with `inner` terms (a multiple of four), for the first `columns` columns. X is stored
// [row][inner] or [inner][row], Y [column][inner] or [inner][column].
template <Along left, Along right>
__device__ inline void add_product(Accumulators& c, const float* x, const float* y, int inner,
                                   int columns) {
  if (8 * static_cast<int>(threadIdx.x >> 5) >= columns) return;
  const int column = product_column();
#pragma unroll 2
  for (int k = 0; k < inner; k += 4) {
    float a[4][4], b[4][4];  // [index along the other one][index along memory]
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      load_four(a[i], left == Along::inner ? x + product_row<left>(i) * matrix_stride + k
                                           : x + (k + i) * matrix_stride + product_row<left>(0));
      load_four(b[i], right == Along::inner ? y + (column + i) * matrix_stride + k
                                            : y + (k + i) * matrix_stride + column);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int row = 0; row < 4; ++row) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          c.value[row][j] += (left == Along::inner ? a[row][i] : a[i][row]) *
                             (right == Along::inner ? b[j][i] : b[i][j]);
        }
      }
    }
  }
}

// c += x y^T
template <Along left>
__device__ inline void add_outer(Accumulators& c, const float* x, const float* y) {
  const int column = product_column();
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const float factor = x[product_row<left>(r)];
#pragma unroll
    for (int j = 0; j < 4; ++j) c.value[r][j] += factor * y[column + j];
  }
}

// Writes the result to shared or global memory: rows below `rows`, columns below `columns`.
template <Along left>
__device__ inline void store_product(const Accumulators& c, float* out, int stride, int rows,
                                     int columns) {
  const int column = product_column();
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    const int row = product_row<left>(r);
    if (row >= rows) continue;
    const float(&v)[4] = c.value[r];
    float* place = out + row * stride + column;
    if (column + 4 <= columns && stride % 4 == 0) {
      store4(place, v[0], v[1], v[2], v[3]);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (column + j < columns) place[j] = v[j];
      }
    }
  }
}
// For a later product: all that was computed.
template <Along left>
__device__ inline void keep_product(const Accumulators& c, float* matrix) {
  store_product<left>(c, matrix, matrix_stride, 64, 64);
}

// Starts the copy of a [rows, columns] matrix into shared memory. One of 64 columns travels
// asynchronously; a narrow one (layer 0) is filled up with zeros to 64 x 64.
__device__ inline void load_matrix(float* matrix, const float* from, int stride, int rows,
                                   int columns) {
  if (columns == 64) {
    for (int i = threadIdx.x; i < 16 * rows; i += folding_threads) {
      const int row = i >> 4, column = 4 * (i & 15);
      copy_async(matrix + row * matrix_stride + column, from + row * stride + column);
    }
    return;
  }
#pragma unroll 4
  for (int i = threadIdx.x; i < 64 * 64; i += folding_threads) {
    const int row = i >> 6, column = i & 63;
    matrix[row * matrix_stride + column] =
        row < rows && column < columns ? from[row * stride + column] : 0.0f;
  }
}
__device__ inline void load_vector(float* vector, const float* from, int size = 64) {
  if (threadIdx.x < 64) {
    vector[threadIdx.x] = static_cast<int>(threadIdx.x) < size ? from[threadIdx.x] : 0.0f;
  }
}
// All copies have arrived, for all threads.
__device__ inline void finish_loads() {
  commit_copies();
  wait_copies<0>();
  __syncthreads();
}

// W x, four threads to a row: each returns the sum for row threadIdx.x / 4. `part` holds the
// thread's quarter of the row: columns 4 (threadIdx.x % 4) + 16 s and the three after it.
struct RowQuarter {
  float4 part[4];
};
__device__ inline RowQuarter row_quarter(const float* matrix, int stride) {
  const float* row = matrix + (threadIdx.x >> 2) * stride + 4 * (threadIdx.x & 3);
  RowQuarter quarter;
#pragma unroll
  for (int s = 0; s < 4; ++s) quarter.part[s] = load4(row + 16 * s);
  return quarter;
}
__device__ inline float row_dot(const RowQuarter& quarter, const float* vector) {
  float sum = 0;
#pragma unroll
  for (int s = 0; s < 4; ++s) {
    const float4 w = quarter.part[s], x = load4(vector + 4 * (threadIdx.x & 3) + 16 * s);
    sum += w.x * x.x + w.y * x.y + w.z * x.z + w.w * x.w;
  }
  sum += __shfl_xor_sync(0xffffffffu, sum, 1);
  return sum + __shfl_xor_sync(0xffffffffu, sum, 2);
}

// W^T x, four threads to a column: the term of a quarter of the rows for column threadIdx.x % 64.
__device__ inline float column_term(const float* matrix, const float* vector) {
  const int column = threadIdx.x & 63, first = 16 * (threadIdx.x >> 6);
  float sum = 0;
#pragma unroll 4
  for (int i = first; i < first + 16; ++i) sum += matrix[i * matrix_stride + column] * vector[i];
  return sum;
}
// The sum of the four terms, in every thread; scratch [256].
__device__ inline float column_total(float term, float* scratch) {
  __syncthreads();
  scratch[threadIdx.x] = term;
  __syncthreads();
  const int column = threadIdx.x & 63;
  return scratch[column] + scratch[column + 64] + scratch[column + 128] + scratch[column + 192];
}

}  // namespace posattn::cuda
