#include <algorithm>
#include <cmath>
#include <utility>

#include "posattn/bounds/certificate/certify.h"
#include "posattn/simulation/matrix.h"

namespace posattn::bounds {
namespace {

using simulation::Matrix;

// Solves A x = B for positive definite A [n, n], B [n, columns] (Cholesky).
Matrix solve_definite(Matrix a, Matrix b) {
  const int n = a.rows;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) {
      double sum = a(i, j);
      for (int k = 0; k < j; ++k) sum -= a(i, k) * a(j, k);
      a(i, j) = i == j ? std::sqrt(sum) : sum / a(j, j);
    }
  }
  for (int c = 0; c < b.columns; ++c) {
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < i; ++k) b(i, c) -= a(i, k) * b(k, c);
      b(i, c) /= a(i, i);
    }
    for (int i = n; i-- > 0;) {
      for (int k = i + 1; k < n; ++k) b(i, c) -= a(k, i) * b(k, c);
      b(i, c) /= a(i, i);
    }
  }
  return b;
}

// Weights [inputs + 1, nodes] of the affine predictor, the constants last.
Matrix least_squares(const LabelledSamples& data, int nodes) {
  Matrix moments(nodes + 1, nodes + 1), products(nodes + 1, nodes);
  std::vector<double> row(nodes + 1, 1.0);
  for (int64_t s = 0; s < data.samples; ++s) {
    std::copy_n(data.inputs.data() + s * nodes, nodes, row.begin());
    for (int i = 0; i <= nodes; ++i) {
      for (int j = 0; j <= i; ++j) moments(i, j) += row[i] * row[j];
      for (int k = 0; k < nodes; ++k) products(i, k) += row[i] * data.targets[s * nodes + k];
    }
  }
  // Inputs that never vary, and fewer samples than inputs: the smallest weights.
  constexpr double ridge = 1e-9;
  for (int i = 0; i <= nodes; ++i) {
    moments(i, i) += ridge * static_cast<double>(data.samples);
    for (int j = 0; j < i; ++j) moments(j, i) = moments(i, j);
  }
  return solve_definite(std::move(moments), std::move(products));
}

class ClippedMean {
 public:
  explicit ClippedMean(double clip) : square_(clip * clip) {}
  void add(double error) {
    sum_ += std::min(error * error, square_) / square_;
    ++count_;
  }
  double value() const { return sum_ / static_cast<double>(count_); }

 private:
  double square_, sum_ = 0;
  int64_t count_ = 0;
};

double constant_loss(const LabelledSamples& data, int nodes, const std::vector<double>& values,
                     double clip) {
  ClippedMean mean(clip);
  for (int64_t k = 0; k < data.samples * nodes; ++k) {
    mean.add(double{data.targets[k]} - values[k % nodes]);
  }
  return mean.value();
}

double best_constant(const LabelledSamples& training, const LabelledSamples& fresh, int nodes,
                     double clip) {
  std::vector<double> means(nodes), medians(nodes), column(training.samples);
  for (int i = 0; i < nodes; ++i) {
    for (int64_t s = 0; s < training.samples; ++s) {
      column[s] = training.targets[s * nodes + i];
      means[i] += column[s] / static_cast<double>(training.samples);
    }
    const auto middle = column.begin() + training.samples / 2;
    std::nth_element(column.begin(), middle, column.end());
    medians[i] = *middle;
  }
  const bool mean_is_better =
      constant_loss(training, nodes, means, clip) < constant_loss(training, nodes, medians, clip);
  return constant_loss(fresh, nodes, mean_is_better ? means : medians, clip);
}

}  // namespace

SimplePredictors simple_predictors(const LabelledSamples& training, const LabelledSamples& fresh,
                                   double clip) {
  const auto nodes = static_cast<int>(training.inputs.size() / training.samples);
  const Matrix weights = least_squares(training, nodes);
  ClippedMean linear(clip);
  for (int64_t s = 0; s < fresh.samples; ++s) {
    for (int k = 0; k < nodes; ++k) {
      double answer = weights(nodes, k);
      for (int i = 0; i < nodes; ++i) answer += weights(i, k) * fresh.inputs[s * nodes + i];
      linear.add(answer - fresh.targets[s * nodes + k]);
    }
  }
  return {best_constant(training, fresh, nodes, clip), linear.value()};
}

}  // namespace posattn::bounds
