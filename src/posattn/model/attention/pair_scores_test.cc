// Attention from a sample's pairs of nodes: the formula, the mask, and what follows from both.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/model/causal_network.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using testing::RandomBatch;

ModelSpec pairs_spec(const char* kinds) {
  ModelSpec spec;
  apply_preset("structural", spec);
  spec.real_nodes = 4;
  spec.scratch_nodes = 2;
  spec.width = spec.mlp_width = 6;
  spec.heads = 2;
  spec.depth = 2;
  spec.kinds = kinds;
  spec.pair_columns = 2;
  spec.pair_classes = 3;
  return resolve(spec);
}

// [layer, head, node, node] of the first sample.
struct Attention {
  Attention(const ModelSpec& spec, const Parameters<double>& parameters, const RandomBatch& data)
      : heads(spec.heads),
        nodes(data.real_nodes + spec.scratch_nodes),
        numbers(reference_attention(spec, parameters, data.reference())) {}
  double at(int layer, int head, int i, int j) const {
    return numbers[((static_cast<size_t>(layer) * heads + head) * nodes + i) * nodes + j];
  }
  int heads, nodes;
  std::vector<double> numbers;
};

TEST(PairScores, AreANumberOfTheClassAndALinearMapOfTheNumbers) {
  const ModelSpec spec = pairs_spec("");
  const Parameters<double> parameters = to_double(testing::random_parameters(spec, 3));
  RandomStream random(5, Purpose::test_data, 0, 0);
  const int real = 3;
  const RandomBatch data(spec, 1, real, random);
  const Attention attention(spec, parameters, data);
  const auto tensor = [&](const char* name) {
    return parameters[std::string("transformer_layers.1.") + name];
  };
  const auto classes = tensor("attn.pair_classes"), numbers = tensor("attn.pair_numbers"),
             scratch = tensor("attn.pair_scratch");
  const auto score = [&](int h, int i, int j) {
    if (i < real && j < real) {
      const int pair = i * real + j;
      return classes[h * 3 + data.pair_classes[pair]] + numbers[h * 2] * data.pairs64[2 * pair] +
             numbers[h * 2 + 1] * data.pairs64[2 * pair + 1];
    }
    // [heads, scratch, scratch + 2]: read by a real node, reading a real node, reading a scratch
    // one.
    if (i < real) return scratch[(h * 2 + j - real) * 4];
    return scratch[(h * 2 + i - real) * 4 + (j < real ? 1 : 2 + j - real)];
  };
  for (int h = 0; h < 2; ++h) {
    for (int i = 0; i < attention.nodes; ++i) {
      double sum = 0;
      for (int j = 0; j < attention.nodes; ++j) sum += std::exp(score(h, i, j));
      for (int j = 0; j < attention.nodes; ++j) {
        EXPECT_NEAR(attention.at(1, h, i, j), std::exp(score(h, i, j)) / sum, 1e-14);
      }
    }
  }
}

TEST(PairScores, MaskLeavesItselfNeighboursAndScratchNodes) {
  for (const char* kinds : {"neighbours", "pairs pair-mask=edges", "relative pair-mask=edges",
                            "cosine pair-mask=edges weighting=hard"}) {
    SCOPED_TRACE(kinds);
    const ModelSpec spec = pairs_spec(kinds);
    const Parameters<float> parameters = testing::random_parameters(spec, 3);
    RandomStream random(6, Purpose::test_data, 0, 0);
    RandomBatch data(spec, 1, 4, random);
    data.context.training = false;
    data.pair_classes[1] = 0;  // of the pair of nodes 0 and 1
    const Attention attention(spec, to_double(parameters), data);
    const std::vector<float> in_float = Network(spec).attention(parameters, data.batch());
    for (int row = 0; row < 2 * 2 * 6; ++row) {
      double sum = 0;
      const int i = row % 6;
      for (int j = 0; j < 6; ++j) {
        const double a = attention.numbers[row * 6 + j];
        const bool read = i > 3 || j > 3 || i == j || data.pair_classes[i * 4 + j] != 0;
        if (!read) {
          EXPECT_EQ(a, 0);
          EXPECT_EQ(in_float[row * 6 + j], 0);
        } else if (spec.weighting == Weighting::softmax) {
          EXPECT_GT(a, 0);
        }
        sum += a;
      }
      EXPECT_NEAR(sum, 1, 1e-14);
    }
  }
}

// A graph has no order of its nodes.
TEST(PairScores, OutputsFollowARelabellingOfTheNodes) {
  for (const char* kinds : {"", "neighbours", "data score-bias=pairs"}) {
    const ModelSpec spec = pairs_spec(kinds);
    const Parameters<double> parameters = to_double(testing::random_parameters(spec, 8));
    RandomStream random(7, Purpose::test_data, 0, 0);
    const RandomBatch data(spec, 1, 4, random);
    RandomBatch relabelled = data;
    const int label[] = {2, 0, 3, 1};
    for (int i = 0; i < 4; ++i) {
      relabelled.inputs64[label[i]] = data.inputs64[i];
      for (int j = 0; j < 4; ++j) {
        const int from = i * 4 + j, to = label[i] * 4 + label[j];
        relabelled.pair_classes[to] = data.pair_classes[from];
        for (int c = 0; c < spec.pair_columns; ++c) {
          relabelled.pairs64[to * 2 + c] = data.pairs64[from * 2 + c];
        }
      }
    }
    const auto y = reference_forward(spec, parameters, data.reference());
    const auto z = reference_forward(spec, parameters, relabelled.reference());
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(z[label[i]], y[i], 1e-13) << kinds;
  }
}

TEST(PairScores, AModelOfPairsAloneIsHomogeneousInTheValuesOfNodes) {
  const ModelSpec spec = pairs_spec("");
  const Parameters<double> parameters = to_double(testing::random_parameters(spec, 4));
  RandomStream random(9, Purpose::test_data, 0, 0);
  RandomBatch data(spec, 5, 4, random);
  const std::vector<double> at_1 = reference_forward(spec, parameters, data.reference());
  for (double& x : data.inputs64) x *= 1000;
  const std::vector<double> at_c = reference_forward(spec, parameters, data.reference());
  double largest = 0;
  for (const double y : at_c) largest = std::max(largest, std::abs(y));
  ASSERT_GT(largest, 1);
  for (size_t i = 0; i < at_1.size(); ++i) {
    EXPECT_NEAR(at_c[i], 1000 * at_1[i], 1e-13 * largest);
  }
}

// Every sample has its own graph, in a batch and alone, and at lengths that were not trained.
TEST(PairScores, SamplesDifferAtAnyLength) {
  for (const char* kinds : {"", "neighbours", "pairs,cosine score-bias=pairs"}) {
    ModelSpec trained = pairs_spec(kinds);
    trained.encoding = Encoding::sinusoidal;  // which any length has
    trained.encoding_size = 2;
    const Parameters<float> parameters = testing::random_parameters(trained, 4);
    const ModelSpec spec = at_length(resolve(trained), 32).value();
    RandomStream random(10, Purpose::test_data, 0, 0);
    RandomBatch data(spec, 3, 32, random);
    data.context.training = false;
    std::vector<float> all(3 * 32), one(32);
    Network network(spec);
    network.forward(parameters, data.batch(), all);
    for (int s = 0; s < 3; ++s) {
      Batch alone = data.batch();
      alone.samples = 1;
      alone.inputs = alone.inputs.subspan(s * 32, 32);
      alone.pairs =
          alone.pairs.subspan(s * 32 * 32 * spec.pair_columns, 32 * 32 * spec.pair_columns);
      alone.pair_classes = alone.pair_classes.subspan(s * 32 * 32, 32 * 32);
      network.forward(parameters, alone, one);
      EXPECT_THAT(one,
                  ::testing::ElementsAreArray(all.begin() + s * 32, all.begin() + s * 32 + 32));
    }
  }
}

std::string refusal_of(const ModelSpec& spec, const Batch& batch) {
  std::vector<float> outputs(batch.samples * batch.real_nodes);
  try {
    Network(spec).forward(testing::random_parameters(spec, 1), batch, outputs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.problem() + "; expected " + error.expected();
  }
  return "none";
}

TEST(PairScores, BadPairsAreRefused) {
  const ModelSpec spec = pairs_spec("");
  RandomStream random(11, Purpose::test_data, 0, 0);
  const RandomBatch good(spec, 2, 3, random);
  EXPECT_EQ(refusal_of(spec, good.batch()), "none");
  const auto with = [&](const std::function<void(RandomBatch&)>& change) {
    RandomBatch bad = good;
    change(bad);
    return refusal_of(spec, bad.batch());
  };
  EXPECT_THAT(with([](auto& b) { b.pairs.pop_back(); }), HasSubstr("35 numbers of pairs"));
  EXPECT_THAT(with([](auto& b) { b.pair_classes.clear(); }), HasSubstr("0 classes of pairs"));
  EXPECT_THAT(with([](auto& b) { b.pair_classes[14] = 3; }),
              HasSubstr("class 3 of the pair of nodes 1 and 2 in sample 1; expected 0 to 2"));
  EXPECT_THAT(with([](auto& b) { b.pair_classes[0] = -1; }), HasSubstr("class -1"));
  EXPECT_THAT(with([](auto& b) { b.pairs[3] = NAN; }),
              HasSubstr("nan for the pair of nodes 0 and 1 in sample 0; expected finite"));
  EXPECT_THAT(with([](auto& b) { b.pairs[3] = INFINITY; }), HasSubstr("inf for the pair"));
}

TEST(PairScores, ModelsThatReadNodeByNodeRefuseThem) {
  ModelSpec spec = pairs_spec("neighbours");
  spec.causal = true;
  EXPECT_EQ(CausalNetwork::refusal(spec), "reads pairs of nodes");
}

}  // namespace
}  // namespace posattn
