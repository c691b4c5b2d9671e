#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "posattn/base/random.h"
#include "posattn/bounds/count_bound.h"
#include "posattn/simulation/matrix.h"

namespace posattn::bounds {
namespace {

using Vector = std::vector<double>;

// Lemma 3. Linear functions with ||w|| <= size on `points` points with ||x|| <= length, to `radius`
// at each of them: (size length / radius)^2 ln(2 points + 1).
double linear_entropy(double size, double length, double radius, double points) {
  const double ratio = size * length / radius;
  return ratio * ratio * std::log(2 * points + 1);
}

double inner(const Vector& a, const Vector& b) {
  return simulation::dot(a.data(), b.data(), a.size());
}

// Uniform in direction, of this length.
Vector on_sphere(RandomStream& random, int size, double length) {
  Vector x(static_cast<size_t>(size));
  for (double& value : x) value = random.normal();
  const double norm = std::sqrt(inner(x, x));
  for (double& value : x) value *= length / norm;
  return x;
}

Vector in_simplex(RandomStream& random, int size, double sharpness) {
  Vector p(static_cast<size_t>(size));
  double sum = 0;
  for (double& value : p) sum += value = std::exp(sharpness * random.normal());
  for (double& value : p) value /= sum;
  return p;
}

// How many of many candidates are further than `apart` from all chosen before.
template <class Distance>
size_t separated(const std::vector<Vector>& candidates, double apart, Distance distance) {
  std::vector<Vector> chosen;
  for (const Vector& candidate : candidates) {
    if (std::ranges::all_of(chosen,
                            [&](const Vector& c) { return distance(c, candidate) > apart; })) {
      chosen.push_back(candidate);
    }
  }
  return chosen.size();
}

// The proof of lemma 3, carried out: few corrections make v as good as w on all points.
TEST(Covering, CorrectionsOfLemma3) {
  RandomStream random(1, Purpose::test_data, 0, 0);
  for (int trial = 0; trial < 300; ++trial) {
    const int size = 1 + static_cast<int>(random.below(8)),
              points = 1 + static_cast<int>(random.below(30));
    const double length = 2, weight = 0.1 + 3 * random.uniform(), radius = 0.3 + random.uniform();
    const Vector w = on_sphere(random, size, weight);
    std::vector<Vector> x;
    x.reserve(static_cast<size_t>(points));
    for (int t = 0; t < points; ++t)
      x.push_back(on_sphere(random, size, length * random.uniform()));
    Vector difference = w;  // w - v
    double steps = 0;
    const auto wrong = [&](const Vector& point) {
      return std::abs(inner(difference, point)) > radius;
    };
    for (auto at = std::ranges::find_if(x, wrong); at != x.end();
         at = std::ranges::find_if(x, wrong)) {
      const double sign = inner(difference, *at) > 0 ? 1 : -1;
      simulation::add(difference, *at, -sign * radius / (length * length));
      ++steps;
    }
    EXPECT_LE(steps * std::log(2.0 * points + 1), linear_entropy(weight, length, radius, points));
  }
}

// Points further apart than two radii need a cover element each.
TEST(Covering, SeparatedLinearFunctions) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  constexpr int points = 6;
  for (const double radius : {0.2, 0.4, 0.8, 1.6}) {
    std::vector<Vector> x, candidates;
    for (int t = 0; t < points; ++t) x.push_back(on_sphere(random, 4, 1));
    for (int c = 0; c < 1000; ++c) candidates.push_back(on_sphere(random, 4, 1.5));
    const size_t found = separated(candidates, 2 * radius, [&](const Vector& a, const Vector& b) {
      double largest = 0;
      for (const Vector& point : x)
        largest = std::max(largest, std::abs(inner(a, point) - inner(b, point)));
      return largest;
    });
    EXPECT_LE(std::log(found), linear_entropy(1.5, 1, radius, points)) << radius;
    EXPECT_GT(found, radius < 1 ? 2 : 0);
  }
}

TEST(Covering, SeparatedAttention) {
  RandomStream random(3, Purpose::test_data, 0, 0);
  for (const int nodes : {2, 3, 5, 9}) {
    for (const double radius : {0.1, 0.3, 0.9, 2.0}) {
      std::vector<Vector> candidates;
      candidates.reserve(1000);
      for (int c = 0; c < 1000; ++c)
        candidates.push_back(in_simplex(random, nodes, 0.1 * (c % 50)));
      const size_t found = separated(candidates, 2 * radius, [](const Vector& a, const Vector& b) {
        double sum = 0;
        for (size_t j = 0; j < a.size(); ++j) sum += std::abs(a[j] - b[j]);
        return sum;
      });
      EXPECT_LE(std::log(found), attention_row_entropy(std::log(radius), nodes) + 1e-12)
          << nodes << " " << radius;
    }
  }
}

// Lemma 5: multiples of 1/k by largest remainders are as near as its k promises.
TEST(Covering, LargestRemainders) {
  RandomStream random(4, Purpose::test_data, 0, 0);
  for (int trial = 0; trial < 500; ++trial) {
    const int nodes = 2 + static_cast<int>(random.below(12));
    const double radius = 0.05 + 1.9 * random.uniform();
    const auto k = std::round(std::exp(*log_attention_steps(std::log(radius), nodes, {})));
    const Vector p = in_simplex(random, nodes, 3 * random.uniform());
    std::vector<int> order(p.size());
    std::iota(order.begin(), order.end(), 0);
    const auto remainder = [&](int j) { return p[j] * k - std::floor(p[j] * k); };
    std::ranges::sort(order, [&](int a, int b) { return remainder(a) > remainder(b); });
    double left = k, error = 0;
    for (const double value : p) left -= std::floor(value * k);
    for (const int j : order) {
      const double rounded = std::floor(p[j] * k) + (left > 0.5 ? 1 : 0);
      left -= left > 0.5 ? 1 : 0;
      error += std::abs(rounded / k - p[j]);
    }
    EXPECT_NEAR(left, 0, 1e-6);
    EXPECT_LE(error, radius + 1e-9);
  }
}

TEST(Covering, CountsByHand) {
  EXPECT_NEAR(row_profiles(1), std::log(12.0), 1e-12);           // C(12, 1)
  EXPECT_NEAR(row_profiles(2), std::log(24.0 * 23 / 2), 1e-12);  // C(24, 2)
  // N = 3, radius 1/2: k = 3, C(5, 2) = 10.
  EXPECT_NEAR(attention_row_entropy(std::log(0.5), 3), std::log(10.0), 1e-12);
  EXPECT_EQ(attention_row_entropy(std::log(2.0), 3), 0);
  EXPECT_EQ(attention_row_entropy(-5, 1), 0);  // a single node attends to itself
  // Many nodes: drawing needs fewer steps than rounding.
  const double few = attention_row_entropy(0, 2000, 100), many = attention_row_entropy(0, 2000);
  EXPECT_LT(few, many);
  EXPECT_NEAR(std::exp(*log_attention_steps(0, 2000, 100)), std::floor(8 * std::log(200.0)) + 1,
              1e-9);
}

TEST(Covering, NoOverflow) {
  const double entropy = attention_row_entropy(-1e6, 9, 1000);
  EXPECT_NEAR(entropy / 8e6, 1, 1e-4);
}

}  // namespace
}  // namespace posattn::bounds
