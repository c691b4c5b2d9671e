#include "posattn/evaluation/metrics/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/evaluation/measurement.h"

namespace posattn {
namespace {

// What every reader of rows relies on.
TEST(Metrics, AreWellFormed) {
  std::set<std::string_view> names;
  for (const Metric* metric : metrics()) {
    SCOPED_TRACE(metric->name);
    EXPECT_TRUE(names.insert(metric->name).second) << "the name is taken";
    EXPECT_FALSE(metric->heading.empty());
    EXPECT_FALSE(metric->words.empty());
    EXPECT_TRUE(metric->note.ends_with('.'));
    const int ways = (metric->measure != nullptr) + metric->is_derived() + metric->of_answers +
                     metric->of_training;
    EXPECT_EQ(ways, 1);
    EXPECT_FALSE(metric->is_loss && metric->is_derived());
    EXPECT_GT(metric->greatest, 0);
    EXPECT_TRUE(metric->logarithmic || std::isfinite(metric->greatest)) << "an axis has two ends";
    if (metric->is_derived()) {
      const Metric* source = known_metric(metric->derived_from);
      ASSERT_NE(source, nullptr);
      EXPECT_FALSE(source->is_derived());
    }
  }
  EXPECT_TRUE(training_loss().is_loss);
}

TEST(Metrics, AreFoundByName) {
  for (const Metric* metric : metrics()) EXPECT_EQ(&find_metric(metric->name), metric);
  EXPECT_EQ(known_metric("nonsense"), nullptr);
  try {
    find_metric("acuracy");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.hint(), testing::HasSubstr("accuracy"));
  }
}

TEST(Metrics, TheWorstValueComesLast) {
  EXPECT_EQ(find_metric("mse").worst(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(find_metric("accuracy").worst(), 0);
}

TEST(Metrics, ADerivedOneExistsOnItsAxisAlone) {
  EXPECT_TRUE(find_metric("mse_over_c2").exists_on("c"));
  EXPECT_FALSE(find_metric("mse_over_c2").exists_on("length"));
  EXPECT_TRUE(find_metric("mse").exists_on("length"));
}

TEST(Metrics, AccuracyOfClassesFollowsFromTheirErrorOnEveryAxis) {
  const Metric& accuracy = find_metric("label_accuracy");
  EXPECT_TRUE(accuracy.exists_on("k"));
  EXPECT_TRUE(accuracy.exists_on("c"));
  EXPECT_EQ(accuracy.worst(), 0);
  const std::vector<Measurement> rows = {{Split::test, "k", 2, "label_error", 0.25}};
  EXPECT_EQ(find_value(rows, {.axis = "k", .x = 2, .metric = "label_accuracy"}), 0.75);
  EXPECT_EQ(find_value(rows, {.axis = "k", .x = 3, .metric = "label_accuracy"}), std::nullopt);
}

}  // namespace
}  // namespace posattn
