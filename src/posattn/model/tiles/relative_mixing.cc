#include <algorithm>
#include <cmath>

#include "posattn/model/tiles/mixing.h"

namespace posattn::engine {

bool RelativeMixing::pays(const generic::RelativeShape& shape, int64_t width) {
  constexpr double flop_cost = 3;  // of a transform, in flops of the tile kernel (measured)
  const auto n = static_cast<double>(shape.nodes());
  const int64_t parts = (width + ToeplitzProduct::most_columns - 1) / ToeplitzProduct::most_columns;
  return flop_cost * static_cast<double>(parts) * ToeplitzProduct::flops(shape.real) <
         2 * n * n * static_cast<double>(width);
}

RelativeMixing::RelativeMixing(const generic::RelativeShape& shape, const std::vector<double>& e)
    : shape_(shape), toeplitz_(shape.real, e.data()) {}

std::unique_ptr<RelativeMixing> RelativeMixing::make(const generic::RelativeShape& shape,
                                                     const float* t, const float* u) {
  const int64_t n = shape.real, scratch = shape.scratch, middle = n - 1;
  // The largest score of a real node's row becomes exp(0).
  std::vector<double> e(2 * n - 1);
  for (int64_t i = 0; i < n; ++i) {
    e[middle + i] = t[shape.distance_place(static_cast<int32_t>(i), 0)];
    e[middle - i] = t[shape.distance_place(0, static_cast<int32_t>(i))];
  }
  double largest = *std::ranges::max_element(e);
  std::vector<double> scratch_weights(scratch);
  for (int64_t s = 0; s < scratch; ++s) {
    scratch_weights[s] = u[s * shape.scratch_columns()];
    largest = std::max(largest, scratch_weights[s]);
  }
  double scratch_sum = 0;
  for (double& value : e) value = std::exp(value - largest);
  for (double& value : scratch_weights) scratch_sum += value = std::exp(value - largest);

  std::unique_ptr<RelativeMixing> mixing(new RelativeMixing(shape, e));
  mixing->scratch_weights_ = std::move(scratch_weights);
  // Row i attends to distances i - (n - 1) .. i: two running sums, which only add.
  std::vector<double> later(n, 0.0);  // distances -(n - 1 - i) .. -1
  for (int64_t i = n - 2; i >= 0; --i) later[i] = later[i + 1] + e[middle - (n - 1 - i)];
  double earlier = scratch_sum, smallest = INFINITY;
  for (int64_t i = 0; i < n; ++i) {
    earlier += e[middle + i];
    const double sum = earlier + later[i];
    smallest = std::min(smallest, sum);
    mixing->inverse_sums_.push_back(1 / sum);
  }
  // False for scores that are not finite, too.
  if (!(mixing->toeplitz_.error() <= mixing_tolerance / 2 * smallest)) return nullptr;

  for (int64_t s = 0; s < scratch; ++s) {
    const float* row = u + s * shape.scratch_columns() + 1;  // of any real node, of scratch nodes
    const double top = *std::max_element(row, row + 1 + scratch);
    double sum = 0;
    std::vector<double> weights(1 + scratch);
    for (int64_t c = 0; c <= scratch; ++c) {
      weights[c] = std::exp(row[c] - top);
      sum += weights[c] * (c == 0 ? static_cast<double>(n) : 1.0);
    }
    for (const double weight : weights) mixing->of_scratch_.push_back(weight / sum);
  }
  return mixing;
}

void RelativeMixing::mix(int64_t width, const float* x, int64_t x_stride, float* y,
                         int64_t y_stride) const {
  Buffer<double> work(toeplitz_.work_size());
  for (int64_t c = 0; c < width; c += ToeplitzProduct::most_columns) {
    mix_columns(std::min(ToeplitzProduct::most_columns, width - c), x + c, x_stride, y + c,
                y_stride, work.data());
  }
}

void RelativeMixing::mix_columns(int64_t width, const float* x, int64_t x_stride, float* y,
                                 int64_t y_stride, double* work) const {
  const int64_t n = shape_.real, scratch = shape_.scratch;
  toeplitz_.apply(width, x, x_stride, work);
  double sums[ToeplitzProduct::most_columns] = {}, from_scratch[ToeplitzProduct::most_columns] = {};
  const auto scratch_value = [&](int64_t s, int64_t c) {
    return static_cast<double>(x[(n + s) * x_stride + c]);
  };
  for (int64_t s = 0; s < scratch; ++s) {
    for (int64_t c = 0; c < width; ++c)
      from_scratch[c] += scratch_weights_[s] * scratch_value(s, c);
  }
  for (int64_t i = 0; i < n; ++i) {
    const double* convolved = work + i * ToeplitzProduct::most_columns;
    for (int64_t c = 0; c < width; ++c) {
      sums[c] += static_cast<double>(x[i * x_stride + c]);
      y[i * y_stride + c] = static_cast<float>((convolved[c] + from_scratch[c]) * inverse_sums_[i]);
    }
  }
  for (int64_t s = 0; s < scratch; ++s) {
    const double* weights = &of_scratch_[s * (1 + scratch)];
    for (int64_t c = 0; c < width; ++c) {
      double value = weights[0] * sums[c];
      for (int64_t other = 0; other < scratch; ++other) {
        value += weights[1 + other] * scratch_value(other, c);
      }
      y[(n + s) * y_stride + c] = static_cast<float>(value);
    }
  }
}

}  // namespace posattn::engine
