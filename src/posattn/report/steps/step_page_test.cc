#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/report/steps/walk.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Walk small_walk() {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Walk walk;
  walk.title = "<b>&";
  walk.facts = {"<i>", "input 1"};
  walk.node_noun = "processor";
  walk.nodes = 2;
  walk.columns = {{.name = "x", .type = "real"},
                  {.name = "letter", .type = "int[0..1]", .letters = {"a", "<b>"}}};
  walk.source = {"# </script><script>alert(1)</script>", "broken \xff"};
  walk.steps = {{"start", {}, {}, {}, {0.5, 0, -infinite, 1}},
                {"after round 0",
                 {"x = y"},
                 {2},
                 {{"reads y", 0, {"y"}, {0}, {{}, {{0, 1.0}, {1, -0.25}}}}},
                 {1, 0, std::numeric_limits<double>::quiet_NaN(), 1}}};
  return walk;
}

nlohmann::json data_of(const std::string& page) {
  const std::string open = "id=\"walk\">";
  const size_t start = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(start, page.find("</script>", start) - start));
}

// Without what lies between <script> and </script>, which is not markup.
std::string without_scripts(std::string page) {
  for (size_t at = page.find("<script"); at != std::string::npos; at = page.find("<script", at)) {
    page.erase(at, page.find("</script>", at) + 9 - at);
  }
  return page;
}

TEST(StepPage, HoldsTheWalkAsJson) {
  const nlohmann::json data = data_of(step_page(small_walk()));
  EXPECT_EQ(data["nodes"], 2);
  EXPECT_EQ(data["columns"][1]["letters"], (nlohmann::json{"a", "<b>"}));
  EXPECT_FALSE(data["columns"][0].contains("letters"));
  EXPECT_EQ(data["steps"][0]["values"], (nlohmann::json{0.5, 0, "-inf", 1}));
  EXPECT_EQ(data["steps"][1]["values"][2], "nan");
  EXPECT_EQ(data["steps"][1]["readings"][0]["reads"].dump(), "[[],[0,1,1,-0.25]]");
  EXPECT_EQ(data["source"][0], "# </script><script>alert(1)</script>");
}

TEST(StepPage, IsWellFormedWhateverTheTextsAre) {
  const std::string page = step_page(small_walk());
  EXPECT_EQ(markup_problem(without_scripts(page)), "");
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("<title>&lt;b&gt;&amp;</title>"));
  EXPECT_THAT(page, HasSubstr("&lt;i&gt;"));
}

TEST(StepPage, LoadsNothing) {
  const std::string page = step_page(small_walk());
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  for (const char* word : {" src=", " href=", "url(", "fetch(", "import "}) {
    EXPECT_THAT(page, Not(HasSubstr(word)));
  }
}

TEST(Walk, SizesAboveTheLimitAreRefused) {
  check_walk_size(most_walk_nodes, most_walk_numbers);
  EXPECT_THROW(check_walk_size(most_walk_nodes + 1, 1), Error);
  EXPECT_THROW(check_walk_size(1, most_walk_numbers + 1), Error);
}

TEST(Walk, LongListsAreCut) {
  EXPECT_EQ(short_list(std::vector<double>{3, 1.23456, -2}), "3, 1.235, -2");
  EXPECT_EQ(short_list(std::vector<double>{2, 0, 3, -1}, {"_", "a", "b"}), "b, _, 3, -1");
  EXPECT_THAT(short_list(std::vector<double>(17)), HasSubstr("0, …"));
}

}  // namespace
}  // namespace posattn
