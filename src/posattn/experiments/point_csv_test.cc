#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/experiments/curves.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

const std::string header = "experiment,task,architecture,split,x,runs,min,q10,median,q90,max\n";

Error refusal_of(const std::string& csv) {
  try {
    points_from_csv(csv, "x.csv");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error;
  }
  ADD_FAILURE() << "accepted: " << csv;
  return {ExitCode::done, ""};
}

TEST(PointCsv, ReadsWhatItWrites) {
  const std::vector<PointSummary> points = {{.experiment = "value-range",
                                             .task = "sort",
                                             .line = "positional",
                                             .split = Split::train,
                                             .x = std::nullopt,
                                             .runs = 10,
                                             .minimum = 1e-7,
                                             .q10 = 0.1,
                                             .median = 1.0 / 3,
                                             .q90 = 2,
                                             .maximum = infinity},
                                            {.experiment = "a, b",
                                             .task = "#1",
                                             .line = "the \"best\"",
                                             .split = Split::test,
                                             .x = 0.1,
                                             .runs = 1,
                                             .minimum = 3,
                                             .q10 = 3,
                                             .median = 3,
                                             .q90 = 3,
                                             .maximum = 3}};
  const std::string csv = to_csv(points);
  EXPECT_THAT(csv, StartsWith(header + "value-range,sort,positional,train,,10,1e-07,0.1,"));
  EXPECT_THAT(csv, HasSubstr("\n\"a, b\",\"#1\",\"the \"\"best\"\"\",test,0.1,1,3,3,3,3,3\n"));
  const std::vector<PointSummary> read = points_from_csv(csv, "x.csv");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].x, std::nullopt);
  EXPECT_EQ(read[0].median, 1.0 / 3);
  EXPECT_EQ(read[0].maximum, infinity);
  EXPECT_EQ(read[1].experiment, "a, b");
  EXPECT_EQ(read[1].task, "#1");
  EXPECT_EQ(read[1].line, "the \"best\"");
  EXPECT_EQ(read[1].x, 0.1);
  EXPECT_EQ(to_csv(read), csv);
}

TEST(PointCsv, KeepsDivergedPoints) {
  const std::string csv = header + "e,t,a,test,1,2,nan,nan,nan,nan,nan\n";
  EXPECT_TRUE(std::isnan(points_from_csv(csv, "x.csv").at(0).median));
  EXPECT_EQ(to_csv(points_from_csv(csv, "x.csv")), csv);
}

TEST(PointCsv, SkipsCommentsAndEmptyLines) {
  const std::string csv = "# made by hand\n\n" + header + "#\r\ne,t,a,test,1,2,1,1,1,1,1\r\n";
  EXPECT_EQ(points_from_csv(csv, "x.csv").size(), 1u);
}

TEST(PointCsv, ErrorsNameTheLine) {
  EXPECT_EQ(refusal_of("").problem(), "x.csv:0: the end of the file");
  EXPECT_THAT(refusal_of("# c\na,b\n").problem(), "x.csv:2: 'a,b'");
  const auto problem_of = [](const std::string& line) {
    return refusal_of(header + "e,t,a,test,1,2,1,1,1,1,1\n" + line + "\n").problem();
  };
  EXPECT_EQ(problem_of("e,t,a,test,1,2,1,1,1,1"), "x.csv:3: 10 fields");
  EXPECT_EQ(problem_of("e,t,a,test,2,2,1,1,1,1,1,"), "x.csv:3: 12 fields");
  EXPECT_EQ(problem_of(",t,a,test,2,2,1,1,1,1,1"), "x.csv:3: no experiment");
  EXPECT_EQ(problem_of("e,t,a,tests,2,2,1,1,1,1,1"), "x.csv:3: split 'tests'");
  EXPECT_EQ(problem_of("e,t,a,test,two,2,1,1,1,1,1"), "x.csv:3: x 'two'");
  EXPECT_EQ(problem_of("e,t,a,test,inf,2,1,1,1,1,1"), "x.csv:3: x 'inf'");
  EXPECT_EQ(problem_of("e,t,a,test,2,0,1,1,1,1,1"), "x.csv:3: runs '0'");
  EXPECT_EQ(problem_of("e,t,a,test,2,2.5,1,1,1,1,1"), "x.csv:3: runs '2.5'");
  EXPECT_EQ(problem_of("e,t,a,test,2,2,,1,1,1,1"), "x.csv:3: min ''");
  EXPECT_EQ(problem_of("e,t,a,test,2,2,1,1,1 ,1,1"), "x.csv:3: median '1 '");
  EXPECT_EQ(problem_of("e,t,a,test,2,2,-1,1,1,1,1"), "x.csv:3: min '-1'");
  EXPECT_EQ(problem_of("e,t,a,test,2,2,1,1,3,2,4"), "x.csv:3: quantiles out of order");
  EXPECT_EQ(problem_of("e,t,a,test,2,2,1,1,nan,2,4"), "x.csv:3: quantiles out of order");
  EXPECT_EQ(problem_of("e,t,a,test,1,3,1,1,1,1,1"), "x.csv:3: a point for the second time");
  EXPECT_EQ(problem_of("e,t,\"a,test,2,2,1,1,1,1,1"), "x.csv:3: a quote without its end");
  EXPECT_EQ(problem_of("e,t,\"a\"b,test,2,2,1,1,1,1,1"), "x.csv:3: text after a quote");
}

}  // namespace
}  // namespace posattn
