// Attention without its matrix against the matrix, in double.
#include "posattn/model/tiles/mixing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/kernels/generic/relative.h"
#include "posattn/kernels/reference/operations.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn::engine {
namespace {

// max |mixed - A x| / max |x| for random x of `width` columns.
double error_of(const Mixing& mixing, int64_t n, int64_t width, const std::vector<double>& a) {
  RandomStream random(n, Purpose::test_data, 0, 0);
  const int64_t stride = width + 2;
  std::vector<float> x(n * stride), y(n * stride, 0.0f);
  for (float& value : x) value = random.uniform(-1.0f, 1.0f);
  mixing.mix(width, x.data(), stride, y.data(), stride);
  double worst = 0;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double> sums(width, 0.0);
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t c = 0; c < width; ++c) {
        sums[c] += a[i * n + j] * static_cast<double>(x[j * stride + c]);
      }
    }
    for (int64_t c = 0; c < width; ++c) {
      worst = std::max(worst, std::abs(static_cast<double>(y[i * stride + c]) - sums[c]));
    }
    EXPECT_EQ(y[i * stride + width], 0.0f) << "a column that is not its own";
  }
  return worst;
}

std::vector<float> random_scores(int64_t count, float size, uint32_t variant) {
  RandomStream random(32, Purpose::test_data, 0, variant);
  std::vector<float> scores(count);
  for (float& score : scores) score = random.uniform(-size, size);
  return scores;
}

std::vector<double> relative_matrix(const generic::RelativeShape& shape,
                                    const std::vector<float>& t, const std::vector<float>& u) {
  const std::vector<double> wide_t(t.begin(), t.end()), wide_u(u.begin(), u.end());
  std::vector<double> a(int64_t{1} * shape.nodes() * shape.nodes());
  generic::relative_scores(shape, wide_t.data(), wide_u.data(), a.data(), shape.nodes());
  reference::softmax_rows(shape.nodes(), shape.nodes(), a.data());
  return a;
}

TEST(RelativeMixing, IsTheMatrixWithinItsBound) {
  for (const generic::RelativeShape shape : {generic::RelativeShape{1, 0, 1},
                                             {2, 1, 2},
                                             {65, 0, 65},
                                             {100, 2, 7},  // farther distances share a score
                                             {128, 1, 128}}) {
    SCOPED_TRACE(shape.real);
    const std::vector<float> t = random_scores(shape.distances(), 4, 1);
    const std::vector<float> u = random_scores(shape.scratch_size(), 4, 2);
    const auto mixing = RelativeMixing::make(shape, t.data(), u.data());
    ASSERT_TRUE(mixing);
    EXPECT_LE(error_of(*mixing, shape.nodes(), 11, relative_matrix(shape, t, u)), 0x1p-22);
  }
}

TEST(RelativeMixing, IsRefusedWhereItsErrorCouldShow) {
  const generic::RelativeShape shape{64, 0, 64};
  std::vector<float> t(shape.distances(), 0.0f);
  EXPECT_TRUE(RelativeMixing::make(shape, t.data(), nullptr));
  t.front() = 40;  // one node attends to it alone; the sums of the others are 1e-16
  EXPECT_FALSE(RelativeMixing::make(shape, t.data(), nullptr));
  t.front() = NAN;
  EXPECT_FALSE(RelativeMixing::make(shape, t.data(), nullptr));
}

TEST(RelativeMixing, IsNotForFewNodes) {
  EXPECT_FALSE(RelativeMixing::pays({128, 1, 128}, 32));
  EXPECT_TRUE(RelativeMixing::pays({1024, 1, 1024}, 32));
}

// softmax of cos(0.01 i) sin(0.02 j) and the like: smooth, as scores of sinusoidal positions are.
std::vector<double> smooth_matrix(int64_t n, double sharpness) {
  std::vector<double> a(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const auto x = static_cast<double>(i), y = static_cast<double>(j);
      a[i * n + j] = sharpness * (std::sin(0.01 * x) * std::cos(0.02 * y) + std::sin(0.3 * y));
    }
  }
  reference::softmax_rows(n, n, a.data());
  return a;
}

FactoredMixing::Rows rows_of(const std::vector<double>& a, int64_t n) {
  return [&a, n](int64_t first, int64_t step, int64_t count, float* rows) {
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t j = 0; j < n; ++j) {
        rows[r * n + j] = static_cast<float>(a[(first + r * step) * n + j]);
      }
    }
  };
}

TEST(FactoredMixing, IsTheMatrixWithinItsBound) {
  constexpr int64_t n = 515;
  for (const double sharpness : {0.0, 2.0}) {
    const std::vector<double> a = smooth_matrix(n, sharpness);
    const auto mixing = FactoredMixing::make(n, n, rows_of(a, n));
    ASSERT_TRUE(mixing);
    EXPECT_LE(mixing->rank(), sharpness == 0 ? 1 : 20);
    EXPECT_LE(error_of(*mixing, n, 5, a), mixing_tolerance);
  }
}

TEST(FactoredMixing, IsRefusedWhereTheRankIsHigh) {
  constexpr int64_t n = 256;
  std::vector<double> a(n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) a[i * n + (i + 1) % n] = 1;
  EXPECT_FALSE(FactoredMixing::make(n, n, rows_of(a, n)));
  a.assign(n * n, NAN);
  EXPECT_FALSE(FactoredMixing::make(n, n, rows_of(a, n)));
}

// Whole networks: against the double reference, and as far from it as the matrices are.
TEST(Mixing, LeavesANetworksAnswersWithinRounding) {
  for (const char* preset : {"relative", "positional"}) {
    SCOPED_TRACE(preset);
    ModelSpec spec;
    apply_preset(preset, spec);
    spec.encoding = Encoding::sinusoidal;
    spec.real_nodes = 600;
    spec.width = spec.mlp_width = 8;
    spec.depth = 2;
    spec = resolve(spec);
    const Parameters<float> parameters = testing::random_parameters(spec, 3);
    RandomStream random(33, Purpose::test_data, 0, 0);
    const testing::RandomBatch data(spec, 1, 590, random);
    const std::vector<double> expected =
        reference_forward(spec, to_double(parameters), data.reference());
    std::vector<float> ours(expected.size()), by_matrix(expected.size());
    Network network(spec);
    network.forward(parameters, data.batch(), ours);
    Network(spec, {.path = Path::plain}).forward(parameters, data.batch(), by_matrix);
    EXPECT_NE(ours, by_matrix) << "both were computed in the same way";
    double largest = 1, worst = 0, worst_by_matrix = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      largest = std::max(largest, std::abs(expected[i]));
      worst = std::max(worst, std::abs(static_cast<double>(ours[i]) - expected[i]));
      worst_by_matrix =
          std::max(worst_by_matrix, std::abs(static_cast<double>(by_matrix[i]) - expected[i]));
    }
    EXPECT_LE(worst, 4e-6 * largest);
    EXPECT_LE(worst_by_matrix, 4e-6 * largest);
    // What needs the matrices still has them.
    const std::vector<float> attention = network.attention(parameters, data.batch());
    EXPECT_EQ(attention.size(), size_t{2} * 2 * 591 * 591);
  }
}

}  // namespace
}  // namespace posattn::engine
