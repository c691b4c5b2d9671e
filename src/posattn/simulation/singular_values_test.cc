#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "posattn/base/random.h"
#include "posattn/simulation/matrix.h"

namespace posattn::simulation {
namespace {

Matrix random_matrix(int rows, int columns, uint32_t index) {
  RandomStream random(1, Purpose::test_data, 0, index);
  Matrix result(rows, columns);
  for (double& x : result.values) x = random.normal();
  return result;
}

double largest_difference(const Matrix& left, const Matrix& right) {
  EXPECT_EQ(left.values.size(), right.values.size());
  double largest = 0;
  for (size_t k = 0; k < left.values.size(); ++k) {
    largest = std::max(largest, std::abs(left.values[k] - right.values[k]));
  }
  return largest;
}

TEST(SingularValues, MakeTheMatrixAgain) {
  for (const auto& [rows, columns] : {std::pair{5, 5}, {7, 3}, {3, 7}, {1, 1}}) {
    const Matrix matrix = random_matrix(rows, columns, static_cast<uint32_t>(10 * rows + columns));
    const SingularValues found = singular_values(matrix);
    const int count = std::min(rows, columns);
    Matrix scaled = found.left;
    for (int r = 0; r < rows; ++r) {
      for (int c = 0; c < count; ++c) scaled(r, c) *= found.values[c];
    }
    EXPECT_LT(largest_difference(product(scaled, transposed(found.right)), matrix), 1e-13);
    for (const Matrix& vectors : {found.left, found.right}) {
      EXPECT_LT(largest_difference(product(transposed(vectors), vectors), identity(count)), 1e-13);
    }
    EXPECT_TRUE(std::ranges::is_sorted(found.values, std::greater<>()));
  }
}

TEST(SingularValues, TellRanksApart) {
  // Two terms of very different size.
  Matrix matrix = product(random_matrix(6, 1, 1), random_matrix(1, 6, 2));
  const Matrix small = product(random_matrix(6, 1, 3), random_matrix(1, 6, 4));
  for (size_t k = 0; k < matrix.values.size(); ++k) matrix.values[k] += 1e-6 * small.values[k];
  const std::vector<double> values = singular_values(matrix).values;
  EXPECT_EQ(rank_for(values, 0), 2);
  EXPECT_EQ(rank_for(values, 1e-4), 1);
  EXPECT_EQ(rank_for({0, 0}, 0), 0);
  EXPECT_EQ(rank_for({3, 4 * 0.1}, 0.5), 1);
}

// Leaving out a term costs what its value says, for data with the moments given.
TEST(WhitenedFactors, ValuesAreErrors) {
  const int size = 4;
  const Matrix spread = random_matrix(size, size, 5), form = random_matrix(size, size, 6);
  const Matrix moments = product(spread, transposed(spread));
  const Factors factors = whitened_factors(moments, form, moments);
  EXPECT_LT(largest_difference(product(factors.left, transposed(factors.right)), form), 1e-11);
  const int rank = 2;
  Matrix rest = product(some_columns(factors.left, rank, size - rank),
                        transposed(some_columns(factors.right, rank, size - rank)));
  // E (x^T rest y)^2 = trace(rest^T moments rest moments)
  const Matrix squares = product(product(transposed(rest), moments), product(rest, moments));
  double expected = 0, found = 0;
  for (int k = 0; k < size; ++k) expected += squares(k, k);
  for (int k = rank; k < size; ++k) found += factors.values[k] * factors.values[k];
  EXPECT_NEAR(found / expected, 1, 1e-9);
}

}  // namespace
}  // namespace posattn::simulation
