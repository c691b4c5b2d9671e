// Convolutions over scores: against the formula, and what they must not see.
#include "posattn/model/attention/score_convolution.h"

#include <gmock/gmock.h>

#include <cmath>

#include "posattn/model/spec/random_spec_test.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

using testing::random_parameters;
using testing::RandomBatch;

struct Convolved {
  std::string bias;
  int window;
  bool causal;
  int scratch = 1;
};

void PrintTo(const Convolved& c, std::ostream* out) {
  *out << c.bias << ", window " << c.window << (c.causal ? ", causal, " : ", ") << c.scratch;
}

ModelSpec spec_of(const Convolved& c, bool with_window) {
  ModelSpec spec;
  spec.kinds = "data score-bias=" + c.bias +
               (with_window ? " score-window=" + std::to_string(c.window) : std::string());
  spec.real_nodes = 7;
  spec.scratch_nodes = c.scratch;
  spec.heads = 3;
  spec.width = 6;
  spec.depth = 1;
  spec.causal = c.causal;
  return resolve(spec);
}

class ScoreWindow : public ::testing::TestWithParam<Convolved> {
 protected:
  const Convolved c_ = GetParam();
  const ModelSpec spec_ = spec_of(c_, true);
  const Parameters<double> parameters_ = to_double(random_parameters(spec_, 8));
  const int heads_ = spec_.heads, n_ = spec_.nodes(), real_ = spec_.real_nodes;

  double weight(std::string_view map, int out, int in, int k, int inputs) const {
    const auto w = parameters_[names::of_layer(0, names::weight(map))];
    return w[(int64_t{out} * inputs + in) * c_.window + k];
  }
  double bias(std::string_view map, int out) const {
    return parameters_[names::of_layer(0, names::bias(map))][out];
  }
  size_t at(int h, int i, int j) const { return (size_t(h) * n_ + i) * n_ + j; }

  // log A of the model without a window is S + B, but for a number of each row.
  std::vector<double> attention(const ModelSpec& spec, const RandomBatch& data) const {
    Parameters<double> same(spec);
    for (const TensorInfo& t : same.layout().tensors()) {
      std::ranges::copy(parameters_[t.name], same.slice(t).begin());
    }
    return reference_attention(spec, same, data.reference());
  }
};

// One row of one sample as the formula says, over an explicit image of all windows.
TEST_P(ScoreWindow, IsTheProductOfItsWindows) {
  RandomStream random(2, Purpose::test_data, 0, 0);
  const int channels = score_channels(spec_), margin = c_.window / 2;
  std::vector<double> data(heads_ * n_ * n_), positions(data.size());
  for (double& s : data) s = random.uniform(-2, 2);
  for (double& s : positions) s = random.uniform(-2, 2);
  // Queries whose products with unit keys are these scores.
  const int size = n_;
  std::vector<double> query_key(n_ * heads_ * 2 * size);
  for (int i = 0; i < n_; ++i) {
    for (int h = 0; h < heads_; ++h) {
      double* q = &query_key[(i * heads_ + h) * 2 * size];
      for (int j = 0; j < n_; ++j) q[j] = data[at(h, i, j)];
      q[size + i] = 1;
    }
  }
  const Plan plan = plan_of(spec_);
  const LinearMaps<double> maps(plan);
  const NodeContext<double> nodes(spec_, parameters_, maps, real_);
  const AttentionBlock& block = plan.layers[0].attention;
  ScoreParts<double> parts{.keys = {.causal = c_.causal,
                                    .nodes = n_,
                                    .size = size,
                                    .stride = heads_ * 2 * size,
                                    .factor = 1},
                           .heads = heads_,
                           .query_key = query_key.data(),
                           .positions = block.positions ? positions.data() : nullptr,
                           .data = &row_of(Scores::dot),
                           .block = &block};
  const ScoreConvolution<double> convolution(block, nodes);
  std::vector<double> kept(convolution.kept_size());
  ScoreConvolution<double>::Memory memory;
  convolution.forward(parts, kept.data(), memory);

  const auto z = [&](int c, int i, int j) {
    if (j < 0 || j >= real_ || (c_.causal && j > i)) return 0.0;
    return c < heads_ ? data[at(c, i, j)] : positions[at(c - heads_, i, j)];
  };
  const auto u = [&](int out, int i, int j) {
    if (j < 0 || j >= real_) return 0.0;
    double sum = bias(names::score_convolution_first, out);
    for (int c = 0; c < channels; ++c) {
      for (int k = 0; k < c_.window; ++k) {
        sum +=
            weight(names::score_convolution_first, out, c, k, channels) * z(c, i, j + k - margin);
      }
    }
    return sum > 0 ? sum : 0.01 * sum;
  };
  for (int h = 0; h < heads_; ++h) {
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < (c_.causal ? i + 1 : n_); ++j) {
        double expected = data[at(h, i, j)] + (block.positions ? positions[at(h, i, j)] : 0);
        if (i < real_ && j < real_) {
          expected += bias(names::score_convolution_last, h);
          for (int out = 0; out < score_convolution_hidden; ++out) {
            for (int k = 0; k < c_.window; ++k) {
              expected +=
                  weight(names::score_convolution_last, h, out, k, score_convolution_hidden) *
                  u(out, i, j + k - margin);
            }
          }
        }
        EXPECT_NEAR(kept[at(h, i, j)], expected, 1e-13) << h << " " << i << " " << j;
      }
    }
  }
}

// A change of token j leaves earlier rows as they are.
TEST_P(ScoreWindow, RowsDoNotSeeLaterNodes) {
  if (!c_.causal) GTEST_SKIP();
  RandomStream random(3, Purpose::test_data, 0, 0);
  RandomBatch data(spec_, 1, real_, random);
  const std::vector<double> before = attention(spec_, data);
  for (int changed = 1; changed < real_; ++changed) {
    RandomBatch other = data;
    other.inputs64[changed] += 1;
    const std::vector<double> after = attention(spec_, other);
    for (int h = 0; h < heads_; ++h) {
      for (int i = 0; i < real_; ++i) {
        bool same = true;
        for (int j = 0; j < n_; ++j) same = same && before[at(h, i, j)] == after[at(h, i, j)];
        EXPECT_EQ(same, i < changed) << "row " << i << ", node " << changed;
      }
    }
  }
}

TEST_P(ScoreWindow, ScratchNodesStayOutside) {
  RandomStream random(4, Purpose::test_data, 0, 0);
  const RandomBatch data(spec_, 1, real_, random);
  const std::vector<double> mixed = attention(spec_, data),
                            plain = attention(spec_of(c_, false), data);
  for (int h = 0; h < heads_; ++h) {
    for (int i = real_; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) EXPECT_NEAR(mixed[at(h, i, j)], plain[at(h, i, j)], 1e-15);
    }
    EXPECT_GT(std::abs(mixed[at(h, 5, 2)] - plain[at(h, 5, 2)]), 1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ScoreWindow,
                         ::testing::Values(Convolved{"kerple", 1, false},
                                           Convolved{"none", 3, true},
                                           Convolved{"kerple", 3, true, 0},
                                           Convolved{"alibi", 5, false, 2},
                                           Convolved{"direct", 9, true}, Convolved{"none", 1, true},
                                           Convolved{"distance", 15, false}));

// An MLP of the numbers of one pair: the order of keys does not matter without positions.
TEST(ScoreWindowOfOne, DoesNotSeeNeighbours) {
  for (const int window : {1, 3}) {
    const ModelSpec spec = spec_of({"none", window, false, 0}, true);
    const Parameters<double> parameters = to_double(random_parameters(spec, 1));
    RandomStream random(5, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 1, 7, random);
    RandomBatch swapped = data;
    std::swap(swapped.inputs64[2], swapped.inputs64[5]);
    std::vector<double> a = reference_forward(spec, parameters, data.reference());
    const std::vector<double> b = reference_forward(spec, parameters, swapped.reference());
    std::swap(a[2], a[5]);
    double difference = 0;
    for (size_t i = 0; i < a.size(); ++i) difference = std::max(difference, std::abs(a[i] - b[i]));
    if (window == 1) {
      EXPECT_LT(difference, 1e-13);
    } else {
      EXPECT_GT(difference, 1e-4);
    }
  }
}

}  // namespace
}  // namespace posattn
