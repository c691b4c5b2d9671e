#include "posattn/simulation/matrix.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posattn/model/spec/tensor_names.h"

namespace posattn::simulation {

Matrix identity(int size) {
  Matrix result(size, size);
  for (int i = 0; i < size; ++i) result(i, i) = 1;
  return result;
}

Matrix product(const Matrix& left, const Matrix& right) {
  Matrix result(left.rows, right.columns);
  for (int r = 0; r < left.rows; ++r) {
    for (int k = 0; k < left.columns; ++k) {
      const double factor = left(r, k);
      for (int c = 0; c < right.columns; ++c) result(r, c) += factor * right(k, c);
    }
  }
  return result;
}

Matrix transposed(const Matrix& matrix) {
  Matrix result(matrix.columns, matrix.rows);
  for (int r = 0; r < matrix.rows; ++r) {
    for (int c = 0; c < matrix.columns; ++c) result(c, r) = matrix(r, c);
  }
  return result;
}

Matrix some_rows(const Matrix& matrix, int first, int count) {
  Matrix result(count, matrix.columns);
  std::copy_n(matrix.row(first), result.values.size(), result.values.begin());
  return result;
}

Matrix some_columns(const Matrix& matrix, int first, int count) {
  Matrix result(matrix.rows, count);
  for (int r = 0; r < matrix.rows; ++r) std::copy_n(matrix.row(r) + first, count, result.row(r));
  return result;
}

void softmax(Matrix& scores) {
  for (int i = 0; i < scores.rows; ++i) {
    double* row = scores.row(i);
    const double greatest = *std::max_element(row, row + scores.columns);
    double sum = 0;
    for (int j = 0; j < scores.columns; ++j) sum += row[j] = std::exp(row[j] - greatest);
    for (int j = 0; j < scores.columns; ++j) row[j] /= sum;
  }
}

std::vector<double> product(const Matrix& left, const std::vector<double>& right) {
  std::vector<double> result(left.rows);
  for (int r = 0; r < left.rows; ++r) result[r] = dot(left.row(r), right.data(), right.size());
  return result;
}

double dot(const double* left, const double* right, size_t size) {
  return std::inner_product(left, left + size, right, 0.0);
}

void add(std::vector<double>& to, const std::vector<double>& from, double factor) {
  for (size_t k = 0; k < to.size(); ++k) to[k] += factor * from[k];
}

void AffineMap::apply(const double* x, double* out) const {
  for (int r = 0; r < weight.rows; ++r) {
    out[r] = bias[r] + dot(weight.row(r), x, static_cast<size_t>(weight.columns));
  }
}

AffineMap map_of(const Parameters<double>& parameters, const std::string& name, int in) {
  const auto weight = parameters[names::weight(name)], bias = parameters[names::bias(name)];
  AffineMap map{Matrix(static_cast<int>(bias.size()), in), {bias.begin(), bias.end()}};
  std::ranges::copy(weight, map.weight.values.begin());
  return map;
}

AffineMap encoder_of(const ModelSpec& spec, const Parameters<double>& parameters) {
  AffineMap stored = map_of(parameters, std::string(names::encoding), spec.input_size());
  if (!spec.positions_in_input) return stored;
  const int columns = spec.data_columns;
  Matrix positions(spec.nodes(), spec.encoding_size);
  positions.values = positions_of(spec, parameters);
  const Matrix places =
      product(some_columns(stored.weight, columns, spec.encoding_size), transposed(positions));
  AffineMap encoder{Matrix(spec.width, columns + spec.nodes()), stored.bias};
  for (int r = 0; r < spec.width; ++r) {
    std::copy_n(stored.weight.row(r), columns, encoder.weight.row(r));
    std::copy_n(places.row(r), spec.nodes(), encoder.weight.row(r) + columns);
  }
  return encoder;
}

}  // namespace posattn::simulation
