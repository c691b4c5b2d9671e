// Compiled once per instruction set with POSATTN_ISA naming the table and POSATTN_LANES the vector
// length. No standard library templates here (see cmake/InstructionSets.cmake).
#include <math.h>
#include <stdint.h>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/cpu/vector.h"

namespace posattn {
namespace {

// ---- product ------------------------------------------------------------------------------------
// Accumulators for `rows` x `vectors` of C stay in registers while the inner dimension runs: 6 x 4
// of the 32 registers of AVX-512, 6 x 2 of the 16 of AVX2 and SSE. Wide beats tall (12 x 2): it
// loads less for each multiply-add.
constexpr int block_rows = 6;
constexpr int block_vectors = lanes == 16 ? 4 : 2;

template <int rows, int vectors, bool partial>
inline __attribute__((always_inline)) void micro(int64_t k, const float* a, int64_t row_stride,
                                                 int64_t inner_stride, const float* b, int64_t ldb,
                                                 float* c, int64_t ldc, const Store mode,
                                                 const float* bias, int64_t tail) {
  Vec sum[rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      sum[i][v] = Vec{};
    }
  }
  for (int64_t p = 0; p < k; ++p) {
    Vec row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      row[v] = partial ? load_part(b + p * ldb, tail) : load(b + p * ldb + v * lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vec x = broadcast(a[i * row_stride + p * inner_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      float* out = c + i * ldc + v * lanes;
      Vec result = sum[i][v];
      if (mode == Store::add) {
        result += partial ? load_part(out, tail) : load(out);
      } else if (mode != Store::assign) {
        result += partial ? load_part(bias, tail) : load(bias + v * lanes);
        if (mode == Store::bias_relu) result = result < 0 ? Vec{} : result;  // keeps a NaN
      }
      if (partial) {
        store_part(out, result, tail);
      } else {
        store(out, result);
      }
    }
  }
}

// C's columns in whole vectors of one panel, then what is left of it.
template <int rows>
void row_block(int64_t n, int64_t k, const float* a, int64_t row_stride, int64_t inner_stride,
               const float* b, int64_t ldb, float* c, int64_t ldc, Store mode, const float* bias) {
  if constexpr (rows <= block_rows) {
    if (n == block_vectors * lanes) {
      // A constant mode in each branch: the many short products of a tile feel every test.
      const auto run = [&](const Store constant) __attribute__((always_inline)) {
        micro<rows, block_vectors, false>(k, a, row_stride, inner_stride, b, ldb, c, ldc, constant,
                                          bias, 0);
      };
      switch (mode) {
        case Store::assign:
          return run(Store::assign);
        case Store::add:
          return run(Store::add);
        case Store::bias:
          return run(Store::bias);
        case Store::bias_relu:
          return run(Store::bias_relu);
      }
    }
  }
  int64_t j = 0;
  if constexpr (block_vectors > 2) {
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
      micro<rows, 2, false>(k, a, row_stride, inner_stride, b + j, ldb, c + j, ldc, mode, bias + j,
                            0);
    }
  }
  for (; j + lanes <= n; j += lanes) {
    micro<rows, 1, false>(k, a, row_stride, inner_stride, b + j, ldb, c + j, ldc, mode, bias + j,
                          0);
  }
  if (j < n) {
    micro<rows, 1, true>(k, a, row_stride, inner_stride, b + j, ldb, c + j, ldc, mode, bias + j,
                         n - j);
  }
}

using RowBlock = void (*)(int64_t n, int64_t k, const float* a, int64_t row_stride,
                          int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc,
                          Store mode, const float* bias);
constexpr RowBlock row_blocks[] = {nullptr,      row_block<1>, row_block<2>,  row_block<3>,
                                   row_block<4>, row_block<5>, row_block<6>,  row_block<7>,
                                   row_block<8>, row_block<9>, row_block<10>, row_block<11>,
                                   row_block<12>};
// A panel that is not whole needs more rows for as many independent sums.
constexpr int narrow_rows = 12;

void product_panel(int64_t m, int64_t n, int64_t k, const float* a, int64_t row_stride,
                   int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc,
                   Store mode, const float* bias) {
  const int64_t most = n == block_vectors * lanes ? block_rows : narrow_rows;
  for (int64_t i = 0; i < m; i += most) {
    const int64_t rows = m - i < most ? m - i : most;
    row_blocks[rows](n, k, a + i * row_stride, row_stride, inner_stride, b, ldb, c + i * ldc, ldc,
                     mode, bias);
  }
}

void product(int64_t m, int64_t n, int64_t k, const float* a, int64_t row_stride,
             int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc, Store mode,
             const float* bias) {
  // A panel of B stays in the first-level cache while all rows of A pass by; when C is added to
  // anyway, the inner dimension can be cut so that a panel is small enough.
  constexpr int64_t panel = block_vectors * lanes, most_inner = 96;
  if (!bias) bias = b;  // never read: any row of n floats will do for the offsets
  const int64_t cuts = mode == Store::add ? (k + most_inner - 1) / most_inner : 1;
  for (int64_t cut = 0; cut < cuts; ++cut) {
    const int64_t first = k * cut / cuts, count = k * (cut + 1) / cuts - first;
    for (int64_t j = 0; j < n; j += panel) {
      product_panel(m, n - j < panel ? n - j : panel, count, a + first * inner_stride, row_stride,
                    inner_stride, b + first * ldb + j, ldb, c + j, ldc, mode, bias + j);
    }
  }
}

// ---- node products ------------------------------------------------------------------------------
template <int rows, int columns>
inline __attribute__((always_inline)) void node_block(int64_t samples, int64_t nodes, int64_t width,
                                                      const float* x, int64_t ldx, const float* y,
                                                      int64_t ldy, float* p, int64_t ldp) {
  Vec sum[rows][columns];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) sum[i][j] = Vec{};
  }
  const auto add = [&](auto read) {
    Vec left[rows], right[columns];
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) left[i] = read(x + i * ldx);
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) right[j] = read(y + j * ldy);
#pragma GCC unroll 4
    for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j) sum[i][j] += left[i] * right[j];
    }
  };
  const int64_t whole = width / lanes * lanes, part = width - whole;
  for (int64_t s = 0; s < samples; ++s, x += nodes * ldx, y += nodes * ldy) {
    for (int64_t f = 0; f < whole; f += lanes) add([f](const float* v) { return load(v + f); });
    if (part) add([=](const float* v) { return load_part(v + whole, part); });
  }
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < columns; ++j) p[i * ldp + j] += horizontal_sum(sum[i][j]);
  }
}

void node_products(int64_t samples, int64_t nodes, int64_t width, const float* x, int64_t ldx,
                   const float* y, int64_t ldy, float* p, int64_t ldp) {
  for (int64_t i = 0; i < nodes; i += 3) {
    const int64_t rows = nodes - i < 3 ? nodes - i : 3;
    for (int64_t j = 0; j < nodes; j += 3) {
      const int64_t columns = nodes - j < 3 ? nodes - j : 3;
      float* out = p + i * ldp + j;
      const float* xi = x + i * ldx;
      const float* yj = y + j * ldy;
      if (rows == 3 && columns == 3) {
        node_block<3, 3>(samples, nodes, width, xi, ldx, yj, ldy, out, ldp);
      } else {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t c = 0; c < columns; ++c) {
            node_block<1, 1>(samples, nodes, width, xi + r * ldx, ldx, yj + c * ldy, ldy,
                             out + r * ldp + c, ldp);
          }
        }
      }
    }
  }
}

// ---- softmax ------------------------------------------------------------------------------------
void softmax_rows(int64_t rows, int64_t columns, int64_t ld, float* x) {
  const int64_t whole = columns / lanes * lanes, part = columns - whole;
  for (int64_t row = 0; row < rows; ++row, x += ld) {
    // A NaN is passed over here but not by exp below, so it reaches the loss and is seen.
    Vec largest = load_part_or(x + whole, part, -INFINITY);
    for (int64_t c = 0; c < whole; c += lanes) {
      const Vec v = load(x + c);
      largest = v > largest ? v : largest;
    }
    const float top = horizontal_max(largest);
    Vec sums{}, last{};
    if (part) sums = last = exp_nonpositive(load_part_or(x + whole, part, -INFINITY) - top);
    for (int64_t c = 0; c < whole; c += lanes) {
      const Vec e = exp_nonpositive(load(x + c) - top);
      store(x + c, e);
      sums += e;
    }
    const float scale = 1.0f / horizontal_sum(sums);
    for (int64_t c = 0; c < whole; c += lanes) store(x + c, load(x + c) * scale);
    // A whole vector where there is room: what follows reads it back, and the processor forwards
    // whole stores to loads but not masked ones.
    int64_t done = columns;
    if (part && whole + lanes <= ld) {
      store(x + whole, last * scale);  // the lanes beyond `columns` hold exp(-inf) = 0
      done = whole + lanes;
    } else if (part) {
      store_part(x + whole, last * scale, part);
    }
    for (int64_t t = done; t < ld; ++t) x[t] = 0;
  }
}

void softmax_rows_gradient(int64_t rows, int64_t columns, int64_t ld, const float* a, float* da) {
  for (int64_t row = 0; row < rows; ++row, a += ld, da += ld) {
    Vec dots{};
    int64_t c = 0;
    for (; c + lanes <= columns; c += lanes) dots += load(a + c) * load(da + c);
    if (c < columns) dots += load_part(a + c, columns - c) * load_part(da + c, columns - c);
    const float dot = horizontal_sum(dots);
    for (c = 0; c + lanes <= columns; c += lanes) {
      store(da + c, load(a + c) * (load(da + c) - dot));
    }
    if (c < columns) {
      const Vec part = load_part(a + c, columns - c) * (load_part(da + c, columns - c) - dot);
      if (c + lanes <= ld) {
        store(da + c, part);
      } else {
        store_part(da + c, part, columns - c);
      }
    }
  }
}

// ---- element-wise -------------------------------------------------------------------------------
void relu_gradient(int64_t rows, int64_t columns, const float* y, int64_t ldy, float* dy,
                   int64_t lddy, float* dbias) {
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t part = columns - c;
    if (part >= lanes) {
      Vec sum = load(dbias + c);
      for (int64_t r = 0; r < rows; ++r) {
        const Vec g = load(y + r * ldy + c) > 0 ? load(dy + r * lddy + c) : Vec{};
        store(dy + r * lddy + c, g);
        sum += g;
      }
      store(dbias + c, sum);
    } else {
      Vec sum = load_part(dbias + c, part);
      for (int64_t r = 0; r < rows; ++r) {
        const Vec g =
            load_part(y + r * ldy + c, part) > 0 ? load_part(dy + r * lddy + c, part) : Vec{};
        store_part(dy + r * lddy + c, g, part);
        sum += g;
      }
      store_part(dbias + c, sum, part);
    }
  }
}

void column_sums(int64_t rows, int64_t columns, const float* x, int64_t ldx, float* sums) {
  for (int64_t c = 0; c < columns; c += lanes) {
    const int64_t part = columns - c;
    if (part >= lanes) {
      Vec sum = load(sums + c);
      for (int64_t r = 0; r < rows; ++r) sum += load(x + r * ldx + c);
      store(sums + c, sum);
    } else {
      Vec sum = load_part(sums + c, part);
      for (int64_t r = 0; r < rows; ++r) sum += load_part(x + r * ldx + c, part);
      store_part(sums + c, sum, part);
    }
  }
}

typedef float Four __attribute__((vector_size(16), aligned(4), may_alias));

inline void transpose_4x4(const float* x, int64_t ldx, float* y, int64_t ldy) {
  const auto row = [&](int64_t r) { return *reinterpret_cast<const Four*>(x + r * ldx); };
  const Four a = row(0), b = row(1), c = row(2), d = row(3);
  const Four ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Four ab1 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd0 = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Four cd1 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *reinterpret_cast<Four*>(y) = __builtin_shufflevector(ab0, cd0, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(y + ldy) = __builtin_shufflevector(ab0, cd0, 2, 3, 6, 7);
  *reinterpret_cast<Four*>(y + 2 * ldy) = __builtin_shufflevector(ab1, cd1, 0, 1, 4, 5);
  *reinterpret_cast<Four*>(y + 3 * ldy) = __builtin_shufflevector(ab1, cd1, 2, 3, 6, 7);
}

void transpose(int64_t rows, int64_t columns, const float* x, int64_t ldx, float* y, int64_t ldy) {
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t c = 0; c < whole_columns; c += 4) {
    for (int64_t r = 0; r < whole_rows; r += 4) {
      transpose_4x4(x + r * ldx + c, ldx, y + c * ldy + r, ldy);
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) {
      y[c * ldy + r] = x[r * ldx + c];
    }
  }
}

void sum_parts(int64_t count, int parts, int64_t stride, const float* x, float* sum) {
  for (int64_t i = 0; i < count; i += lanes) {
    const int64_t part = count - i;
    if (part >= lanes) {
      Vec total = load(x + i);
      for (int p = 1; p < parts; ++p) total += load(x + p * stride + i);
      store(sum + i, total);
    } else {
      Vec total = load_part(x + i, part);
      for (int p = 1; p < parts; ++p) total += load_part(x + p * stride + i, part);
      store_part(sum + i, total, part);
    }
  }
}

void adam(const AdamNumbers<float>& n, int64_t count, const float* gradient, float* first,
          float* second, float* weights) {
  for (int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] + n.decay_to_gradient * weights[i];
    const float m = n.beta1 * first[i] + n.rest1 * g;
    const float v = n.beta2 * second[i] + n.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    weights[i] = n.keep * weights[i] -
                 n.step_size * (m / (__builtin_sqrtf(v) / n.root_correction2 + n.epsilon));
  }
}

#if POSATTN_LANES == 16
#define POSATTN_ANY_REGISTER "+v"
#else
#define POSATTN_ANY_REGISTER "+x"
#endif

double multiply_add_peak(int64_t iterations) {
  constexpr int chains = 12;
  Vec value[chains];
#pragma GCC unroll 12
  for (int c = 0; c < chains; ++c) value[c] = broadcast(0.5f);
  const Vec factor = broadcast(0.999f), offset = broadcast(1e-3f);
  for (int64_t i = 0; i < iterations; ++i) {
#pragma GCC unroll 12
    for (int c = 0; c < chains; ++c) {
      value[c] = value[c] * factor + offset;
      asm volatile("" : POSATTN_ANY_REGISTER(value[c]));  // keep every chain
    }
  }
  return static_cast<double>(iterations) * chains * lanes * 2;
}

}  // namespace

extern const TileKernels POSATTN_ISA;
const TileKernels POSATTN_ISA = {
    POSATTN_ISA_NAME, product,   node_products, softmax_rows, softmax_rows_gradient, relu_gradient,
    column_sums,      transpose, sum_parts,     adam,         multiply_add_peak};

}  // namespace posattn
