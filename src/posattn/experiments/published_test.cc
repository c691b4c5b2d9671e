#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/experiments/comparison.h"

namespace posattn {
namespace {

using testing::HasSubstr;

const std::string published_header =
    "experiment,task,architecture,split,x,runs,min,q10,median,q90,max,correction\n";

const PublishedPoint& find(const std::string& experiment, const std::string& line, Split split,
                           std::optional<double> x) {
  const auto& points = published_points();
  return *std::find_if(points.begin(), points.end(), [&](const PublishedPoint& published) {
    const PointSummary& point = published.point;
    return point.experiment == experiment && point.task == "cumulative-sum" && point.line == line &&
           point.split == split && point.x == x;
  });
}

TEST(Published, EveryPointBelongsToALineOfAnExperiment) {
  std::map<std::string, Experiment> experiments;
  for (const PublishedPoint& published : published_points()) {
    const PointSummary& point = published.point;
    // small-standard-c3 is small-standard tested at another scale.
    const std::string name = point.experiment.substr(0, point.experiment.find("-c"));
    const bool at_scale = name == "small-standard";
    const std::string known = at_scale ? name : point.experiment;
    if (!experiments.contains(known)) experiments[known] = load_experiment(known);
    const Experiment& experiment = experiments[known];
    EXPECT_THAT(experiment.tasks, testing::Contains(point.task));
    if (point.line == "gpt2") continue;  // in its own experiment, of written prompts
    EXPECT_TRUE(std::any_of(experiment.lines.begin(), experiment.lines.end(),
                            [&](const ExperimentLine& line) { return line.name == point.line; }))
        << point.experiment << " " << point.line;
    if (experiment.axis.is_tested() && point.split != Split::test) {
      EXPECT_FALSE(point.x.has_value());
    } else {
      ASSERT_TRUE(point.x.has_value());
      EXPECT_THAT(experiment.axis.values, testing::Contains(*point.x)) << point.experiment;
    }
    EXPECT_EQ(point.runs, 10);
  }
  EXPECT_EQ(experiments.size(), 8u);
}

TEST(Published, CurvesAreWhole) {
  // Figure 4: five tasks, two lines, ten scales, train and validation.
  EXPECT_EQ(published_points("value-range").size(), 5u * 2 * 12);
  EXPECT_EQ(published_points("sample-count").size(), 5u * 2 * 10 * 3);
  EXPECT_EQ(published_points("sample-count-outside").size(), 5u * 2 * 10);
  EXPECT_EQ(published_points("input-length").size(), 5u * 2 * 5 * 3);
  EXPECT_EQ(published_points("variable-length").size(), 5u * 2 * 12);
  EXPECT_EQ(published_points("small-standard").size(), 2u * 2 * 4 * 3);
  EXPECT_EQ(published_points("small-standard-c9").size(), 2u * 2 * 4);
  EXPECT_EQ(published_points("variants").size(), 5u * 2 * 12);
  EXPECT_EQ(published_points("mixed-type").size(), 2u * 12 + 10);
  EXPECT_TRUE(published_points("encodings").empty());
}

TEST(Published, CorrectionsAreNamed) {
  const PublishedPoint& plain = find("value-range", "positional", Split::test, 2);
  EXPECT_EQ(plain.point.median, 3.8855e-4);
  EXPECT_EQ(plain.correction, "");
  // Released as 4.4955e-4, the sum over 8 batches.
  const PublishedPoint& divided = find("variable-length", "positional", Split::test, 2);
  EXPECT_NEAR(divided.point.median, 4.4955e-4 / 8, 1e-9);
  EXPECT_EQ(divided.correction, "published sums over 8 batches, divided by 8");
  EXPECT_EQ(find("variable-length", "positional", Split::validation, {}).correction, "");
  EXPECT_THAT(find("variants", "m0", Split::test, 10).correction, HasSubstr("so it is m0"));
  EXPECT_THAT(find("variants", "m5", Split::train, {}).correction, HasSubstr("so it is m5"));
}

TEST(Published, ReadingIsStrict) {
  const auto points = published_from_csv(
      published_header +
          "e,t,a,test,1,10,1,2,3,4,5,\"first, second\"\ne,t,a,test,2,10,1,2,3,4,5,\n",
      "p");
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].correction, "first, second");
  EXPECT_EQ(points[1].correction, "");
  const auto problem_of = [](const std::string& csv) -> std::string {
    try {
      published_from_csv(csv, "p.csv");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      return error.problem();
    }
    return "accepted";
  };
  EXPECT_EQ(problem_of(published_header + "\ne,t,a,test,1,10,1,2,3,4,inf,\n"),
            "p.csv:3: max 'inf'");
  EXPECT_EQ(problem_of(published_header + "e,t,a,test,1,10,nan,nan,nan,nan,nan,\n"),
            "p.csv:2: max 'nan'");
  EXPECT_EQ(problem_of(published_header + "e,t,a,test,1,10,1,2,3,4,5\n"), "p.csv:2: 11 fields");
  EXPECT_THAT(problem_of("experiment,task,architecture,split,x,runs,min,q10,median,q90,max\n"),
              HasSubstr("p.csv:1: "));
}

TEST(Published, OnlyLossesAreComparedWithLosses) {
  Experiment experiment = load_experiment("value-range");
  EXPECT_FALSE(published_points(experiment).empty());
  EXPECT_FALSE(published_points(load_experiment("value-range", {.quick = true})).empty());
  experiment.metric = &find_metric("accuracy");
  EXPECT_TRUE(published_points(experiment).empty());
}

// Only the same text is the same experiment.
TEST(Published, AreAboutTheExperimentsOfTheProgram) {
  const TemporaryFolder folder;
  const auto& embedded = embedded_experiments();
  const std::string text(
      std::ranges::find(embedded, "value-range.toml", &EmbeddedFile::name)->text);
  for (const char* name : {"value-range.toml", "mine.toml"}) write_file(folder.path() / name, text);
  const auto load = [&](const char* name) {
    return load_experiment((folder.path() / name).string());
  };
  EXPECT_FALSE(published_points(load("value-range.toml")).empty());
  EXPECT_TRUE(published_points(load("mine.toml")).empty());
}

}  // namespace
}  // namespace posattn
