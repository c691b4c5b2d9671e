// Runs of a task whose nodes hold a token and a number at once.
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/measure.h"
#include "posattn/model/blocks/reference_network.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

// Every node has a token and a number. The answer of a node is its number where the token is 1,
// and 0 elsewhere: it needs both.
class GatedTask : public Task {
 public:
  std::string_view name() const override { return "gated-of-a-test"; }
  std::string_view description() const override { return "the numbers of nodes with token 1"; }
  TaskShape shape(int length) const override {
    return {.real_nodes = length, .vocabulary = 2, .tokens_and_values = true};
  }
  void make_sample(RandomStream& random, const Sampling& sampling, int length,
                   const SampleRoom& room) const override {
    draw_values(random, sampling.range, room.values);
    for (int i = 0; i < length; ++i) {
      room.tokens[i] = static_cast<int32_t>(random.below(2));
      room.targets[i] = room.tokens[i] == 1 ? room.values[i] : 0;
    }
  }
};

RunConfig gated_run(const char* architecture) {
  static const bool registered = (register_task(std::make_unique<GatedTask>()), true);
  RunConfig config = small_run();
  config.task = registered ? "gated-of-a-test" : "";
  config.architecture = architecture;
  config.length = 3;
  config.fresh = true;
  config.samples = 500;
  config.batch = 20;
  config.epochs = 40;
  config.width = config.mlp_width = 16;
  config.validate_every = 0;
  config.test_every = 40;
  config.test_scales = "1";
  config.test_samples = 200;
  return config;
}

TEST(TokensAndValues, ModelsOfOneStreamLearnFromBoth) {
  for (const char* architecture : {"standard", "positional"}) {
    RunConfig config = gated_run(architecture);
    validate(config);
    posattn::Run run(config, 2);
    std::optional<EpochRecord> last;
    while (!run.finished()) last = run.advance_epoch();
    ASSERT_TRUE(last.has_value());
    const MeasuredPlace place{.axis = "c", .x = 1, .metric = "mse"};
    // Without tokens half of the numbers is the best answer: it leaves a quarter of their mean
    // square, 4/3, in every node. Without numbers nothing is known.
    EXPECT_LT(find_value(last->tests, place).value(), 0.1) << architecture;
    EXPECT_TRUE(run.model().spec.tokens_and_values);
  }
}

// x = table[token] + W v + b: a token that no node has changes nothing, and the numbers of a node
// count whatever its token is.
TEST(TokensAndValues, AddUpInANode) {
  ModelSpec spec;
  spec.real_nodes = 2;
  spec.scratch_nodes = 0;
  spec.vocabulary = 3;
  spec.tokens_and_values = true;
  spec = resolve(spec);
  Parameters<float> weights(spec);
  initialise(weights, 1);
  Parameters<double> parameters = to_double(weights);
  const std::vector<double> numbers = {1, -2}, others = {1, 0.5};
  const std::vector<int32_t> tokens = {0, 2}, without = {0, -1};
  const auto outputs = [&](const std::vector<double>& x, const std::vector<int32_t>& t) {
    return reference_forward(spec, parameters,
                             {.inputs = x, .samples = 1, .real_nodes = 2, .tokens = t});
  };
  const auto both = outputs(numbers, tokens);
  EXPECT_NE(both, outputs(others, tokens));
  EXPECT_NE(both, outputs(numbers, without));
  const auto row = parameters["tokens.weight"].subspan(2 * spec.width);
  std::ranges::fill(row, 0.0);
  EXPECT_EQ(outputs(numbers, tokens), outputs(numbers, without));
}

TEST(TokensAndValues, NeedBoth) {
  ModelSpec spec;
  spec.tokens_and_values = true;
  EXPECT_THROW(resolve(spec), Error);
  spec.vocabulary = 2;
  EXPECT_TRUE(resolve(spec).tokens_and_values);
  EXPECT_EQ(spec_from_json(to_json(resolve(spec))), resolve(spec));
  spec.data_columns = 0;
  EXPECT_THROW(resolve(spec), Error);
}

}  // namespace
}  // namespace posattn
