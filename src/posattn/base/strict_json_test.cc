#include "posattn/base/strict_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "posattn/base/error.h"

namespace posattn {
namespace {

std::string message_of(const std::string& text) {
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
  EXPECT_NE(message_of(R"({"a": 1, "a": 2})").find("'a' appears twice"), std::string::npos);
  EXPECT_NE(message_of(R"({"o": [{"b": 1, "c": 2, "b": 3}]})").find("'b' appears twice"),
            std::string::npos);
  EXPECT_EQ(message_of(R"({"a": {"b": 1}, "c": {"b": 1}, "b": 0})"), "");
}

TEST(StrictJson, RefusesBrokenAndDeepText) {
  EXPECT_NE(message_of("{\"a\": ").find("here: not valid JSON at byte"), std::string::npos);
  EXPECT_NE(message_of("").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message_of("{} x").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message_of("1e999").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message_of("\"\xff\"").find("not valid JSON"), std::string::npos);
  EXPECT_NE(message_of(std::string(100000, '[')).find("nested too deeply"), std::string::npos);
}

}  // namespace
}  // namespace posattn
