// Node by node against the whole sample, for any causal model.
#include "posattn/model/causal_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::random_parameters;
using testing::RandomBatch;

// Nodes first .. first + count - 1 of a batch of one sample.
struct PartOfStream {
  PartOfStream(const ModelSpec& spec, const RandomBatch& stream, int first, int count) {
    const auto values = stream.inputs.begin() + int64_t{1} * first * spec.data_columns;
    nodes.values.assign(values, values + int64_t{1} * count * spec.data_columns);
    if (spec.vocabulary == 0) return;
    nodes.tokens.assign(stream.tokens.begin() + first, stream.tokens.begin() + first + count);
  }
  CausalNetwork::Nodes nodes;
};

// Node by node, one or several at a time, against the outputs of whole samples: a causal model's
// whole stream, or the last nodes of another one.
void expect_answers_of_samples(const ModelSpec& spec, uint64_t seed, int length) {
  SCOPED_TRACE(to_json(spec));
  const Parameters<float> parameters = random_parameters(spec, seed);
  RandomStream random(seed, Purpose::test_data, 1, 0);
  RandomBatch stream(spec, 1, length, random);
  const auto answer = [&](int first, int end) {  // of the last node
    const CausalNetwork::Nodes nodes = PartOfStream(spec, stream, first, end - first).nodes;
    std::vector<float> outputs((end - first) * spec.output_columns);
    Network(spec).forward(
        parameters,
        {.inputs = nodes.values, .samples = 1, .real_nodes = end - first, .tokens = nodes.tokens},
        outputs);
    return std::vector<float>(outputs.end() - spec.output_columns, outputs.end());
  };
  const CausalNetwork network(spec, parameters);
  CausalNetwork::Memory memory = network.memory(1);
  const int n = spec.real_nodes, part = std::max(1, spec.landmarks == 0 ? 1 : n / spec.landmarks);
  for (int node = 0; node < length;) {
    const int count = std::min(length - node, 1 + static_cast<int>(random.below(2)));
    const CausalNetwork::Nodes more = PartOfStream(spec, stream, node, count).nodes;
    const std::vector<float> outputs = network.read({&more, 1}, memory);
    node += count;
    // Landmarks of a stream are whole parts of it, those of a sample are of that alone.
    const bool same = node <= n || spec.causal || spec.landmarks == 0 || n % spec.landmarks != 0 ||
                      (node - n) % part == 0;
    if (!same) continue;
    const std::vector<float> expected = answer(spec.causal ? 0 : std::max(0, node - n), node);
    double largest = 1e-2;
    for (const float y : expected) largest = std::max<double>(largest, std::abs(y));
    for (int c = 0; c < spec.output_columns; ++c) {
      EXPECT_NEAR(outputs[c], expected[c], 2e-4 * largest) << "node " << node;
    }
  }
}

TEST(CausalNetwork, AnswersEachNodeAsTheWholeSampleWould) {
  int tried = 0;
  for (int trial = 0; trial < 200; ++trial) {
    RandomStream random(31, Purpose::test_data, 0, trial);
    const ModelSpec spec = testing::random_open_spec(random);
    if (!CausalNetwork::refusal(spec).empty()) continue;
    ++tried;
    expect_answers_of_samples(spec, trial, spec.causal ? spec.real_nodes : 3 * spec.real_nodes);
    if (!spec.causal) continue;
    const Parameters<float> parameters = random_parameters(spec, trial);
    const CausalNetwork network(spec, parameters);
    if (network.most_nodes() != spec.real_nodes) continue;
    CausalNetwork::Memory memory = network.memory(1);
    CausalNetwork::Nodes many;
    many.values.resize((spec.real_nodes + 1) * spec.data_columns);
    if (spec.vocabulary > 0) many.tokens.resize(spec.real_nodes + 1);
    EXPECT_THROW(network.read({&many, 1}, memory), Error);
  }
  EXPECT_GT(tried, 20);
}

ModelSpec small_model(const char* kinds) {
  ModelSpec spec;
  spec.kinds = kinds;
  spec.real_nodes = 12;
  spec.width = spec.mlp_width = 8;
  spec.depth = 1;
  spec.scratch_nodes = 0;
  return resolve(spec);
}

TEST(CausalNetwork, AnswersForTheLastNodesOfAStream) {
  for (const char* kinds :
       {"data", "hard", "data scores=unit source-scale=node", "low-rank", "low-rank landmarks=5",
        "low-rank landmarks=12", "low-rank scores=unit landmarks=3", "relative", "direct",
        "positions", "data score-bias=distance", "window", "window reach=20"}) {
    expect_answers_of_samples(small_model(kinds), 5, 50);
  }
}

TEST(CausalNetwork, ForgetsWhatIsOutsideTheWindowsOfItsLayers) {
  for (const char* kinds : {"window reach=3,window reach=2", "linear,window reach=4"}) {
    ModelSpec spec = small_model("data");
    spec.kinds = kinds;
    spec.depth = 4;
    spec.causal = true;
    spec.real_nodes = 60;
    spec.encoding_size = 0;
    expect_answers_of_samples(resolve(spec), 6, 60);
  }
}

TEST(CausalNetwork, RefusesWhatNeedsAllNodes) {
  const auto refusal = [](ModelSpec spec, const auto& change) {
    change(spec);
    return CausalNetwork::refusal(resolve(spec));
  };
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const auto same = [](ModelSpec&) {};
  EXPECT_EQ(refusal(small_model("low-rank"), same), "");
  has(refusal(small_model("linear"), same), "'linear'");
  has(refusal(small_model("low-rank"), [](auto& s) { s.depth = 2; }), "later ones");
  has(refusal(small_model("low-rank"), [](auto& s) { s.loops = "2"; }), "later ones");
  has(refusal(small_model("data"), [](auto& s) { s.scratch_nodes = 1, s.encoding_size = 0; }),
      "scratch");
  has(refusal(small_model("data"), [](auto& s) { s.positions_in_input = true; }), "positions");
  has(refusal(small_model("data-and-positions"), same), "positions");
  has(refusal(small_model("rope"), same), "positions");
  has(refusal(small_model("data source-scale=sample"), same), "size of the whole sample");
}

}  // namespace
}  // namespace posattn
