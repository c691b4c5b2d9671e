// What the rows of weightings, scores and score biases promise, apart from whole networks.
#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <vector>

#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Numbers = std::vector<double>;

Numbers random_numbers(size_t count, uint64_t seed) {
  RandomStream random(seed, Purpose::test_data, 0, 0);
  Numbers x(count);
  for (double& v : x) v = random.uniform(-1, 1);
  return x;
}

// One head of n nodes with queries and keys [n, 2 size].
ScoreParts<double> one_head(const Numbers& query_key, int64_t nodes, Scores scores,
                            const Numbers* positions = nullptr) {
  ScoreParts<double> parts;
  parts.heads = 1;
  parts.keys.nodes = nodes;
  parts.keys.stride = static_cast<int64_t>(query_key.size()) / nodes;
  parts.keys.size = parts.keys.stride / 2;
  parts.query_key = query_key.data();
  parts.data = &row_of(scores);
  parts.keys.factor = parts.data->factor(parts.keys.size);
  if (positions != nullptr) parts.positions = positions->data();
  return parts;
}

struct Weights {
  Numbers attention, kept;
};
Weights weights(Weighting weighting, const ScoreParts<double>& parts) {
  const auto square = static_cast<size_t>(parts.keys.nodes * parts.keys.nodes);
  Weights made{Numbers(square), Numbers(square)};
  Numbers scratch;
  row_of(weighting).in<double>().weights(parts, {}, made.attention.data(), made.kept.data(),
                                         scratch);
  return made;
}

TEST(ReluRows, RowsSumToOneOrToZero) {
  const Numbers query_key = random_numbers(7 * 6, 1), positions = random_numbers(49, 2);
  ScoreParts<double> parts = one_head(query_key, 7, Scores::dot, &positions);
  for (const bool causal : {false, true}) {
    parts.keys.causal = causal;
    const Numbers a = weights(Weighting::relu_rows, parts).attention;
    int read = 0;
    for (int i = 0; i < 7; ++i) {
      double sum = 0;
      for (int j = 0; j < 7; ++j) {
        sum += a[i * 7 + j];
        if (causal && j > i) EXPECT_EQ(a[i * 7 + j], 0);
      }
      read += sum != 0;
      if (sum != 0) EXPECT_NEAR(sum, 1, 1e-15);
    }
    EXPECT_GT(read, 3);
  }
}

TEST(ReluRows, ReadsNothingWhereAllScoresAreNegative) {
  const Numbers query_key = {-1, 1, -1, 1, 1, 1}, positions(9, 0.5);  // the last node reads all
  const ScoreParts<double> parts = one_head(query_key, 3, Scores::dot, &positions);
  const Weights made = weights(Weighting::relu_rows, parts);
  const double third = made.attention[6];
  EXPECT_NEAR(third, 1.0 / 3, 1e-15);
  EXPECT_THAT(made.attention, ElementsAre(0, 0, 0, 0, 0, 0, third, third, third));
  Numbers d = random_numbers(9, 3), dquery_key(6);
  row_of(Weighting::relu_rows)
      .in<double>()
      .gradient(parts, made.attention.data(), made.kept.data(), d.data(), dquery_key.data());
  EXPECT_THAT(Numbers(d.begin(), d.begin() + 6), Each(0));
  EXPECT_THAT((Numbers{dquery_key[0], dquery_key[2]}), Each(0));  // queries that read nothing
  EXPECT_NE(dquery_key[5], 0);
}

TEST(Relu, DividesByTheNodesAttendedTo) {
  const Numbers query_key = {2, 1, 2, -1, 2, 3};
  ScoreParts<double> parts = one_head(query_key, 3, Scores::dot);
  EXPECT_THAT(weights(Weighting::relu, parts).attention,
              ElementsAre(2. / 3, 0, 2, 2. / 3, 0, 2, 2. / 3, 0, 2));
  parts.keys.causal = true;
  EXPECT_THAT(weights(Weighting::relu, parts).attention,
              ElementsAre(2, 0, 0, 1, 0, 0, 2. / 3, 0, 2));
}

TEST(Sums, AreTheScores) {
  const Numbers query_key = {2, 1, 2, -1};
  ScoreParts<double> parts = one_head(query_key, 2, Scores::dot);
  EXPECT_THAT(weights(Weighting::sums, parts).attention, ElementsAre(2, -2, 2, -2));
  parts.keys.causal = true;
  EXPECT_THAT(weights(Weighting::sums, parts).attention, ElementsAre(2, 0, 2, -2));
}

// Against the definition, with the gradient at the first of the largest, in both precisions.
template <class T>
void check_max_plus(bool causal) {
  constexpr int n = 6, size = 5, stride = 7;
  RandomStream random(6, Purpose::test_data, 0, causal);
  const auto numbers = [&](int count) {
    std::vector<T> x(count);
    for (T& v : x) v = static_cast<T>(random.below(4));  // with ties
    return x;
  };
  const std::vector<T> a = numbers(n * n), v = numbers(n * stride), d_o = numbers(n * stride);
  std::vector<T> o(n * stride), dv(n * stride, 9), da(n * n, 9), dv_expected(n * stride, 9);
  const generic::HeadShape values{.causal = causal, .nodes = n, .size = size, .stride = stride};
  const auto& row = row_of(Weighting::max_plus).in<T>();
  row.mix(values, a.data(), v.data(), o.data());
  row.mix_gradient(values, a.data(), v.data(), d_o.data(), dv.data(), false, da.data());
  std::vector<T> da_expected(n * n);
  for (int i = 0; i < n * size; ++i) dv_expected[i / size * stride + i % size] = 0;
  for (int i = 0; i < n; ++i) {
    for (int c = 0; c < size; ++c) {
      int best = 0;
      for (int j = 0; j < (causal ? i + 1 : n); ++j) {
        if (a[i * n + j] + v[j * stride + c] > a[i * n + best] + v[best * stride + c]) best = j;
      }
      EXPECT_EQ(o[i * stride + c], a[i * n + best] + v[best * stride + c]);
      dv_expected[best * stride + c] += d_o[i * stride + c];
      da_expected[i * n + best] += d_o[i * stride + c];
    }
  }
  EXPECT_EQ(dv, dv_expected);
  EXPECT_EQ(da, da_expected);
  row.mix_gradient(values, a.data(), v.data(), d_o.data(), dv.data(), true, da.data());
  for (T& x : da_expected) x *= 2;
  EXPECT_EQ(da, da_expected);
}
TEST(MaxPlus, GradientGoesToTheFirstOfTheLargest) {
  for (const bool causal : {false, true}) {
    check_max_plus<float>(causal);
    check_max_plus<double>(causal);
  }
}

// A distance: 0 of a point to itself, the same both ways, of degree 1, blind to what is added to
// all coordinates; and the triangle inequality.
TEST(TropicalScores, AreMinusADistance) {
  constexpr int n = 5, size = 4;
  const Numbers points = random_numbers(n * size, 8);
  const auto scores = [&](double factor, double shift) {
    Numbers query_key;
    for (int i = 0; i < n; ++i) {
      for (const double added : {0.0, shift}) {
        for (int c = 0; c < size; ++c) query_key.push_back(factor * points[i * size + c] + added);
      }
    }
    Numbers s(n * n), scratch;
    make_scores(one_head(query_key, n, Scores::tropical), true, s.data(), scratch);
    return s;
  };
  const Numbers s = scores(1, 0), scaled = scores(8, 0), shifted = scores(1, 7);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      EXPECT_EQ(s[i * n + j], s[j * n + i]);
      EXPECT_EQ(s[i * n + j] == 0, i == j);
      EXPECT_EQ(scaled[i * n + j], 8 * s[i * n + j]);
      EXPECT_NEAR(shifted[i * n + j], s[i * n + j], 1e-14);
      for (int k = 0; k < n; ++k) EXPECT_GE(s[i * n + k], s[i * n + j] + s[j * n + k] - 1e-15);
    }
  }
}

// The stated surrogate: the derivative of (2 / pi) arctan(pi x / r) at a fixed r.
TEST(SignKeys, HaveTheStatedSurrogateGradient) {
  constexpr int rows = 3, heads = 2, size = 5;
  constexpr double pi = 3.14159265358979323846;
  Numbers x = random_numbers(rows * heads * 2 * size, 4);
  const Numbers log_scale = {0.3, -0.7}, d_y = random_numbers(x.size(), 5);
  x[3] = 0;
  for (int c = 0; c < size; ++c) x[size + c] = 0;  // a whole key
  Numbers y = x, kept(x.size()), d = d_y, dlog_scale(heads), dlog_expected(heads);
  generic::sign_keys(rows, heads, size, log_scale.data(), y.data(), kept.data());
  generic::sign_keys_gradient(rows, heads, size, log_scale.data(), y.data(), kept.data(), d.data(),
                              dlog_scale.data());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t vector = i / size, head = vector / 2 % heads;
    const double factor = vector % 2 == 0 ? std::exp(log_scale[head]) : 1;
    double square = 0;
    for (int c = 0; c < size; ++c) square += x[vector * size + c] * x[vector * size + c];
    const double r = std::sqrt(square / size), h = 1e-6;
    EXPECT_EQ(y[i], x[i] == 0 ? 0 : std::copysign(factor, x[i]));
    const auto smooth = [&](double at) { return 2 / pi * std::atan(pi * at / r); };
    const double slope = r == 0 ? 0 : (smooth(x[i] + h) - smooth(x[i] - h)) / (2 * h);
    EXPECT_NEAR(d[i], factor * slope * d_y[i], 1e-8) << i;
    if (vector % 2 == 0) dlog_expected[head] += d_y[i] * y[i];
  }
  for (int h = 0; h < heads; ++h) EXPECT_NEAR(dlog_scale[h], dlog_expected[h], 1e-14);
}

// In float and double alike where no number is near 0: signs are exact.
TEST(SignKeys, FloatAgreesWithDouble) {
  constexpr int rows = 20, heads = 2, size = 33;
  RandomStream random(5, Purpose::test_data, 0, 0);
  std::vector<float> x(rows * heads * 2 * size), kept(x.size()), d(x.size()), dlog(heads);
  for (float& v : x) v = random.uniform(0.01f, 2) * (random.below(2) == 0 ? 1.0f : -1.0f);
  for (float& v : d) v = random.uniform(-1, 1);
  const std::vector<float> log_scale = {0.5, -1};
  Numbers x64(x.begin(), x.end()), kept64(x.size()), d64(d.begin(), d.end()), dlog64(heads);
  const Numbers log_scale64(log_scale.begin(), log_scale.end());
  generic::sign_keys(rows, heads, size, log_scale.data(), x.data(), kept.data());
  generic::sign_keys(rows, heads, size, log_scale64.data(), x64.data(), kept64.data());
  generic::sign_keys_gradient(rows, heads, size, log_scale.data(), x.data(), kept.data(), d.data(),
                              dlog.data());
  generic::sign_keys_gradient(rows, heads, size, log_scale64.data(), x64.data(), kept64.data(),
                              d64.data(), dlog64.data());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_NEAR(x[i], x64[i], 1e-6);
    EXPECT_NEAR(d[i], d64[i], 1e-5);
  }
  for (int h = 0; h < heads; ++h) EXPECT_NEAR(dlog[h], dlog64[h], 1e-4);
}

// Scores of one head of a score bias at this length.
std::vector<float> bias_scores(ScoreBias bias, int nodes, int active) {
  ModelSpec spec;
  spec.attention = AttentionSource::data;
  spec.score_bias = bias;
  spec.real_nodes = nodes;
  spec.heads = spec.width = spec.depth = spec.mlp_width = 1;
  spec = resolve(spec);
  const Plan plan = plan_of(spec);
  const Parameters<float> parameters(spec);
  LinearMaps<float> maps(plan);
  maps.prepare(parameters);
  const NodeContext<float> context(spec, parameters, maps, active);
  std::vector<float> scores(int64_t{1} * context.count() * context.count(), 9);
  row_of(bias).in<float>().scores(*plan.layers[0].attention.positions, 1, context, scores.data());
  return scores;
}

// Theorem 1 of arXiv 2501.16745: Gray codes of numbers 1 apart differ in one bit, those of any
// other power of two apart in two.
TEST(GrayScores, SatisfyTheDistanceTheorem) {
  constexpr int n = 1200, bits = 11;
  const std::vector<float> scores = bias_scores(ScoreBias::gray, n, n);
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(scores[i * (n + 1) + i], bits);
    for (int64_t distance = 1; i + distance < n; distance *= 2) {
      const float expected = bits - (distance == 1 ? 1 : 2);
      ASSERT_EQ(scores[i * (n + 1) + i + distance], expected) << i << ", " << distance;
      ASSERT_EQ(scores[(i + distance) * (n + 1) + i], expected);
    }
    EXPECT_EQ(scores[i * (n + 1) + n], 0);  // of the scratch node
    EXPECT_EQ(scores[n * (n + 1) + i], 0);
  }
}

// Appending the codes to the bits of queries and keys adds the scores to their agreements.
TEST(GrayScores, AreAgreementsOfAppendedCodes) {
  constexpr int n = 40;
  const std::vector<float> scores = bias_scores(ScoreBias::gray, n, n);
  const uint32_t mask = (1u << 10) - 1;
  RandomStream random(3, Purpose::test_data, 0, 0);
  for (uint32_t i = 0; i < n; ++i) {
    for (uint32_t j = 0; j < n; ++j) {
      const uint64_t q = random.below(1u << 20), k = random.below(1u << 20);
      const auto appended = [&](uint64_t word, uint32_t at) {
        return word << 10 | ((at ^ (at >> 1)) & mask);
      };
      const auto agreements = [](uint64_t x, uint64_t y, int bits) {
        return bits - std::popcount(x ^ y);
      };
      EXPECT_EQ(scores[i * (n + 1) + j],
                agreements(appended(q, i), appended(k, j), 30) - agreements(q, k, 20));
    }
  }
}

// A model is the same at a shorter length; log scores depend on the length.
TEST(IntegerScores, FollowTheirFormulas) {
  const std::vector<float> log = bias_scores(ScoreBias::log, 12, 12);
  EXPECT_THAT(std::vector<float>(log.begin(), log.begin() + 13),
              ElementsAre(4, 3, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0));
  for (const int active : {1, 2, 7, 12}) {
    const std::vector<float> now = bias_scores(ScoreBias::log, 12, active),
                             gray = bias_scores(ScoreBias::gray, 12, active),
                             all = bias_scores(ScoreBias::gray, 12, 12);
    for (int i = 0; i < active; ++i) {
      for (int j = 0; j < active; ++j) {
        const double share = (active - 1.0) / (std::abs(i - j) + 1);
        EXPECT_EQ(now[i * (active + 1) + j],
                  active == 1 ? 0 : std::max(0.0, std::ceil(std::log2(share))));
        EXPECT_EQ(gray[i * (active + 1) + j], all[i * 13 + j]);
      }
    }
  }
}

}  // namespace
}  // namespace posattn
