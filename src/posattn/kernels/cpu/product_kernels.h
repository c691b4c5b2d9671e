// Products of tile_kernels.h, a part of isa_kernels.cc.
#pragma once

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

// `partial`: of the last vector only `tail` columns are C's. B is read by whole vectors as long as
// what they read behind a row is still B, which spares a masked load for each row.
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
  const auto add = [&](int64_t p, const bool masked) __attribute__((always_inline)) {
    Vec row[vectors];
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const float* from = b + p * ldb + v * lanes;
      row[v] = masked && v + 1 == vectors ? load_part(from, tail) : load(from);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      const Vec x = broadcast(a[i * row_stride + p * inner_stride]);
#pragma GCC unroll 4
      for (int v = 0; v < vectors; ++v) sum[i][v] += x * row[v];
    }
  };
  const int64_t whole = partial ? k - (lanes - tail + ldb - 1) / ldb : k;
  int64_t p = 0;
  for (; p < whole; ++p) add(p, false);
  for (; partial && p < k; ++p) add(p, true);
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (int v = 0; v < vectors; ++v) {
      const bool masked = partial && v + 1 == vectors;
      float* out = c + i * ldc + v * lanes;
      Vec result = sum[i][v];
      if (mode == Store::add) {
        result += masked ? load_part(out, tail) : load(out);
      } else if (mode == Store::times) {
        const float* factor = bias + i * ldc + v * lanes;
        result *= masked ? load_part(factor, tail) : load(factor);
      } else if (mode != Store::assign) {
        result += masked ? load_part(bias + v * lanes, tail) : load(bias + v * lanes);
        if (mode == Store::bias_relu) result = result < 0 ? Vec{} : result;  // keeps a NaN
      }
      if (masked) {
        store_part(out, result, tail);
      } else {
        store(out, result);
      }
    }
  }
}

// run(mode), where panels are wide with a constant mode in each branch: the many short products of
// a tile feel every test.
template <int vectors, class Run>
inline __attribute__((always_inline)) void with_constant(Store mode, const Run& run) {
  if constexpr (vectors < block_vectors) return run(mode);
  switch (mode) {
    case Store::assign:
      return run(Store::assign);
    case Store::add:
      return run(Store::add);
    case Store::bias:
      return run(Store::bias);
    case Store::bias_relu:
      return run(Store::bias_relu);
    case Store::times:
      return run(Store::times);
  }
}

// Rows of C in one panel of `vectors` vectors, the last of them perhaps not whole.
template <int rows, int vectors>
void row_block(int64_t n, int64_t k, const float* a, int64_t row_stride, int64_t inner_stride,
               const float* b, int64_t ldb, float* c, int64_t ldc, Store mode, const float* bias) {
  if (n < vectors * lanes) {
    return micro<rows, vectors, true>(k, a, row_stride, inner_stride, b, ldb, c, ldc, mode, bias,
                                      n - (vectors - 1) * lanes);
  }
  const auto run = [&](const Store constant) __attribute__((always_inline)) {
    micro<rows, vectors, false>(k, a, row_stride, inner_stride, b, ldb, c, ldc, constant, bias, 0);
  };
  with_constant<vectors>(mode, run);
}

// A narrow panel needs more rows for as many independent sums.
template <int vectors>
constexpr int most_rows = 2 * vectors <= block_vectors ? 2 * block_rows : block_rows;

using RowBlock = void (*)(int64_t n, int64_t k, const float* a, int64_t row_stride,
                          int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc,
                          Store mode, const float* bias);
template <int rows, int vectors>
constexpr RowBlock block_of = row_block<(rows <= most_rows<vectors> ? rows : 1), vectors>;
template <int vectors>
constexpr RowBlock row_blocks[] = {nullptr,
                                   block_of<1, vectors>,
                                   block_of<2, vectors>,
                                   block_of<3, vectors>,
                                   block_of<4, vectors>,
                                   block_of<5, vectors>,
                                   block_of<6, vectors>,
                                   block_of<7, vectors>,
                                   block_of<8, vectors>,
                                   block_of<9, vectors>,
                                   block_of<10, vectors>,
                                   block_of<11, vectors>,
                                   block_of<12, vectors>};

template <int vectors>
void product_panel(int64_t m, int64_t n, int64_t k, const float* a, int64_t row_stride,
                   int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc,
                   Store mode, const float* bias) {
  // Blocks of `most` rows; the last two share evenly what is left, since few rows have too few
  // sums to hide how long each addition takes.
  constexpr int64_t most = most_rows<vectors>;
  const int64_t bias_stride = mode == Store::times ? ldc : 0;
  int64_t i = 0;
  const auto whole = [&](const Store constant) __attribute__((always_inline)) {
    for (; m - i >= 2 * most || m - i == most; i += most) {
      micro<most, vectors, false>(k, a + i * row_stride, row_stride, inner_stride, b, ldb,
                                  c + i * ldc, ldc, constant, bias + i * bias_stride, 0);
    }
  };
  if (n == vectors * lanes) with_constant<vectors>(mode, whole);
  while (i < m) {
    const int64_t left = m - i;
    const int64_t rows = left <= most ? left : left < 2 * most ? (left + 1) / 2 : most;
    row_blocks<vectors>[rows](n, k, a + i * row_stride, row_stride, inner_stride, b, ldb,
                              c + i * ldc, ldc, mode, bias + i * bias_stride);
    i += rows;
  }
}
using Panel = void (*)(int64_t m, int64_t n, int64_t k, const float* a, int64_t row_stride,
                       int64_t inner_stride, const float* b, int64_t ldb, float* c, int64_t ldc,
                       Store mode, const float* bias);
constexpr Panel panels[] = {product_panel<1>, product_panel<2>,
#if POSATTN_LANES == 16
                            product_panel<3>, product_panel<4>
#endif
};

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
      const int64_t columns = n - j < panel ? n - j : panel;
      panels[(columns - 1) / lanes](m, columns, count, a + first * inner_stride, row_stride,
                                    inner_stride, b + first * ldb + j, ldb, c + j, ldc, mode,
                                    bias + j);
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

}  // namespace
}  // namespace posattn
