#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/tiles/mixing.h"

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

}  // namespace posattn::engine
