#include "posattn/kernels/cpu/fourier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "posattn/base/random.h"

namespace posattn {
namespace {

using Complex = std::complex<double>;

double random_number(RandomStream& random) {
  return static_cast<double>(random.uniform(-1.0f, 1.0f));
}

TEST(Fourier, HoldsEveryFrequencyOnceAndIsUndone) {
  int sets = 0;
  const TileKernels* const* kernels = available_tile_kernels(sets);
  for (int set = 0; set < sets; ++set) {
    for (const int64_t size : {1, 2, 4, 8, 16, 32, 128}) {
      SCOPED_TRACE(size);
      RandomStream random(size, Purpose::test_data, 0, 0);
      const Fourier fourier(size, *kernels[set]);
      ASSERT_EQ(fourier.size(), size);
      Buffer<double> x(size * Fourier::row_size);
      for (double& value : x) value = random_number(random);
      Buffer<double> y = x;
      fourier.transform(y.data());
      for (int64_t c = 0; c < Fourier::columns; ++c) {
        std::vector<bool> taken(size, false);
        for (int64_t frequency = 0; frequency < size; ++frequency) {
          Complex sum = 0;
          for (int64_t k = 0; k < size; ++k) {
            const double angle = -2 * std::numbers::pi * static_cast<double>(frequency * k % size) /
                                 static_cast<double>(size);
            const double* row = &x[k * Fourier::row_size];
            sum += Complex(row[c], row[c + Fourier::columns]) * std::polar(1.0, angle);
          }
          const auto holds = [&](int64_t k) {
            const double* row = &y[k * Fourier::row_size];
            return std::abs(Complex(row[c], row[c + Fourier::columns]) - sum) < 1e-12;
          };
          int64_t place = 0;
          while (place < size && (taken[place] || !holds(place))) ++place;
          ASSERT_LT(place, size) << "frequency " << frequency;
          taken[place] = true;
        }
      }
      fourier.inverse(y.data());
      for (size_t i = 0; i < x.size(); ++i) {
        ASSERT_NEAR(y[i] / static_cast<double>(size), x[i], 1e-14);
      }
    }
  }
}

TEST(ToeplitzProduct, IsTheProductWithinItsBound) {
  for (const int64_t n : {1, 2, 3, 17, 64, 200}) {
    SCOPED_TRACE(n);
    RandomStream random(n, Purpose::test_data, 0, 0);
    std::vector<double> e(2 * n - 1);
    for (double& value : e) value = std::exp(5 * random_number(random));
    const ToeplitzProduct product(n, e.data());
    const int64_t width = 1 + n % ToeplitzProduct::most_columns, stride = width + 3;
    std::vector<float> x(n * stride);
    float largest = 0;
    for (float& value : x) {
      value = random.uniform(-1.0f, 1.0f);
      largest = std::max(largest, std::abs(value));
    }
    Buffer<double> y(product.work_size());
    product.apply(width, x.data(), stride, y.data());
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t c = 0; c < width; ++c) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j) {
          sum += e[i - j + n - 1] * static_cast<double>(x[j * stride + c]);
        }
        worst = std::max(worst, std::abs(y[i * ToeplitzProduct::most_columns + c] - sum));
      }
    }
    // The sums of this test round, too; a bound that is thousands of times too wide bounds nothing.
    EXPECT_LE(worst, product.error() * static_cast<double>(largest) + 1e-13);
    EXPECT_LT(product.error(), 1e-9);
  }
}

}  // namespace
}  // namespace posattn
