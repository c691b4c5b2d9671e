// Fourier transforms of a power of two, for convolutions: several columns at once, so that a
// column is a lane of the vector unit. In double, since what is convolved is rounded to float.
//
// A library was looked for: FFTW's licence is not ours, pocketfft is no package of Debian 12, and
// KissFFT transforms one column after the other (docs/performance.md has its time beside ours).
#pragma once

#include <cstdint>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/tensor/buffer.h"

namespace posattn {

class Fourier {
 public:
  static constexpr int64_t columns = 4;             // complex ones
  static constexpr int64_t row_size = 2 * columns;  // their real parts, then their imaginary parts

  // The smallest power of two from `at_least` on.
  explicit Fourier(int64_t at_least, const TileKernels& kernels = tile_kernels());
  int64_t size() const { return size_; }

  // x [size, row_size] becomes its transform, in an order of its own; inverse undoes it, times
  // size.
  void transform(double* x) const;
  void inverse(double* x) const;

 private:
  const TileKernels* kernels_;
  int64_t size_;
  Buffer<double> turns_;  // of size, of size / 4, ...: [size / 4, 3] complex numbers each
};

// y = E x for a Toeplitz matrix E(i, j) = e(i - j), [n, n].
class ToeplitzProduct {
 public:
  // e [2 n - 1]: of distances -(n - 1) .. n - 1.
  ToeplitzProduct(int64_t n, const double* e);

  // y of x [n, width], width <= most_columns, is left in `work`, its rows most_columns apart.
  // |y - E x| <= error() max |x|: a convolution by Fourier transforms is off by at most about
  // 6 log2(size) 2^-53 |e|_2 |x|_2 in every row.
  static constexpr int64_t most_columns = Fourier::row_size;
  void apply(int64_t width, const float* x, int64_t x_stride, double* work) const;
  int64_t work_size() const { return fourier_.size() * Fourier::row_size; }
  double error() const { return error_; }

  // Flops of apply, a double counted as two floats.
  static double flops(int64_t n);

 private:
  int64_t n_;
  Fourier fourier_;
  Buffer<double> spectrum_;  // [size] complex numbers, divided by size
  double error_ = 0;
};

}  // namespace posattn
