#include "posattn/evaluation/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/limits.h"
#include "posattn/evaluation/measurement_json.h"

namespace posattn {
namespace {

using testing::ElementsAre;
std::vector<Measurement> two_scales() {
  return {{Split::test, "c", 1, "mse", 0.5},
          {Split::test, "c", 1, "accuracy", 1},
          {Split::test, "c", 10, "mse", 3},
          {Split::test, "c", 10, "accuracy", 0.25}};
}

TEST(Measurements, AreFoundByTheirPlace) {
  std::vector<Measurement> rows = two_scales();
  EXPECT_EQ(find_value(rows, {.axis = "c", .x = 10, .metric = "mse"}), 3);
  EXPECT_EQ(find_value(rows, {.axis = "c", .x = 10, .metric = "mse_over_c2"}), 3.0 / 100);
  EXPECT_FALSE(find_value(rows, {.axis = "c", .x = 2, .metric = "mse"}));
  EXPECT_FALSE(find_value(rows, {.axis = "length", .x = 10, .metric = "mse"}));
  EXPECT_FALSE(find_value(rows, {.split = Split::train, .metric = "mse"}));
  set_value(rows, {.split = Split::train, .metric = "mse"}, 7);
  set_value(rows, {.axis = "c", .x = 1, .metric = "mse"}, 8);
  EXPECT_EQ(rows.size(), 5u);
  EXPECT_EQ(find_value(rows, {.split = Split::train, .metric = "mse"}), 7);
  EXPECT_EQ(find_value(rows, {.axis = "c", .x = 1, .metric = "mse"}), 8);
  rows.push_back({Split::test, "length", 16, "mse", 1});
  EXPECT_THAT(tested_values(rows, "c"), ElementsAre(1, 10));
  EXPECT_THAT(tested_axes(rows), ElementsAre("c", "length"));
}

TEST(Measurements, ADerivedMetricNeedsItsAxis) {
  const std::vector<Measurement> rows = {{Split::test, "length", 4, "mse", 0.5}};
  EXPECT_FALSE(find_value(rows, {.axis = "length", .x = 4, .metric = "mse_over_c2"}));
}

TEST(MeasurementsAsJson, TestsInValueRangesKeepTheirFirstShape) {
  const RowsAsJson both = rows_to_json(two_scales(), true);
  EXPECT_EQ(both.tests.dump(), R"([{"c":1.0,"mse":0.5,"mse_over_c2":0.5,"accuracy":1.0},)"
                               R"({"c":10.0,"mse":3.0,"mse_over_c2":0.03,"accuracy":0.25}])");
  EXPECT_TRUE(both.rows.empty());
  EXPECT_EQ(rows_to_json(two_scales(), false).tests.dump(),
            R"([{"c":1.0,"mse":0.5,"accuracy":1.0},{"c":10.0,"mse":3.0,"accuracy":0.25}])");
}

TEST(MeasurementsAsJson, WhatTheFirstShapeCannotHoldIsARow) {
  std::vector<Measurement> rows = two_scales();
  rows.push_back({Split::test, "c", 10, "largest_error", infinity});
  rows.push_back({Split::test, "c", 20, "mse", 4});  // without its accuracy
  rows.push_back({Split::test, "length", 16, "mse", std::nan("")});
  rows.push_back({Split::validation, "", 0, "cross_entropy", 2});
  const RowsAsJson json = rows_to_json(rows, true);
  EXPECT_EQ(json.tests.size(), 2u);
  EXPECT_EQ(json.rows.size(), 4u);
  EXPECT_EQ(json.rows[0].dump(),
            R"({"split":"test","axis":"c","x":10.0,"metric":"largest_error","value":"inf"})");
  const nlohmann::json line = {{"tests", json.tests}, {"rows", json.rows}};
  std::vector<Measurement> back = rows_from_json(line, "runs.jsonl:1");
  ASSERT_EQ(back.size(), rows.size());
  EXPECT_TRUE(std::isnan(back[6].value));
  back[6].value = rows[6].value = 0;
  EXPECT_EQ(back, rows);
}

TEST(MeasurementsAsJson, RefusesImpossibleRows) {
  EXPECT_TRUE(rows_from_json(nlohmann::json::object(), "x").empty());
  const char* good = R"({"split":"test","axis":"length","x":4,"metric":"mse","value":1})";
  const auto read = [](const std::string& tests, const std::string& rows) {
    return rows_from_json(
        nlohmann::json::parse(R"({"tests":[)" + tests + R"(],"rows":[)" + rows + "]}"), "x");
  };
  EXPECT_EQ(read("", good).size(), 1u);
  for (const auto& [tests, rows] : std::vector<std::pair<std::string, std::string>>{
           {R"({"c":0,"mse":1,"accuracy":1})", ""},
           {R"({"c":1,"mse":-1,"accuracy":1})", ""},
           {R"({"c":1,"mse":1,"accuracy":1.5})", ""},
           {R"({"c":1,"mse":1,"accuracy":1},{"c":1,"mse":1,"accuracy":1})", ""},
           {R"({"c":1,"mse":1,"accuracy":1})",
            R"({"split":"test","axis":"c","x":1,"metric":"mse","value":1})"},
           {"", std::string(good) + "," + good},
           {"", R"({"split":"tests","axis":"c","x":1,"metric":"mse","value":1})"},
           {"", R"({"split":"test","axis":"c","x":1,"metric":"mse_over_c2","value":1})"},
           {"", R"({"split":"test","axis":"c","x":1,"metric":"","value":1})"},
           {"", R"({"split":"test","axis":"\u001b","x":1,"metric":"m","value":1})"}}) {
    EXPECT_THROW(read(tests, rows), Error) << tests << rows;
  }
  EXPECT_THROW(read(R"({"c":1,"mse":1})", ""), Error);
  EXPECT_THROW(read("3", ""), Error);
  EXPECT_THROW(read("", R"({"split":"test"})"), Error);
  EXPECT_THROW(read("", R"({"split":"test","axis":"c","x":null,"metric":"m","value":1})"), Error);
}

TEST(Splits, HaveNames) {
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    EXPECT_EQ(split_from(to_string(split)), split);
  }
  EXPECT_THROW(split_from("tests"), Error);
}

TEST(Measurements, TheLossOfTrainingWhereAnswersAreWritten) {
  const std::vector<Measurement> written = {{Split::test, "c", 1, "unparsable", 0.5},
                                            {Split::test, "c", 1, "answer_mse", 2}};
  EXPECT_TRUE(loss_among(written).of_answers);
  EXPECT_EQ(training_loss_among(written).name, "cross_entropy");
  const std::vector<Measurement> numbers = {{Split::test, "c", 1, "mse", 2}};
  EXPECT_EQ(training_loss_among(numbers).name, "mse");
}

}  // namespace
}  // namespace posattn
