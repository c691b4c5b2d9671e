// Fourier transforms of isa_kernels.cc: four complex columns at once, in double, radix 4. Values go
// in natural order, their transform comes out in a scrambled one that the inverse undoes: a
// convolution never asks which frequency stands where, and so no order has to be restored.
#pragma once

#include <stdint.h>

namespace posattn {
namespace {

typedef double Quad __attribute__((vector_size(32), aligned(8), may_alias));

// One row: the real parts of four columns, then the imaginary parts.
struct ComplexQuad {
  Quad re, im;
};
constexpr int64_t row_size = 8;
inline ComplexQuad load_row(const double* x) {
  return {*reinterpret_cast<const Quad*>(x), *reinterpret_cast<const Quad*>(x + 4)};
}
inline void store_row(double* x, ComplexQuad v) {
  *reinterpret_cast<Quad*>(x) = v.re;
  *reinterpret_cast<Quad*>(x + 4) = v.im;
}
inline ComplexQuad operator+(ComplexQuad a, ComplexQuad b) { return {a.re + b.re, a.im + b.im}; }
inline ComplexQuad operator-(ComplexQuad a, ComplexQuad b) { return {a.re - b.re, a.im - b.im}; }
inline ComplexQuad turned(ComplexQuad a, const double* w) {  // a w
  return {a.re * w[0] - a.im * w[1], a.re * w[1] + a.im * w[0]};
}
inline ComplexQuad turned_back(ComplexQuad a, const double* w) {  // a conj(w)
  return {a.re * w[0] + a.im * w[1], a.im * w[0] - a.re * w[1]};
}

constexpr int64_t turns_per_row = 6;  // w^k, w^2k, w^3k with w = exp(-2 pi i / size)

// One step of the transform of `size` rows: their quarters become independent transforms.
inline void split_quarters(int64_t size, const double* turns, double* x) {
  const int64_t quarter = size / 4 * row_size;
  for (int64_t k = 0; k < size / 4; ++k, x += row_size, turns += turns_per_row) {
    const ComplexQuad a = load_row(x), b = load_row(x + quarter), c = load_row(x + 2 * quarter),
                      d = load_row(x + 3 * quarter);
    const ComplexQuad ac = a + c, a_c = a - c, bd = b + d, b_d = b - d;
    const ComplexQuad turned_b_d = {b_d.im, -b_d.re};  // -i (b - d)
    store_row(x, ac + bd);
    store_row(x + quarter, turned(a_c + turned_b_d, turns));
    store_row(x + 2 * quarter, turned(ac - bd, turns + 2));
    store_row(x + 3 * quarter, turned(a_c - turned_b_d, turns + 4));
  }
}

inline void join_quarters(int64_t size, const double* turns, double* x) {
  const int64_t quarter = size / 4 * row_size;
  for (int64_t k = 0; k < size / 4; ++k, x += row_size, turns += turns_per_row) {
    const ComplexQuad a = load_row(x), b = turned_back(load_row(x + quarter), turns),
                      c = turned_back(load_row(x + 2 * quarter), turns + 2),
                      d = turned_back(load_row(x + 3 * quarter), turns + 4);
    const ComplexQuad ac = a + c, a_c = a - c, bd = b + d, b_d = b - d;
    const ComplexQuad turned_b_d = {-b_d.im, b_d.re};  // i (b - d)
    store_row(x, ac + bd);
    store_row(x + quarter, a_c + turned_b_d);
    store_row(x + 2 * quarter, ac - bd);
    store_row(x + 3 * quarter, a_c - turned_b_d);
  }
}

inline void transform_pair(double* x) {
  const ComplexQuad a = load_row(x), b = load_row(x + row_size);
  store_row(x, a + b);
  store_row(x + row_size, a - b);
}

// Quarter by quarter, so that small transforms are done while their rows are in the cache.
void fourier(int64_t size, const double* turns, double* x) {
  if (size == 2) return transform_pair(x);
  if (size < 4) return;
  split_quarters(size, turns, x);
  if (size == 4) return;
  for (int part = 0; part < 4; ++part) {
    fourier(size / 4, turns + size / 4 * turns_per_row, x + part * (size / 4) * row_size);
  }
}

void inverse_fourier(int64_t size, const double* turns, double* x) {
  if (size == 2) return transform_pair(x);
  if (size < 4) return;
  if (size > 4) {
    for (int part = 0; part < 4; ++part) {
      inverse_fourier(size / 4, turns + size / 4 * turns_per_row, x + part * (size / 4) * row_size);
    }
  }
  join_quarters(size, turns, x);
}

}  // namespace
}  // namespace posattn
