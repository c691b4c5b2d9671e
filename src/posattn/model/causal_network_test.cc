// Node by node against the whole sample, for any causal model.
#include "posattn/model/causal_network.h"

#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/model/spec/random_spec_test.h"

namespace posattn {
namespace {

using testing::random_parameters;
using testing::RandomBatch;

TEST(CausalNetwork, AnswersEachNodeAsTheWholeSampleWould) {
  int tried = 0;
  for (int trial = 0; trial < 200; ++trial) {
    RandomStream random(31, Purpose::test_data, 0, trial);
    const ModelSpec spec = testing::random_open_spec(random);
    if (!CausalNetwork::refusal(spec).empty()) continue;
    ++tried;
    SCOPED_TRACE(to_json(spec));
    const Parameters<float> parameters = random_parameters(spec, trial);
    RandomBatch data(spec, 2, spec.real_nodes, random);
    data.context.training = false;
    std::vector<float> whole(2 * spec.real_nodes * spec.output_columns);
    Network(spec).forward(parameters, data.batch(), whole);
    double largest = 1e-6;
    for (const float y : whole) largest = std::max<double>(largest, std::abs(y));

    const CausalNetwork network(spec, parameters);
    CausalNetwork::Memory memory = network.memory(2);
    for (int node = 0; node < spec.real_nodes; ++node) {
      std::vector<CausalNetwork::Nodes> more(2);
      for (int s = 0; s < 2; ++s) {
        const int64_t at = int64_t{1} * s * spec.real_nodes + node;
        const auto values = data.inputs.begin() + at * spec.data_columns;
        more[s].values.assign(values, values + spec.data_columns);
        if (spec.vocabulary > 0) more[s].tokens = {data.tokens[at]};
      }
      const std::vector<float> outputs = network.read(more, memory);
      for (int s = 0; s < 2; ++s) {
        for (int c = 0; c < spec.output_columns; ++c) {
          EXPECT_NEAR(outputs[s * spec.output_columns + c],
                      whole[(s * spec.real_nodes + node) * spec.output_columns + c], 2e-4 * largest)
              << "node " << node;
        }
      }
    }
    EXPECT_THROW(network.read(std::vector(2, CausalNetwork::Nodes{{1, 1, 1}, {0}}), memory), Error);
  }
  EXPECT_GT(tried, 20);
}

}  // namespace
}  // namespace posattn
