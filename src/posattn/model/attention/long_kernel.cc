#include <algorithm>
#include <cmath>

#include "posattn/kernels/cpu/fourier.h"
#include "posattn/kernels/generic/relative.h"
#include "posattn/model/attention/kernel.h"

namespace posattn {
namespace {

class LongKernel final : public LongMixing<float> {
 public:
  LongKernel(const generic::RelativeShape& shape, bool causal) : shape_(shape), causal_(causal) {}

  // t, u: scores of one head. False where rounding of the transforms could show: beside the
  // smallest sum of a row, with room for features that differ by factors of thousands.
  bool add_head(const float* t, const float* u) {
    const int64_t real = shape_.real, middle = real - 1;
    std::vector<double> e(t, t + shape_.distances()), weights(u, u + shape_.scratch_size());
    if (causal_) std::fill_n(e.begin(), middle, -INFINITY);
    const double largest = std::max(*std::ranges::max_element(e), largest_of(weights));
    for (double& value : e) value = std::exp(value - largest);
    double sum = 0, smallest = INFINITY;
    for (int64_t d = 0; d < real; ++d) sum += e[middle - d];
    for (int64_t i = 0; i < real; ++i) {  // row i has distances i - (real - 1) .. i
      smallest = std::min(smallest, sum);
      sum += (i + 1 < real ? e[middle + i + 1] : 0) - e[i];
    }
    toeplitz_.emplace_back(real, e.data());
    largest_.push_back(largest);
    scratch_.insert(scratch_.end(), u, u + shape_.scratch_size());
    return toeplitz_.back().error() <= 1e-9 * smallest;
  }

  void mix(const ScoreParts<float>& parts, const generic::HeadShape& values, const float* v,
           float* o) const override {
    for (int64_t h = 0; h < parts.heads; ++h) {
      const float* q = parts.query_key + 2 * h * parts.keys.size;
      mix_head(h, {q, q + parts.keys.size, parts.keys.size, parts.keys.stride}, values,
               v + h * values.size, o + h * values.size);
    }
  }

 private:
  struct Features {  // of queries and keys
    const float *q, *k;
    int64_t count, stride;
    double product(int64_t i, int64_t j) const {
      double sum = 0;
      for (int64_t f = 0; f < count; ++f) sum += double{q[i * stride + f]} * k[j * stride + f];
      return sum;
    }
  };

  static double largest_of(const std::vector<double>& x) {
    return x.empty() ? -INFINITY : *std::ranges::max_element(x);
  }

  void mix_head(int64_t h, const Features& phi, const generic::HeadShape& values, const float* v,
                float* o) const {
    constexpr int64_t at_once = ToeplitzProduct::most_columns;
    const ToeplitzProduct& toeplitz = toeplitz_[h];
    const int64_t real = shape_.real, n = shape_.nodes(), columns = values.size + 1;
    std::vector<float> x(real * at_once);
    std::vector<double> sums(n * columns);
    Buffer<double> work(toeplitz.work_size());
    for (int64_t first = 0; first < phi.count * columns; first += at_once) {
      const int64_t width = std::min(at_once, phi.count * columns - first);
      const auto visit = [&](const auto& place) {  // (node, lane, feature, column of values)
        for (int64_t i = 0; i < real; ++i) {
          int64_t f = first / columns, column = first % columns;
          for (int64_t c = 0; c < width; ++c) {
            place(i, i * at_once + c, f, column);
            if (++column == columns) ++f, column = 0;
          }
        }
      };
      visit([&](int64_t j, int64_t lane, int64_t f, int64_t column) {
        const float value = column < values.size ? v[j * values.stride + column] : 1.0f;
        x[lane] = phi.k[j * phi.stride + f] * value;
      });
      toeplitz.apply(width, x.data(), at_once, work.data());
      visit([&](int64_t i, int64_t lane, int64_t f, int64_t column) {
        sums[i * columns + column] += phi.q[i * phi.stride + f] * work[lane];
      });
    }
    add_scratch(h, phi, values, v, sums);
    for (int64_t i = 0; i < n; ++i) {
      const double* row = &sums[i * columns];
      for (int64_t c = 0; c < values.size; ++c) {
        o[i * values.stride + c] = static_cast<float>(row[c] / row[values.size]);
      }
    }
  }

  // Pairs with a scratch node, one by one.
  void add_scratch(int64_t h, const Features& phi, const generic::HeadShape& values, const float* v,
                   std::vector<double>& sums) const {
    const float* u = scratch_.data() + h * shape_.scratch_size();
    const int32_t real = shape_.real, n = shape_.nodes();
    for (int32_t i = 0; i < n; ++i) {
      const int32_t first = i < real ? real : 0, end = causal_ ? i + 1 : n;
      double largest = largest_[h];
      if (i >= real) {
        const float* own = u + shape_.scratch_place(i, 0);  // of any real node, of scratch nodes
        largest = *std::max_element(own, own + 1 + shape_.scratch);
      }
      double* row = &sums[i * (values.size + 1)];
      for (int32_t j = first; j < end; ++j) {
        const double weight = std::exp(u[shape_.scratch_place(i, j)] - largest) * phi.product(i, j);
        for (int64_t c = 0; c < values.size; ++c) row[c] += weight * v[j * values.stride + c];
        row[values.size] += weight;
      }
    }
  }

  generic::RelativeShape shape_;
  bool causal_;
  std::vector<ToeplitzProduct> toeplitz_;  // of each head
  std::vector<double> largest_;
  std::vector<float> scratch_;
};

// Whether transforms cost less than the matrices do, in flops of the tile kernel.
bool transforms_pay(int64_t n, int64_t real, int64_t features, int64_t head_size) {
  constexpr double transform_cost = 1.5, exponential_cost = 20;  // by time, not by count
  const double pairs = static_cast<double>(n) * static_cast<double>(n);
  const double columns = static_cast<double>(features * (head_size + 1));
  const double products = columns / ToeplitzProduct::most_columns * ToeplitzProduct::flops(real);
  return transform_cost * products <
         pairs * (2 * static_cast<double>(features + head_size) + exponential_cost);
}

}  // namespace

std::unique_ptr<LongMixing<float>> long_kernel(const AttentionBlock& block,
                                               const NodeContext<float>& nodes) {
  const generic::RelativeShape shape{nodes.real_nodes, nodes.spec.scratch_nodes, nodes.real_nodes};
  if (!transforms_pay(shape.nodes(), shape.real, block.features, block.head_size)) return nullptr;
  std::vector<float> t(int64_t{block.heads} * shape.distances());
  std::vector<float> u(int64_t{block.heads} * shape.scratch_size());
  if (block.positions) {
    const auto by_distance = row_of(block.positions->kind).in_float.by_distance;
    if (by_distance == nullptr) return nullptr;
    by_distance(*block.positions, block.heads, nodes, t.data(), u.data());
  }
  auto mixing = std::make_unique<LongKernel>(shape, block.causal);
  for (int64_t h = 0; h < block.heads; ++h) {
    if (!mixing->add_head(&t[h * shape.distances()], u.data() + h * shape.scratch_size())) {
      return nullptr;
    }
  }
  return mixing;
}

}  // namespace posattn
