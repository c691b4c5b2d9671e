#include "posattn/kernels/cuda/lanes.cuh"
#include "posattn/kernels/cuda/primitives.cuh"
#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/tokens.h"

namespace posattn::cuda {
namespace {

constexpr int warps = block_threads / 32;

// Without a table, rows with a token become zero. `width` columns at a time.
template <int width>
__global__ void __launch_bounds__(block_threads)
    embed_kernel(int32_t rows, int32_t groups, const int32_t* tokens, Rows<const float> table,
                 Embedding how, Rows<float> y, const SlotStep* steps) {
  using Columns = std::conditional_t<width == 4, float4, float>;
  const int slot = blockIdx.y;
  const unsigned i = blockIdx.x * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= static_cast<unsigned>(rows) * groups) return;
  const int row = static_cast<int>(i / groups), column = static_cast<int>(i % groups) * width;
  const int32_t token = tokens[static_cast<int64_t>(slot) * rows + row];
  if (token < 0 && how != Embedding::alone) return;
  Columns values = {};
  if (token >= 0 && table.data) {
    values = *reinterpret_cast<const Columns*>(table.data + slot * table.slot_stride +
                                               token * table.stride + column);
  }
  float* const to = y.data + slot * y.slot_stride + row * y.stride + column;
  if (how == Embedding::added) {
#pragma unroll
    for (int c = 0; c < width; ++c) reinterpret_cast<float*>(&values)[c] += to[c];
  }
  *reinterpret_cast<Columns*>(to) = values;
}

// The gradient of a small table: a block sums up 64 columns of a run of rows, thread (part, column)
// every fourth row in a table of its own; then it adds the tables in order. Parts are
// [part][vocabulary][columns].
constexpr int64_t most_table_bytes = 96 * 1024, most_row_blocks = 32;
constexpr int table_columns = 64, table_parts = block_threads / table_columns;

__global__ void __launch_bounds__(block_threads)
    small_table_gradient_kernel(int32_t rows, int32_t block_rows, int32_t columns,
                                int32_t vocabulary, const int32_t* tokens, Rows<const float> dy,
                                Rows<float> parts, const SlotStep* steps) {
  const int slot = blockIdx.y;
  if (rests(steps, slot)) return;
  auto* const tables = reinterpret_cast<float*>(dynamic_shared());
  const int own = threadIdx.x % table_columns, part = threadIdx.x / table_columns;
  const int column = static_cast<int>(blockIdx.z) * table_columns + own;
  const int size = vocabulary * table_columns;
  float* const table = tables + part * size + own;
  for (int token = 0; token < vocabulary; ++token) table[token * table_columns] = 0;
  const int begin = static_cast<int>(blockIdx.x) * block_rows;
  const int end = min(rows, begin + block_rows);
  const int32_t* of_slot = tokens + static_cast<int64_t>(slot) * rows;
  const float* from = dy.data + slot * dy.slot_stride + column;
  constexpr int ahead = 8;  // rows that a thread reads before it adds them
#pragma unroll 1
  for (int first = begin + part; first < end; first += ahead * table_parts) {
    int32_t token[ahead];
    float value[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int row = first + i * table_parts;
      token[i] = row < end ? of_slot[row] : -1;
      value[i] = row < end && column < columns ? from[row * dy.stride] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (token[i] >= 0) table[token[i] * table_columns] += value[i];
    }
  }
  __syncthreads();
  if (part != 0 || column >= columns) return;
  float* to = parts.data + slot * parts.slot_stride + blockIdx.x * parts.stride + column;
  for (int token = 0; token < vocabulary; ++token) {
    float sum = 0;
    for (int other = 0; other < table_parts; ++other) {
      sum += tables[other * size + token * table_columns + own];
    }
    to[static_cast<int64_t>(token) * columns] = sum;
  }
}

// A block sums 32 columns of one token's rows: a warp looks at 32 rows, the next at the 32 behind
// them, and so on around; then the warps in order.
__global__ void __launch_bounds__(block_threads)
    embed_gradient_kernel(int64_t rows, int32_t columns, const int32_t* tokens,
                          Rows<const float> dy, Rows<float> dtable, bool accumulate,
                          const SlotStep* steps) {
  __shared__ float partial[warps][32];
  const int slot = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (rests(steps, slot)) return;
  const auto wanted = static_cast<int32_t>(blockIdx.x);
  const int column = static_cast<int>(blockIdx.z) * 32 + lane;
  const float* from = dy.data + slot * dy.slot_stride + column;
  float sum = 0;
  for (int64_t first = warp * 32; first < rows; first += block_threads) {
    const int32_t own = first + lane < rows ? tokens[slot * rows + first + lane] : -1;
    for (int i = 0; i < 32; ++i) {
      const bool adds = __shfl_sync(all_lanes, own, i) == wanted;
      if (adds && column < columns) sum += from[(first + i) * dy.stride];
    }
  }
  partial[warp][lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  for (int other = 1; other < warps; ++other) sum += partial[other][lane];
  float* to = dtable.data + slot * dtable.slot_stride + wanted * dtable.stride + column;
  *to = accumulate ? *to + sum : sum;
}

// The gradient of a table with more tokens than rows: a block sums 256 columns of one token's rows,
// in order, and begins at the first of them; blocks of later ones have nothing to do.
__global__ void __launch_bounds__(block_threads)
    rare_token_gradient_kernel(int32_t rows, int32_t columns, const int32_t* tokens,
                               Rows<const float> dy, Rows<float> dtable, const SlotStep* steps) {
  __shared__ unsigned found[warps];
  const int slot = blockIdx.y, first_row = static_cast<int>(blockIdx.x);
  if (rests(steps, slot)) return;
  const int32_t* of_slot = tokens + static_cast<int64_t>(slot) * rows;
  const int32_t wanted = of_slot[first_row];
  if (wanted < 0) return;
  const int column = static_cast<int>(blockIdx.z) * block_threads + threadIdx.x;
  const float* from = dy.data + slot * dy.slot_stride + column;
  // Which of 256 rows have the token, for all threads.
  const auto find = [&](int first, int end) {
    const int row = first + static_cast<int>(threadIdx.x);
    const unsigned some = __ballot_sync(all_lanes, row < end && of_slot[row] == wanted);
    __syncthreads();  // all have read what was found before
    if (threadIdx.x % 32 == 0) found[threadIdx.x / 32] = some;
    __syncthreads();
  };
  for (int first = 0; first < first_row; first += block_threads) {
    find(first, first_row);
    for (int warp = 0; warp < warps; ++warp) {
      if (found[warp] != 0) return;
    }
  }
  float sum = 0;
  for (int first = first_row; first < rows; first += block_threads) {
    find(first, rows);
    for (int warp = 0; warp < warps; ++warp) {
      for (unsigned left = found[warp]; left != 0; left &= left - 1) {
        const int row = first + 32 * warp + __ffs(static_cast<int>(left)) - 1;
        if (column < columns) sum += from[row * dy.stride];
      }
    }
  }
  if (column < columns) {
    dtable.data[slot * dtable.slot_stride + wanted * dtable.stride + column] += sum;
  }
}

__global__ void __launch_bounds__(block_threads)
    clear_rows_kernel(int64_t rows, int32_t columns, Rows<float> y, const SlotStep* steps) {
  const int slot = blockIdx.y;
  const int64_t i = int64_t{1} * blockIdx.x * block_threads + threadIdx.x;
  if (rests(steps, slot) || i >= rows * columns) return;
  y.data[slot * y.slot_stride + i / columns * y.stride + i % columns] = 0;
}

}  // namespace

void enqueue_embed(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                   Rows<const float> table, Embedding how, Rows<float> y, const SlotStep* steps,
                   cudaStream_t stream) {
  const bool fours = columns % 4 == 0 && in_fours(table) && in_fours(y);
  const int32_t groups = fours ? columns / 4 : columns;
  launch(fours ? embed_kernel<4> : embed_kernel<1>, blocks(rows * groups, block_threads, slots),
         dim3(block_threads), 0, stream, static_cast<int32_t>(rows), groups, tokens, table, how, y,
         steps);
}

void enqueue_embed_gradient(int slots, int64_t rows, int32_t columns, int32_t vocabulary,
                            const int32_t* tokens, Rows<const float> dy, Rows<float> dtable,
                            bool accumulate, const SlotStep* steps, float* workspace,
                            cudaStream_t stream) {
  const int64_t size = int64_t{1} * vocabulary * columns;
  const int64_t table_bytes = int64_t{1} * vocabulary * block_threads * sizeof(float);
  if (table_bytes <= most_table_bytes && dtable.stride == columns &&
      size * most_row_blocks <= product_workspace) {
    static const bool allowed =
        (allow_shared_bytes(small_table_gradient_kernel, most_table_bytes), true);
    static_cast<void>(allowed);
    const int64_t block_rows = ceil_div(ceil_div(rows, most_row_blocks), 32) * 32;
    const int64_t parts = ceil_div(rows, block_rows);
    const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(slots),
                    static_cast<unsigned>(ceil_div(columns, table_columns)));
    launch(small_table_gradient_kernel, grid, dim3(block_threads), table_bytes, stream,
           static_cast<int32_t>(rows), static_cast<int32_t>(block_rows), columns, vocabulary,
           tokens, dy, Rows<float>{workspace, product_workspace, size}, steps);
    return enqueue_sum_parts(slots, static_cast<int32_t>(parts), size,
                             {workspace, product_workspace, size}, dtable.data, dtable.slot_stride,
                             accumulate, steps, stream);
  }
  if (vocabulary > rows) {
    if (!accumulate) {
      launch(clear_rows_kernel, blocks(size, block_threads, slots), dim3(block_threads), 0, stream,
             int64_t{vocabulary}, columns, dtable, steps);
    }
    const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(slots),
                    static_cast<unsigned>(ceil_div(columns, block_threads)));
    return launch(rare_token_gradient_kernel, grid, dim3(block_threads), 0, stream,
                  static_cast<int32_t>(rows), columns, tokens, dy, dtable, steps);
  }
  const dim3 grid(static_cast<unsigned>(vocabulary), static_cast<unsigned>(slots),
                  static_cast<unsigned>(ceil_div(columns, 32)));
  launch(embed_gradient_kernel, grid, dim3(block_threads), 0, stream, rows, columns, tokens, dy,
         dtable, accumulate, steps);
}

void enqueue_clear_embedded(int slots, int64_t rows, int32_t columns, const int32_t* tokens,
                            Rows<float> y, const SlotStep* steps, cudaStream_t stream) {
  enqueue_embed(slots, rows, columns, tokens, {}, Embedding::replacing, y, steps, stream);
}

}  // namespace posattn::cuda
