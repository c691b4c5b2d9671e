#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/report/plot/line_style.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(DarkMode, ReplacesTheColoursOfTheDrawing) {
  const std::string style = dark_mode_style(
      "<g><rect fill=\"#ffffff\"/><path stroke='#555555'/><text>#222222</text></g>");
  EXPECT_EQ(markup_problem(style), "");
  EXPECT_THAT(style, HasSubstr("prefers-color-scheme: dark"));
  EXPECT_THAT(style, HasSubstr("[fill=\"#ffffff\"]{fill:#15181c}"));
  EXPECT_THAT(style, HasSubstr("[stroke=\"#555555\"]{stroke:#"));
  EXPECT_THAT(style, Not(HasSubstr("[fill=\"#555555\"]")));  // not used so
  EXPECT_THAT(style, Not(HasSubstr("#222222")));             // no attribute
  EXPECT_THAT(dark_mode_style("<rect fill=\"#123456\"/>", {{"#123456", "#abcdef"}}),
              HasSubstr("[fill=\"#123456\"]{fill:#abcdef}"));
  EXPECT_EQ(dark_mode_style("<rect/>"), "");
}

TEST(DarkMode, MixesWithThePaper) {
  EXPECT_EQ(mixed_colour("#0072b2", light_paper, 1), "#0072b2");
  EXPECT_EQ(mixed_colour("#0072b2", light_paper, 0), light_paper);
  EXPECT_EQ(mixed_colour("#000000", "#ffffff", 0.5), "#808080");
}

// Relative luminance and contrast as the Web Content Accessibility Guidelines define them.
double luminance(const std::string& colour) {
  double sum = 0;
  constexpr double weights[] = {0.2126, 0.7152, 0.0722};
  for (size_t i = 0; i < 3; ++i) {
    const double share = std::stoi(colour.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += weights[i] * (share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4));
  }
  return sum;
}
double contrast(const std::string& a, const std::string& b) {
  const double first = luminance(a) + 0.05, second = luminance(b) + 0.05;
  return std::max(first, second) / std::min(first, second);
}

TEST(DarkMode, LinesStandOutFromThePaper) {
  for (int style = 0; style < line_style_count; ++style) {
    const bool is_pale = in_shade(style, Shade::plain) > style;  // of two shades a dash tells, too
    EXPECT_GE(contrast(line_style(style).dark_colour, dark_paper), is_pale ? 2 : 4.5) << style;
    EXPECT_GE(contrast(line_style(style).colour, light_paper), is_pale ? 1.4 : 2.2) << style;
  }
}

}  // namespace
}  // namespace posattn
