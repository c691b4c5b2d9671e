// Scores by distance: the formulas as their papers have them.
#include <gmock/gmock.h>

#include <cmath>

#include "posattn/model/attention/rows.h"
#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

struct BiasCase {
  std::string bias;
  bool causal = true;
  int real = 6, scratch = 1, heads = 2, trained_at = 0;
};

class ScoreBiasOf {
 public:
  explicit ScoreBiasOf(const BiasCase& setting)
      : spec_(spec_of(setting)), plan_(plan_of(spec_)), parameters_(spec_), maps_(plan_) {
    Parameters<float> initial(spec_);
    initialise(initial, 3);
    parameters_ = to_double(initial);
  }
  std::span<double> operator[](std::string_view name) {
    return parameters_[names::of_layer(0, name)];
  }
  int nodes() const { return spec_.nodes(); }
  std::vector<double> scores() const {
    const NodeContext<double> context(spec_, parameters_, maps_, spec_.real_nodes);
    std::vector<double> all(int64_t{spec_.heads} * nodes() * nodes());
    row().scores(term(), spec_.heads, context, all.data());
    return all;
  }
  double score(int h, int i, int j) const { return scores()[(h * nodes() + i) * nodes() + j]; }
  // That of one tensor, for the gradient 1 of a score.
  std::vector<double> gradient(std::string_view name, int h, int i, int j, double value) {
    const NodeContext<double> context(spec_, parameters_, maps_, spec_.real_nodes);
    std::vector<double> dscores(int64_t{spec_.heads} * nodes() * nodes());
    dscores[(h * nodes() + i) * nodes() + j] = value;
    Parameters<double> gradients(spec_);
    row().gradient(term(), spec_.heads, context, dscores.data(), {gradients, nullptr});
    const auto found = gradients[names::of_layer(0, name)];
    return {found.begin(), found.end()};
  }

 private:
  static ModelSpec spec_of(const BiasCase& setting) {
    ModelSpec spec;
    spec.kinds = "data score-bias=" + setting.bias;
    spec.real_nodes = setting.real;
    spec.scratch_nodes = setting.scratch;
    spec.heads = setting.heads;
    spec.width = 2 * setting.heads;
    spec.depth = 1;
    spec.causal = setting.causal;
    if (setting.trained_at > 0) {
      const int asked = spec.real_nodes;
      spec.real_nodes = setting.trained_at;
      return at_length(resolve(spec), asked).value();
    }
    return resolve(spec);
  }
  const PositionTerm& term() const { return *plan_.layers[0].attention.positions; }
  const PositionFunctions<double>& row() const { return row_of(term().kind).in<double>(); }

  ModelSpec spec_;
  Plan plan_;
  Parameters<double> parameters_;
  LinearMaps<double> maps_;
};

TEST(ScoreBias, AlibiHasTheSlopesOfItsPaper) {
  const auto slopes = [](int heads) {
    std::vector<double> found;
    const ScoreBiasOf alibi({.bias = "alibi", .heads = heads});
    for (int h = 0; h < heads; ++h) {
      found.push_back(-alibi.score(h, 3, 2));
      EXPECT_EQ(alibi.score(h, 5, 1), 4 * alibi.score(h, 3, 2));
      EXPECT_EQ(alibi.score(h, 4, 4), 0);
    }
    return found;
  };
  const auto power = [](double exponent) { return DoubleNear(std::exp2(-exponent), 1e-15); };
  EXPECT_THAT(slopes(1), ElementsAre(power(8)));
  EXPECT_THAT(slopes(2), ElementsAre(power(4), power(8)));
  EXPECT_THAT(slopes(3), ElementsAre(power(4), power(8), power(2)));
  EXPECT_THAT(slopes(6), ElementsAre(power(2), power(4), power(6), power(8), power(1), power(3)));
}

TEST(ScoreBias, ScratchNodesHaveNoneAndLaterNodesThatOfTheirDistance) {
  for (const char* bias : {"alibi", "kerple", "fire", "buckets"}) {
    ScoreBiasOf all({.bias = bias, .causal = false, .scratch = 2});
    if (std::string_view(bias) == "buckets") {
      for (double& score : all["attn.buckets"]) score = 1;
    }
    for (int h = 0; h < 2; ++h) {
      for (int node = 0; node < all.nodes(); ++node) {
        EXPECT_EQ(all.score(h, 6, node), 0) << bias;
        EXPECT_EQ(all.score(h, node, 7), 0) << bias;
      }
      EXPECT_EQ(all.score(h, 2, 4), all.score(h, 2, 0)) << bias;
      EXPECT_NE(all.score(h, 2, 4), 0) << bias;
    }
  }
}

TEST(ScoreBias, KerpleIsALogarithmWithBoundedNumbers) {
  ScoreBiasOf kerple({.bias = "kerple"});
  std::ranges::copy(std::vector<double>{0.5, -3}, kerple["attn.kerple_p"].begin());
  std::ranges::copy(std::vector<double>{0.25, 0.75}, kerple["attn.kerple_a"].begin());
  EXPECT_DOUBLE_EQ(kerple.score(0, 5, 1), -0.5 * std::log(2.0));
  EXPECT_DOUBLE_EQ(kerple.score(1, 5, 1), -0.01 * std::log(4.0));
  // Below the bound a gradient passes where it raises the number.
  EXPECT_THAT(kerple.gradient("attn.kerple_p", 0, 5, 1, 1), ElementsAre(-std::log(2.0), 0));
  EXPECT_THAT(kerple.gradient("attn.kerple_p", 1, 5, 1, -1), ElementsAre(0, 0));
  EXPECT_THAT(kerple.gradient("attn.kerple_p", 1, 5, 1, 1), ElementsAre(0, -std::log(4.0)));
}

TEST(ScoreBias, KerpleStartsWithPositiveNumbers) {
  ScoreBiasOf kerple({.bias = "kerple", .heads = 64});
  const auto p = kerple["attn.kerple_p"], a = kerple["attn.kerple_a"];
  for (int h = 0; h < 64; ++h) {
    EXPECT_TRUE(p[h] >= 0 && p[h] < 2 && a[h] >= 0 && a[h] < 1);
  }
  EXPECT_GT(*std::ranges::max_element(p), 1.5);
}

// Where a new bucket begins, by the formula of the released code.
TEST(ScoreBias, BucketsAreThoseOfT5) {
  const auto starts = [](bool causal, int from, int to) {
    const int real = 200;
    ScoreBiasOf buckets({.bias = "buckets", .causal = causal, .real = real, .heads = 1});
    for (int b = 0; b < 32; ++b) buckets["attn.buckets"][b] = b;
    const std::vector<double> scores = buckets.scores();
    const auto bucket = [&](int distance) {  // of i - j
      const int i = distance > 0 ? distance : 0, j = distance > 0 ? 0 : -distance;
      return static_cast<int>(scores[i * buckets.nodes() + j]);
    };
    std::vector<std::pair<int, int>> found;
    const int step = from < to ? 1 : -1;
    for (int d = from; d != to; d += step) {
      if (found.empty() || bucket(d) != found.back().second) found.push_back({d, bucket(d)});
    }
    return found;
  };
  using Starts = std::vector<std::pair<int, int>>;
  EXPECT_EQ(starts(true, 14, 199), (Starts{{14, 14},
                                           {15, 15},
                                           {16, 16},
                                           {19, 17},
                                           {21, 18},
                                           {24, 19},
                                           {27, 20},
                                           {31, 21},
                                           {35, 22},
                                           {40, 23},
                                           {46, 24},
                                           {52, 25},
                                           {59, 26},
                                           {67, 27},
                                           {77, 28},
                                           {87, 29},
                                           {99, 30},
                                           {113, 31}}));
  EXPECT_EQ(starts(false, 6, 199), (Starts{{6, 6},
                                           {7, 7},
                                           {8, 8},
                                           {12, 9},
                                           {16, 10},
                                           {23, 11},
                                           {32, 12},
                                           {46, 13},
                                           {64, 14},
                                           {91, 15}}));
  EXPECT_EQ(starts(false, -6, -40),
            (Starts{{-6, 22}, {-7, 23}, {-8, 24}, {-12, 25}, {-16, 26}, {-23, 27}, {-32, 28}}));
}

// At twice the length of training, with a share of it that some rows exceed.
TEST(ScoreBias, FireIsAnMlpOfTheNormalisedDistance) {
  ScoreBiasOf fire({.bias = "fire", .real = 12, .trained_at = 6});
  fire["attn.fire_c"][0] = -0.3;
  fire["attn.fire_share"][0] = 1.1;
  for (const auto& [i, j] : {std::pair{2, 0}, {6, 6}, {9, 1}, {11, 3}}) {
    const double most = std::max(double(i), 6.6);
    const double x = std::log(1 + 0.3 * (i - j)) / (std::log(1 + 0.3 * most) + 1e-6);
    for (int h = 0; h < 2; ++h) {
      double score = fire["attn.fire.2.bias"][h];
      for (int u = 0; u < 32; ++u) {
        const double before = fire["attn.fire.0.weight"][u] * x + fire["attn.fire.0.bias"][u];
        score += fire["attn.fire.2.weight"][h * 32 + u] * std::max(0.0, before);
      }
      EXPECT_NEAR(fire.score(h, i, j), score, 1e-13);
    }
  }
  EXPECT_EQ(ScoreBiasOf({.bias = "fire"})["attn.fire_c"][0], double{0.1f});
}

TEST(ScoreBias, ModelsOfDistancesWorkAtAnyLength) {
  for (const char* kind : {"data score-bias=alibi", "data score-bias=buckets",
                           "data score-bias=fire", "dape", "kernel"}) {
    ModelSpec spec;
    spec.kinds = kind;
    spec.causal = true;
    spec = resolve(spec);
    const auto longer = at_length(spec, 50);
    ASSERT_TRUE(longer.has_value()) << kind;
    EXPECT_EQ(ParameterLayout(*longer).buffer_size(), ParameterLayout(spec).buffer_size());
    EXPECT_EQ(spec_from_json(to_json(spec)), spec);
  }
}

}  // namespace
}  // namespace posattn
