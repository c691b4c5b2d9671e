#include "posattn/playground/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string empty_page =
    R"(<p>before</p><script type="application/json" id="given">null</script>after)";

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

nlohmann::json given_in(const std::string& filled) {
  const size_t begin = filled.find("\"given\">") + 8;
  return nlohmann::json::parse(filled.substr(begin, filled.find("</script>", begin) - begin));
}

TEST(PlaygroundPage, CarriesModelsAsBase64) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},        {"f", "Zg=="},        {"fo", "Zm8="},
      {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"\xff\xfe\x00", "//4="}};
  for (const auto& [text, expected] : cases) {
    const std::string filled =
        page_with(empty_page, "p.html", {.models = {{"m", bytes_of(text)}}, .program = {}});
    EXPECT_EQ(given_in(filled)["models"][0]["bytes"], expected);
    EXPECT_THAT(filled, HasSubstr("<p>before</p>"));
    EXPECT_TRUE(filled.ends_with("</script>after"));
  }
}

TEST(PlaygroundPage, HostileTextStaysData) {
  const std::string hostile = "</script><script>alert(1)</script><!-- \xff \u2028 \"";
  const std::string filled =
      page_with(empty_page, "p.html",
                {.models = {{hostile, {}}}, .program = PageProgram{hostile, hostile, "", 8}});
  EXPECT_THAT(filled, Not(HasSubstr("alert(1)</script>")));
  EXPECT_THAT(filled, Not(HasSubstr("<!--")));
  EXPECT_THAT(given_in(filled)["program"]["text"].get<std::string>(),
              HasSubstr("</script><script>alert(1)"));
}

TEST(PlaygroundPage, OnlyAPageWithOnePlaceIsFilled) {
  EXPECT_THROW(page_with("<html></html>", "p.html", {}), Error);
  EXPECT_THROW(page_with(empty_page + empty_page, "p.html", {}), Error);
  EXPECT_THROW(page_with(page_with(empty_page, "p.html", {}), "p.html", {}), Error);
}

}  // namespace
}  // namespace posattn
