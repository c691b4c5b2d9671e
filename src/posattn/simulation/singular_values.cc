#include "posattn/simulation/singular_values.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace posattn::simulation {
namespace {

// Rotates rows a and b of both matrices by the same angle.
void rotate(Matrix& matrix, int a, int b, double cosine, double sine) {
  double *x = matrix.row(a), *y = matrix.row(b);
  for (int k = 0; k < matrix.columns; ++k) {
    const double old = x[k];
    x[k] = cosine * old - sine * y[k];
    y[k] = sine * old + cosine * y[k];
  }
}

// A root of the moments, root root^T = moments, and its inverse from the left, on the directions in
// which there is any data.
struct Root {
  Matrix root, inverse;  // [size, directions]
};

Root root_of(const Matrix& moments) {
  constexpr double nothing = 1e-12;  // of the largest variance
  const SingularValues found = singular_values(moments);
  const auto& variances = found.values;
  int kept = 0;
  while (kept < moments.rows && variances[kept] > nothing * variances[0]) ++kept;
  Root result{some_columns(found.right, 0, kept), some_columns(found.right, 0, kept)};
  for (int r = 0; r < moments.rows; ++r) {
    for (int c = 0; c < kept; ++c) {
      result.root(r, c) *= std::sqrt(variances[c]);
      result.inverse(r, c) /= std::sqrt(variances[c]);
    }
  }
  return result;
}

}  // namespace

SingularValues singular_values(const Matrix& matrix) {
  constexpr int most_sweeps = 60;
  constexpr double orthogonal = 1e-15;
  const int count = matrix.columns;
  const auto size = static_cast<size_t>(matrix.rows);
  // Columns lie as rows: they are turned in pairs until all are orthogonal.
  Matrix turned = transposed(matrix), turns = identity(count);
  bool changed = true;
  for (int sweep = 0; changed && sweep < most_sweeps; ++sweep) {
    changed = false;
    for (int a = 0; a < count; ++a) {
      for (int b = a + 1; b < count; ++b) {
        const double *x = turned.row(a), *y = turned.row(b);
        const double xx = dot(x, x, size), yy = dot(y, y, size), xy = dot(x, y, size);
        if (std::abs(xy) <= orthogonal * std::sqrt(xx * yy)) continue;
        changed = true;
        const double half = (yy - xx) / (2 * xy);
        const double tangent = std::copysign(1 / (std::abs(half) + std::hypot(1, half)), half);
        const double cosine = 1 / std::hypot(1, tangent);
        rotate(turned, a, b, cosine, cosine * tangent);
        rotate(turns, a, b, cosine, cosine * tangent);
      }
    }
  }
  std::vector<double> lengths(count);
  for (int c = 0; c < count; ++c) lengths[c] = std::sqrt(dot(turned.row(c), turned.row(c), size));
  std::vector<int> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) { return lengths[a] > lengths[b]; });
  SingularValues result{Matrix(matrix.rows, count), Matrix(count, count), {}};
  for (int c = 0; c < count; ++c) {
    const double length = lengths[order[c]];
    result.values.push_back(length);
    for (int r = 0; r < count; ++r) result.right(r, c) = turns(order[c], r);
    if (length == 0) continue;
    for (int r = 0; r < matrix.rows; ++r) result.left(r, c) = turned(order[c], r) / length;
  }
  return result;
}

Factors whitened_factors(const Matrix& left_moments, const Matrix& matrix,
                         const Matrix& right_moments) {
  const Root left = root_of(left_moments), right = root_of(right_moments);
  const SingularValues found =
      singular_values(product(product(transposed(left.root), matrix), right.root));
  Factors result{product(left.inverse, found.left), product(right.inverse, found.right),
                 found.values};
  for (size_t k = 0; k < found.values.size(); ++k) {
    const double scale = std::sqrt(found.values[k]);
    const int column = static_cast<int>(k);
    for (int r = 0; r < result.left.rows; ++r) result.left(r, column) *= scale;
    for (int r = 0; r < result.right.rows; ++r) result.right(r, column) *= scale;
  }
  return result;
}

int rank_for(const std::vector<double>& values, double share) {
  share = std::max(share, 1e-9);  // what is less is rounding
  double all = 0, left_out = 0;
  for (const double value : values) all += value * value;
  auto rank = static_cast<int>(values.size());
  while (rank > 0) {
    left_out += values[rank - 1] * values[rank - 1];
    if (left_out > share * share * all) break;
    --rank;
  }
  return rank;
}

}  // namespace posattn::simulation
