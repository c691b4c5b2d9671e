#include "posattn/model/tiles/mixing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"

namespace posattn::engine {
namespace {

double absolute_sum(int64_t n, const double* a) {
  constexpr int chains = 8;  // sums that do not wait for each other
  double sums[chains] = {};
  int64_t j = 0;
  for (; j + chains <= n; j += chains) {
    for (int c = 0; c < chains; ++c) sums[c] += std::abs(a[j + c]);
  }
  double sum = 0;
  for (; j < n; ++j) sum += std::abs(a[j]);
  for (const double part : sums) sum += part;
  return sum;
}

constexpr double most_growth = mixing_tolerance / 2 * 0x1p23;  // half of what may be lost

// The rows that were needed so far, made orthonormal, and every row in their terms.
class Basis {
 public:
  Basis(int64_t n, int64_t most) : n_(n), most_(most), q_(most * n), c_(n * most, 0.0) {}

  int64_t rank() const { return rank_; }
  const double* q() const { return q_.data(); }
  double coefficient(int64_t row, int64_t k) const { return c_[row * most_ + k]; }

  // max_i sum_jk |c_ik| |q_kj|: rounding both to float changes A x by at most 2^-23 times that.
  double growth() const {
    std::vector<double> lengths(rank_);
    for (int64_t k = 0; k < rank_; ++k) lengths[k] = absolute_sum(n_, &q_[k * n_]);
    double most = 0;
    for (int64_t i = 0; i < n_; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < rank_; ++k) sum += std::abs(coefficient(i, k)) * lengths[k];
      most = std::max(most, sum);
    }
    return most;
  }

  // x [count, n]: rows first, first + step, ... of A; what they leave is written to it. False when
  // they need a greater rank than there may be.
  bool add(int64_t first, int64_t step, int64_t count, double* x) {
    subtract(first, step, count, 0, rank_, x);
    for (bool once = true;;) {
      int64_t worst = 0;
      double most = 0;
      for (int64_t i = 0; i < count; ++i) {
        const double left = absolute_sum(n_, x + i * n_);
        if (!(left <= most)) worst = i, most = left;  // NaN, too
      }
      if (most <= mixing_tolerance / 2) return true;
      if (rank_ == most_ || !std::isfinite(most)) return false;
      if (once) {  // before rows join the basis: what rounding left of them is taken out, too
        subtract(first, step, count, 0, rank_, x);
        once = false;
        continue;
      }
      double* q = &q_[rank_ * n_];
      double square = 0;
      for (int64_t j = 0; j < n_; ++j) square += x[worst * n_ + j] * x[worst * n_ + j];
      for (int64_t j = 0; j < n_; ++j) q[j] = x[worst * n_ + j] / std::sqrt(square);
      subtract(first, step, count, rank_, 1, x);
      ++rank_;
    }
  }

 private:
  // The parts of these rows along q_from, q_from+1, ... go from x to c.
  void subtract(int64_t first, int64_t step, int64_t count, int64_t from, int64_t number,
                double* x) {
    if (number == 0) return;
    const double* q = &q_[from * n_];
    std::vector<double> parts(count * number);
    gemm(false, true, count, number, n_, 1.0, x, n_, q, n_, 0.0, parts.data(), number);
    gemm(false, false, count, n_, number, -1.0, parts.data(), number, q, n_, 1.0, x, n_);
    for (int64_t i = 0; i < count; ++i) {
      double* c = &c_[(first + i * step) * most_ + from];
      for (int64_t k = 0; k < number; ++k) c[k] += parts[i * number + k];
    }
  }

  int64_t n_, most_, rank_ = 0;
  std::vector<double> q_, c_;
};

}  // namespace

int64_t FactoredMixing::most_rank(int64_t n) {
  // 2 n r instead of n^2: at least four times less, and memory that does not grow with n^2.
  return std::min<int64_t>(n / 8, 256);
}

std::unique_ptr<FactoredMixing> FactoredMixing::make(int64_t n, int64_t stride, const Rows& rows) {
  Basis basis(n, most_rank(n));
  // Rows far apart first: they tell most of what the others hold.
  constexpr int64_t at_once = 64;
  const int64_t step = (n + at_once - 1) / at_once;
  std::vector<float> block(at_once * stride);
  std::vector<double> wide(at_once * n);
  for (int64_t first = 0; first < step; ++first) {
    const int64_t count = (n - first + step - 1) / step;
    rows(first, step, count, block.data());
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(&block[i * stride], n, &wide[i * n]);
    }
    const bool enough = basis.add(first, step, count, wide.data());
    // A matrix whose first rows are all needed has no low rank: do not ask the others.
    if (!enough || basis.rank() == (first + 1) * at_once) return nullptr;
  }
  if (basis.growth() > most_growth) return nullptr;
  const int64_t rank = basis.rank();
  std::unique_ptr<FactoredMixing> mixing(new FactoredMixing(n, rank));
  std::copy_n(basis.q(), rank * n, mixing->q_.begin());
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < rank; ++k) {
      mixing->c_[i * rank + k] = static_cast<float>(basis.coefficient(i, k));
    }
  }
  return mixing;
}

void FactoredMixing::mix(int64_t width, const float* x, int64_t x_stride, float* y,
                         int64_t y_stride) const {
  Buffer<float> parts(rank_ * width);
  const TileKernels& kernels = tile_kernels();
  kernels.product(rank_, width, n_, q_.data(), n_, 1, x, x_stride, parts.data(), width,
                  Store::assign, nullptr);
  kernels.product(n_, width, rank_, c_.data(), rank_, 1, parts.data(), width, y, y_stride,
                  Store::assign, nullptr);
}

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
