#include "posattn/bounds/weight_norms.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/bounds/collapsed_network.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn::bounds {
namespace {

Matrix weight_of(const Parameters<double>& parameters, const std::string& map, int columns) {
  const auto values = parameters[names::weight(map)];
  Matrix matrix(static_cast<int>(values.size()) / columns, columns);
  std::ranges::copy(values, matrix.values.begin());
  return matrix;
}

LayerWeightNorms norms_of_weights(const ModelSpec& spec, const Parameters<double>& parameters,
                                  int index) {
  const auto weight = [&](std::string_view name, int columns) {
    return weight_of(parameters, names::of_layer(index, name), columns);
  };
  const int head_size = spec.head_size(), key_size = spec.key_size();
  const Matrix value = weight(names::value, spec.width), output = weight(names::output, spec.width);
  LayerWeightNorms result;
  const auto add = [&](const std::string& name, const Matrix& matrix) {
    result.matrices.push_back({name, norms_of(matrix)});
  };
  add("V", value);
  add("O", output);
  add("W1", weight(names::mlp_map(0), 2 * spec.width));
  add("W2", weight(names::mlp_map(1), spec.mlp_width));
  for (int h = 0; h < spec.heads; ++h) {
    add(fmt::format("V.{}", h), some_rows(value, h * head_size, head_size));
    add(fmt::format("O.{}", h), some_columns(output, h * head_size, head_size));
    if (!spec.has_query_key()) continue;
    const Matrix both = weight(names::query_key, spec.source_size());
    Matrix folded = product(transposed(some_rows(both, 2 * h * key_size, key_size)),
                            some_rows(both, (2 * h + 1) * key_size, key_size));
    for (double& x : folded.values) x /= std::sqrt(static_cast<double>(key_size));
    add(fmt::format("QK.{}", h), folded);
  }
  result.mlp_lipschitz = result.at("W1").spectral * result.at("W2").spectral;
  return result;
}

using UnitsOn = std::vector<bool>;

// The sets of hidden units that are on at some node of some sample, for each layer.
std::vector<std::set<UnitsOn>> patterns_met(const CollapsedNetwork& network,
                                            std::span<const double> x) {
  std::vector<std::set<UnitsOn>> met(network.layers.size());
  const auto n = static_cast<size_t>(network.real_nodes);
  for (size_t first = 0; first < x.size(); first += n) {
    Matrix state = first_state(network, x.subspan(first, n));
    for (size_t l = 0; l < network.layers.size(); ++l) {
      state = run_layer(network.layers[l], state);
      for (int i = 0; i < state.rows; ++i) {
        UnitsOn on(static_cast<size_t>(state.columns));
        for (int u = 0; u < state.columns; ++u) on[u] = state(i, u) > 0;
        met[l].insert(std::move(on));
      }
    }
  }
  return met;
}

double largest_jacobian(const Matrix& first, const Matrix& second,
                        const std::set<UnitsOn>& patterns) {
  double largest = 0;
  for (const UnitsOn& on : patterns) {
    Matrix masked = first;
    for (int u = 0; u < masked.rows; ++u) {
      if (!on[u]) std::fill_n(masked.row(u), masked.columns, 0.0);
    }
    largest = std::max(largest, spectral_norm(product(second, masked)));
  }
  return largest;
}

}  // namespace

const MatrixNorms& LayerWeightNorms::at(const std::string& name) const {
  for (const NamedNorms& matrix : matrices) {
    if (matrix.name == name) return matrix.norms;
  }
  throw std::out_of_range("no matrix " + name);
}

std::vector<LayerWeightNorms> weight_norms(const ModelSpec& spec,
                                           const Parameters<double>& parameters,
                                           std::span<const double> x) {
  std::vector<LayerWeightNorms> layers;
  layers.reserve(static_cast<size_t>(spec.depth));
  for (int l = 0; l < spec.depth; ++l) layers.push_back(norms_of_weights(spec, parameters, l));
  if (x.empty()) return layers;
  const std::vector<std::set<UnitsOn>> met = patterns_met(collapse(spec, parameters), x);
  for (int l = 0; l < spec.depth; ++l) {
    const auto weight = [&](int map, int columns) {
      return weight_of(parameters, names::of_layer(l, names::mlp_map(map)), columns);
    };
    layers[l].mlp_jacobian =
        largest_jacobian(weight(0, 2 * spec.width), weight(1, spec.mlp_width), met[l]);
  }
  return layers;
}

double spectral_norm(const Matrix& matrix) {
  if (matrix.values.empty()) return 0;
  if (!std::ranges::all_of(matrix.values, [](double x) { return std::isfinite(x); })) {
    throw Error(ExitCode::data, "a weight is not finite", "finite weights");
  }
  return simulation::largest_singular_value(matrix);
}

double length_of(const std::vector<double>& vector) {
  double largest = 0, sum = 0;  // scaled: squares of huge weights would overflow
  for (const double x : vector) largest = std::max(largest, std::abs(x));
  if (largest == 0) return 0;
  for (const double x : vector) sum += (x / largest) * (x / largest);
  return largest * std::sqrt(sum);
}

double frobenius_norm(const Matrix& matrix) { return length_of(matrix.values); }

double two_one_norm(const Matrix& matrix) {
  double sum = 0;
  for (int r = 0; r < matrix.rows; ++r) {
    sum += length_of({matrix.row(r), matrix.row(r) + matrix.columns});
  }
  return sum;
}

MatrixNorms norms_of(const Matrix& matrix) {
  return {.spectral = spectral_norm(matrix),
          .two_one = two_one_norm(matrix),
          .frobenius = frobenius_norm(matrix)};
}

Matrix with_columns(const Matrix& left, const Matrix& right) {
  Matrix result(left.rows, left.columns + right.columns);
  for (int r = 0; r < left.rows; ++r) {
    std::copy_n(left.row(r), left.columns, result.row(r));
    std::copy_n(right.row(r), right.columns, result.row(r) + left.columns);
  }
  return result;
}

Matrix with_row(const Matrix& matrix, const std::vector<double>& row) {
  Matrix result = matrix;
  ++result.rows;
  result.values.insert(result.values.end(), row.begin(), row.end());
  return result;
}

}  // namespace posattn::bounds
