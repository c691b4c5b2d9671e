// Runs of tasks with pairs of nodes, from samples to tests at another length.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/evaluation/measure.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

RunConfig graph_run(const char* architecture, const char* kinds = "") {
  RunConfig config = small_run();
  config.task = "neighbour-min";
  config.architecture = architecture;
  config.kinds = kinds;
  config.length = 6;
  config.variable_length = true;
  config.fresh = true;
  config.test_lengths = "6,9";
  return config;
}

posattn::Run trained(const RunConfig& config, int threads) {
  posattn::Run run(config, threads);
  while (!run.finished()) run.advance_epoch();
  EXPECT_EQ(run.divergence(), "");
  return run;
}

TEST(PairRuns, HaveTheSameBitsForAnyThreads) {
  for (const char* kinds : {"", "neighbours", "cosine score-bias=pairs"}) {
    RunConfig config = graph_run("structural", kinds);
    config.encoding = Encoding::automatic;
    if (std::string_view(kinds).starts_with("cosine")) config.test_lengths = "";
    const posattn::Run one = trained(config, 1), three = trained(config, 3);
    EXPECT_TRUE(
        std::ranges::equal(one.state().parameters.values(), three.state().parameters.values()))
        << kinds;
    EXPECT_EQ(one.state().validation_loss, three.state().validation_loss);
  }
}

TEST(PairRuns, LearnFromTheGraph) {
  RunConfig config = graph_run("structural");
  config.samples = 2000;
  config.batch = 50;
  config.epochs = 30;
  config.width = config.mlp_width = 16;
  config.depth = 2;
  config.test_every = 30;
  config.test_samples = 400;
  posattn::Run run(config, 2);
  std::optional<EpochRecord> last;
  while (!run.finished()) last = run.advance_epoch();
  ASSERT_TRUE(last.has_value());
  const auto mse = [&](const std::vector<Measurement>& rows, double length) {
    return find_value(rows, {.axis = "length", .x = length, .metric = "mse"}).value();
  };
  const Model model = run.model();
  EvaluationRequest request = test_request(config, model);
  request.axis = &find_evaluation_axis("length");
  request.values = {6, 9};
  request.baselines = true;
  const Evaluation found = evaluate(request);
  for (const double length : {6.0, 9.0}) {
    // Seeing the graph is worth more than knowing the whole distribution without it.
    EXPECT_LT(mse(last->tests, length), 0.8 * mse(found.baselines.at(0).rows, length)) << length;
    EXPECT_EQ(mse(last->tests, length), mse(found.rows, length));
  }
}

// A model that reads no pairs may be trained on samples that have some.
TEST(PairRuns, OtherModelsLeaveThemOut) {
  const posattn::Run run = trained(graph_run("m2"), 1);
  EXPECT_EQ(run.model().spec.pair_classes, 0);
}

std::string message_of(const RunConfig& config) {
  try {
    validate(config);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::configuration);
    return error.problem();
  }
  return "none";
}

TEST(PairRuns, NeedATaskWithPairs) {
  EXPECT_EQ(message_of(graph_run("structural")), "none");
  RunConfig config = graph_run("structural");
  config.task = "sort";
  EXPECT_THAT(message_of(config), HasSubstr("pairs of nodes, of which the samples have none"));
  config = graph_run("m2", "neighbours");
  config.task = "sort";
  EXPECT_THAT(message_of(config), HasSubstr("neighbours, of pairs without classes"));
}

TEST(PairRuns, AreTestedOnTasksWithTheSamePairsAlone) {
  const Model model =
      trained_model(graph_run("structural"), initial_state(graph_run("structural")));
  try {
    check_shapes(model, find_task("sort"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.problem(), HasSubstr("a model of pairs with 0 numbers and 2 classes"));
    EXPECT_THAT(error.expected(), HasSubstr("0 numbers and 0 classes"));
  }
}

}  // namespace
}  // namespace posattn
