#include "posattn/kernels/cpu/fourier.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>

namespace posattn {
namespace {

int64_t power_of_two(int64_t at_least) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, at_least))));
}

}  // namespace

Fourier::Fourier(int64_t at_least, const TileKernels& kernels)
    : kernels_(&kernels), size_(power_of_two(at_least)) {
  for (int64_t size = size_; size >= 4; size /= 4) {
    for (int64_t k = 0; k < size / 4; ++k) {
      for (int power = 1; power <= 3; ++power) {
        const double angle =
            -2 * std::numbers::pi * static_cast<double>(power * k) / static_cast<double>(size);
        turns_.push_back(std::cos(angle));
        turns_.push_back(std::sin(angle));
      }
    }
  }
}

void Fourier::transform(double* x) const { kernels_->fourier(size_, turns_.data(), x); }
void Fourier::inverse(double* x) const { kernels_->inverse_fourier(size_, turns_.data(), x); }

ToeplitzProduct::ToeplitzProduct(int64_t n, const double* e)
    : n_(n), fourier_(2 * n - 1), spectrum_(2 * fourier_.size()) {
  // Around a circle of `size` places: distance k >= 0 at place k, -k at place size - k.
  const int64_t size = fourier_.size();
  Buffer<double> work(work_size());
  double squares = 0;
  for (int64_t distance = 1 - n; distance < n; ++distance) {
    const double value = e[distance + n - 1];
    work[(distance < 0 ? distance + size : distance) * Fourier::row_size] = value;
    squares += value * value;
  }
  fourier_.transform(work.data());
  for (int64_t k = 0; k < size; ++k) {
    spectrum_[2 * k] = work[k * Fourier::row_size] / static_cast<double>(size);
    spectrum_[2 * k + 1] =
        work[k * Fourier::row_size + Fourier::columns] / static_cast<double>(size);
  }
  constexpr double unit = std::numeric_limits<double>::epsilon() / 2;
  error_ =
      6 * std::log2(static_cast<double>(size)) * unit * std::sqrt(squares * static_cast<double>(n));
}

void ToeplitzProduct::apply(int64_t width, const float* x, int64_t x_stride, double* work) const {
  constexpr int64_t row = Fourier::row_size, columns = Fourier::columns;
  // E is real: the first columns travel as real parts, the others as imaginary parts.
  for (int64_t i = 0; i < n_; ++i) {
    for (int64_t c = 0; c < row; ++c) {
      work[i * row + c] = c < width ? static_cast<double>(x[i * x_stride + c]) : 0.0;
    }
  }
  std::fill_n(work + n_ * row, (fourier_.size() - n_) * row, 0.0);
  fourier_.transform(work);
  for (int64_t k = 0; k < fourier_.size(); ++k) {
    const double re = spectrum_[2 * k], im = spectrum_[2 * k + 1];
    double* value = work + k * row;
    for (int64_t c = 0; c < columns; ++c) {
      const double a = value[c], b = value[c + columns];
      value[c] = a * re - b * im;
      value[c + columns] = a * im + b * re;
    }
  }
  fourier_.inverse(work);
}

double ToeplitzProduct::flops(int64_t n) {
  const auto size = static_cast<double>(power_of_two(2 * n - 1));
  const double complex_columns = static_cast<double>(Fourier::columns);
  // Radix 4: 34 flops for 4 rows and two binary levels, each way; 8 for the product in between.
  return 2 * complex_columns * size * (2 * 4.25 * std::log2(size) + 8);
}

}  // namespace posattn
