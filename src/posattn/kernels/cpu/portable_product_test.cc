#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/cpu/blas.h"

namespace posattn {
namespace {

struct ProductCase {
  bool transpose_a, transpose_b;
  int m, n, k;
  float alpha, beta;
};

template <class T>
std::vector<T> random_numbers(int64_t count, uint32_t index) {
  RandomStream random(1, Purpose::test_data, 0, index);
  std::vector<T> values(count);
  for (T& value : values) value = random.uniform(-1, 1);
  return values;
}

// Against the formula in double; matrices have two columns more than the product reads.
template <class T>
void expect_product(const ProductCase& c, double tolerance) {
  const int lda = (c.transpose_a ? c.m : c.k) + 2, ldb = (c.transpose_b ? c.k : c.n) + 2;
  const int ldc = c.n + 2;
  const auto a = random_numbers<T>(int64_t{1} * (c.transpose_a ? c.k : c.m) * lda, 0);
  const auto b = random_numbers<T>(int64_t{1} * (c.transpose_b ? c.n : c.k) * ldb, 1);
  auto before = random_numbers<T>(int64_t{1} * c.m * ldc, 2);
  if (c.beta == 0) before.assign(before.size(), std::numeric_limits<T>::quiet_NaN());
  std::vector<T> found = before;
  portable_gemm(c.transpose_a, c.transpose_b, c.m, c.n, c.k, T{c.alpha}, a.data(), lda, b.data(),
                ldb, T{c.beta}, found.data(), ldc);
  for (int i = 0; i < c.m; ++i) {
    for (int j = 0; j < c.n; ++j) {
      double sum = 0;
      for (int p = 0; p < c.k; ++p) {
        sum += double{c.transpose_a ? a[p * lda + i] : a[i * lda + p]} *
               double{c.transpose_b ? b[j * ldb + p] : b[p * ldb + j]};
      }
      const double expected =
          c.alpha * sum + (c.beta == 0 ? 0.0 : double{c.beta} * double{before[i * ldc + j]});
      ASSERT_NEAR(found[i * ldc + j], expected, tolerance) << i << ", " << j;
    }
  }
  if (c.beta != 0) {  // what stands beside C stays
    EXPECT_EQ(found[c.n], before[c.n]);
  }
}

TEST(PortableProduct, IsTheFormula) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const float beta : {0.0f, 1.0f, -0.5f}) {
        for (const float alpha : {1.0f, 0.25f}) {
          for (const int k : {1, 7, 33}) {
            const ProductCase c{transpose_a, transpose_b, 9, 13, k, alpha, beta};
            expect_product<float>(c, 1e-5);
            expect_product<double>(c, 1e-14);
          }
        }
      }
    }
  }
}

// More than one block each way, with and without copies of what lies far apart.
TEST(PortableProduct, OfManyBlocksIsTheFormula) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const float beta : {0.0f, 1.0f}) {
        expect_product<float>({transpose_a, transpose_b, 197, 67, 101, 0.5f, beta}, 1e-4);
        expect_product<float>({transpose_a, transpose_b, 66, 260, 98, 1, beta}, 1e-4);
        expect_product<float>({transpose_a, transpose_b, 260, 66, 300, 1, beta}, 1e-4);
      }
    }
  }
}

TEST(PortableProduct, OfNothingOnlyScales) {
  expect_product<float>({false, false, 3, 4, 0, 1, 0.5f}, 1e-6);
  expect_product<float>({false, true, 3, 4, 0, 1, 0}, 0);
  expect_product<double>({true, false, 3, 4, 0, 1, 0}, 0);
  expect_product<float>({false, false, 0, 4, 3, 1, 0}, 0);
}

}  // namespace
}  // namespace posattn
