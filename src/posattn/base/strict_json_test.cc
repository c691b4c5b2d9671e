#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"

namespace posattn {
namespace {

std::string json_message(const std::string& text) {
  try {
    parse_strict_json(text, "here");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    return error.what();
  }
  return "";
}

TEST(StrictJson, ReadsValues) {
  const auto value = parse_strict_json(R"({"a": {"x": 1}, "b": {"x": [2]}})", "here");
  EXPECT_EQ(value["a"]["x"], 1);
  EXPECT_EQ(value["b"]["x"][0], 2);
}

TEST(StrictJson, RefusesDuplicateKeysAtEveryLevel) {
  EXPECT_NE(json_message(R"({"a": 1, "a": 2})").find("'a' appears twice"), std::string::npos);
  EXPECT_NE(json_message(R"({"o": [{"b": 1, "c": 2, "b": 3}]})").find("'b' appears twice"),
            std::string::npos);
  EXPECT_EQ(json_message(R"({"a": {"b": 1}, "c": {"b": 1}, "b": 0})"), "");
}

TEST(StrictJson, RefusesBrokenAndDeepText) {
  EXPECT_NE(json_message("{\"a\": ").find("here: not valid JSON at byte"), std::string::npos);
  EXPECT_NE(json_message("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(json_message("{} x").find("not valid JSON"), std::string::npos);
  EXPECT_NE(json_message("1e999").find("not valid JSON"), std::string::npos);
  EXPECT_NE(json_message("\"\xff\"").find("not valid JSON"), std::string::npos);
  EXPECT_NE(json_message(std::string(100000, '[')).find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace posattn
