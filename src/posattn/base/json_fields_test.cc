#include "posattn/base/json_fields.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "posattn/base/error.h"

namespace posattn {
namespace {

std::string problem_of(const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.problem();
  }
  return "none";
}

TEST(JsonFields, ReadsWhatIsThere) {
  const auto object = nlohmann::json::parse(
      R"({"i": -3, "x": 0.5, "none": null, "inf": "-inf", "t": "a", "m": {"k": "v"}})");
  const JsonFields fields(object, "file");
  EXPECT_EQ(fields.integer("i"), -3);
  EXPECT_EQ(fields.number("i"), -3.0);
  EXPECT_EQ(fields.number("x"), 0.5);
  EXPECT_TRUE(std::isnan(fields.number("none")));
  EXPECT_EQ(fields.number("inf"), -INFINITY);
  EXPECT_EQ(fields.text("t"), "a");
  EXPECT_EQ(fields.texts("m"), (std::map<std::string, std::string>{{"k", "v"}}));
  EXPECT_TRUE(fields.has("none"));
  EXPECT_FALSE(fields.has("other"));
}

TEST(JsonFields, NamesThePlaceAndTheKeyOfWhatIsWrong) {
  const auto object =
      nlohmann::json::parse(R"({"x": 0.5, "t": "a", "list": [1], "m": {"k": 1}, "b": true})");
  const JsonFields fields(object, "a.json");
  EXPECT_EQ(problem_of([&] { fields.at("y"); }), "a.json: 'y' is missing");
  EXPECT_EQ(problem_of([&] { fields.integer("x"); }), "a.json: 'x' is 0.5");
  EXPECT_EQ(problem_of([&] { fields.number("t"); }), "a.json: 't' is \"a\"");
  EXPECT_EQ(problem_of([&] { fields.number("b"); }), "a.json: 'b' is true");
  EXPECT_EQ(problem_of([&] { fields.text("list"); }), "a.json: 'list' is [1]");
  EXPECT_EQ(problem_of([&] { fields.texts("m"); }), "a.json: m: 'k' is 1");
  EXPECT_EQ(problem_of([&] { fields.texts("list"); }), "a.json: list: array");
  EXPECT_EQ(problem_of([] { JsonFields(nlohmann::json(3), "a.json:7"); }), "a.json:7: number");
}

}  // namespace
}  // namespace posattn
