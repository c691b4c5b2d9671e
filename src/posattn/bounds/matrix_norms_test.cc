#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/bounds/weight_norms.h"
#include "posattn/simulation/matrix.h"

namespace posattn::bounds {
namespace {

Matrix normal_matrix(int rows, int columns, uint32_t index) {
  RandomStream random(1, Purpose::test_data, 0, index);
  Matrix result(rows, columns);
  for (double& x : result.values) x = random.normal();
  return result;
}

// The value alone against the one that comes with its vectors (singular_values_test.cc).
TEST(MatrixNorms, SpectralNormIsTheLargestSingularValue) {
  uint32_t index = 0;
  for (const auto& [rows, columns] :
       {std::pair{1, 1}, {1, 7}, {7, 1}, {5, 5}, {16, 3}, {3, 16}, {20, 12}, {12, 40}}) {
    const Matrix matrix = normal_matrix(rows, columns, ++index);
    const double expected = simulation::singular_values(matrix).values[0];
    EXPECT_NEAR(spectral_norm(matrix), expected, 1e-13 * expected) << rows << " x " << columns;
    EXPECT_NEAR(spectral_norm(transposed(matrix)), expected, 1e-13 * expected);
  }
}

TEST(MatrixNorms, ByHand) {
  Matrix matrix(2, 2);
  matrix.values = {3, 4, 0, 5};
  EXPECT_DOUBLE_EQ(two_one_norm(matrix), 10);
  EXPECT_NEAR(frobenius_norm(matrix), std::sqrt(50.0), 1e-14);
  EXPECT_NEAR(spectral_norm(matrix), std::sqrt(45.0),
              1e-13);  // singular values 3 and 1 times root 5
  EXPECT_EQ(spectral_norm(Matrix(3, 2)), 0);
  EXPECT_EQ(spectral_norm(Matrix(3, 0)), 0);
  EXPECT_EQ(length_of({}), 0);
}

TEST(MatrixNorms, HugeAndBroken) {
  Matrix matrix = normal_matrix(4, 4, 1);
  const MatrixNorms small = norms_of(matrix);
  for (double& x : matrix.values) x *= 1e200;
  const MatrixNorms large = norms_of(matrix);
  EXPECT_NEAR(large.spectral / small.spectral / 1e200, 1, 1e-12);
  EXPECT_NEAR(large.two_one / small.two_one / 1e200, 1, 1e-12);
  EXPECT_NEAR(large.frobenius / small.frobenius / 1e200, 1, 1e-12);
  matrix(1, 1) = NAN;
  EXPECT_THROW(spectral_norm(matrix), Error);
}

TEST(MatrixNorms, Order) {
  for (uint32_t index = 0; index < 20; ++index) {
    const MatrixNorms norms = norms_of(normal_matrix(6, 9, index));
    EXPECT_LE(norms.spectral, norms.frobenius);
    EXPECT_LE(norms.frobenius, norms.two_one);
    EXPECT_LE(norms.two_one, std::sqrt(6.0) * norms.frobenius * (1 + 1e-12));
  }
}

TEST(MatrixNorms, Joining) {
  const Matrix left = normal_matrix(2, 3, 1), right = normal_matrix(2, 1, 2);
  const Matrix both = with_columns(left, right);
  EXPECT_EQ(both.columns, 4);
  EXPECT_EQ(both(1, 2), left(1, 2));
  EXPECT_EQ(both(1, 3), right(1, 0));
  const Matrix taller = with_row(left, {7, 8, 9});
  EXPECT_EQ(taller.rows, 3);
  EXPECT_EQ(taller(2, 1), 8);
}

}  // namespace
}  // namespace posattn::bounds
