#include "posattn/bounds/bound_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/bounds/collapsed_network.h"
#include "posattn/training/run.h"
#include "posattn/training/small_run_test.h"

namespace posattn::bounds {
namespace {

RunConfig config_of(const char* architecture) {
  RunConfig config = small_run();
  config.architecture = architecture;
  config.depth = 2;
  return config;
}

Model untrained(const RunConfig& config) { return trained_model(config, initial_state(config)); }

TEST(BoundReport, MeasuresTheClippedLossOfTheRunsOwnSamples) {
  const RunConfig config = config_of("positional");
  const Model model = untrained(config);
  const double clip = 0.7;
  const BoundReport report =
      bound_report(model, {.name = "run", .run = config, .clip = clip, .fresh_samples = 500});
  const Dataset data = training_data(config, 1, 1).front();
  const std::vector<double> x(data.inputs.begin(), data.inputs.end());
  const std::vector<double> outputs =
      forward(collapse(model.spec, to_double(model.parameters)), x, data.samples);
  double sum = 0;
  for (size_t k = 0; k < outputs.size(); ++k) {
    sum += std::min(std::pow(outputs[k] - double{data.targets[k]}, 2), clip * clip);
  }
  EXPECT_NEAR(report.measured->training.mean, sum / static_cast<double>(outputs.size()), 1e-5);
  EXPECT_EQ(report.setting.samples, 50);
  EXPECT_EQ(report.measured->fresh.samples, 500);
  EXPECT_GT(report.measured->fresh.standard_error, 0);
  EXPECT_LT(std::abs(report.measured->gap()), 6 * report.measured->standard_error());  // untrained
  EXPECT_EQ(report.measured->training.samples, 50);
  ASSERT_TRUE(report.small_loss);
  EXPECT_LE(*report.small_loss, clip * clip);
  const std::optional<RatioToGap> ratio = ratio_to_gap(report, report.by_norms.log_gap);
  ASSERT_TRUE(ratio);
  EXPECT_GT(ratio->log, 0);
}

TEST(BoundReport, OfAnotherNumberOfSamples) {
  const RunConfig config = config_of("standard");
  const Model model = untrained(config);
  const BoundReport own = bound_report(model, {.name = "run", .run = config, .fresh_samples = 10}),
                    more = bound_report(
                        model,
                        {.name = "run", .run = config, .samples = 5000, .fresh_samples = 10});
  EXPECT_LT(more.by_norms.log_gap, own.by_norms.log_gap);
  EXPECT_TRUE(more.measured);
  EXPECT_FALSE(more.small_loss);  // the training loss is of other samples
  const BoundReport file = bound_report(model, {.name = "file", .samples = 50});
  EXPECT_FALSE(file.measured);
  EXPECT_EQ(file.by_norms.log_gap, own.by_norms.log_gap);
  EXPECT_FALSE(ratio_to_gap(file, 0));
  const BoundReport scaled =
      bound_report(model, {.name = "file", .samples = 50, .query_key_scale = 10});
  EXPECT_GT(scaled.by_norms.log_gap, file.by_norms.log_gap + 1);
}

TEST(BoundReport, Refusals) {
  const auto refused = [](const Model& model, const ReportRequest& request, ExitCode code,
                          const std::string& part) {
    try {
      bound_report(model, request);
      ADD_FAILURE() << "expected: " << part;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), ::testing::HasSubstr(part));
    }
  };
  const RunConfig config = config_of("positional");
  const Model model = untrained(config);
  refused(model, {.name = "m"}, ExitCode::usage, "--samples m");
  refused(model, {.name = "m", .samples = 0}, ExitCode::usage, "--samples 0");
  refused(model, {.name = "m", .samples = 5, .range = 1}, ExitCode::usage, "--range 1");
  refused(model, {.name = "m", .samples = 5, .delta = 2}, ExitCode::usage, "--delta 2");
  refused(model, {.name = "m", .samples = 5, .query_key_scale = 0}, ExitCode::usage,
          "--query-key-scale 0");
  refused(model, {.name = "m", .run = config, .fresh_samples = 0}, ExitCode::usage,
          "--fresh-samples 0");
  RunConfig fresh = config;
  fresh.fresh = true;
  refused(model, {.name = "m", .run = fresh}, ExitCode::configuration, "every epoch");
  Model several = model;
  several.origin.variable_length = true;
  refused(several, {.name = "m", .samples = 5}, ExitCode::configuration, "several lengths");
  Model other = untrained(config_of("m2"));
  refused(other, {.name = "m", .samples = 5}, ExitCode::configuration, "m is of architecture m2");
}

}  // namespace
}  // namespace posattn::bounds
