#include "posattn/report/svg/attention_svg.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

using testing::HasSubstr;
using testing::Not;

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

std::vector<float> identity(int maps, int nodes) {
  std::vector<float> attention(static_cast<size_t>(maps) * nodes * nodes);
  for (int map = 0; map < maps; ++map) {
    for (int node = 0; node < nodes; ++node) {
      attention[(static_cast<size_t>(map) * nodes + node) * nodes + node] = 1;
    }
  }
  return attention;
}

TEST(AttentionSvg, DrawsEveryLayerAndHead) {
  const std::string svg = attention_svg(identity(6, 4), 3, 2, 4, 1, "hard attention");
  EXPECT_EQ(markup_problem(svg), "");
  for (int layer = 0; layer < 3; ++layer) {
    for (int head = 0; head < 2; ++head) {
      EXPECT_EQ(count(svg, "layer " + std::to_string(layer) + ", head " + std::to_string(head)), 1);
    }
  }
  // Only the diagonal is drawn, each cell with its number; the scratch node has its name.
  EXPECT_EQ(count(svg, "1.000</title>"), 6 * 4);
  EXPECT_EQ(count(svg, "<title>s \u2192 s: 1.000</title>"), 6);
  EXPECT_THAT(svg, HasSubstr("s: scratch"));
}

TEST(AttentionSvg, RowsLookAndColumnsAreLookedAt) {
  std::vector<float> attention{0, 1, 0, 1};  // both nodes look at the second
  const std::string svg = attention_svg(attention, 1, 1, 2, 0, "t");
  EXPECT_THAT(svg, HasSubstr("<title>0 \u2192 1: 1.000</title>"));
  EXPECT_THAT(svg, HasSubstr("x=\"95.00\" y=\"0.00\""));
  EXPECT_THAT(svg, Not(HasSubstr("x=\"0.00\" y=\"95.00\"")));
  EXPECT_THAT(svg, Not(HasSubstr("scratch")));
}

TEST(AttentionSvg, EscapesTheTitle) {
  const std::string svg = attention_svg({1}, 1, 1, 1, 0, "</svg><script>alert('x')</script>&\x01");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(AttentionSvg, ManyNodesStaySmall) {
  constexpr int nodes = 1025;
  const std::string svg = attention_svg(
      std::vector<float>(static_cast<size_t>(nodes) * nodes, 1.0F / nodes), 1, 1, nodes, 1, "t");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_LT(svg.size(), 80'000U);
  EXPECT_EQ(count(svg, "17 \u00d7 17 nodes"), 1);
  EXPECT_EQ(count(svg, ">s</text>"), 2);
}

TEST(AttentionSvg, ABlockHoldsTheAttentionOfItsNodes) {
  constexpr int nodes = 128;  // two nodes to a cell, every node looks at node 1 and its neighbour
  std::vector<float> attention(static_cast<size_t>(nodes) * nodes);
  for (int node = 0; node < nodes; ++node) {
    attention[static_cast<size_t>(node) * nodes] = 0.5F;
    attention[static_cast<size_t>(node) * nodes + 1] = 0.5F;
  }
  const std::string svg = attention_svg(attention, 1, 1, nodes, 0, "t");
  // Full attention, darkest, in the first cell of each of the 64 rows and nowhere else.
  EXPECT_EQ(count(svg, "fill=\"#08306b\" d=\"M0 0h1v1h-1z"), 1);
  EXPECT_EQ(count(svg, "h1v1h-1z"), 64);
  EXPECT_EQ(count(svg, "M0 63h1v1h-1z"), 1);
}

TEST(AttentionSvg, ShowsWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string svg = attention_svg({nan, nan, nan, nan}, 1, 1, 2, 1, "t");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count(svg, "#bbbbbb"), 4);
}

TEST(AttentionSvg, RefusesWrongSizes) {
  EXPECT_THROW(attention_svg({1, 0}, 1, 1, 1, 0, "t"), std::invalid_argument);
  EXPECT_THROW(attention_svg({}, 1, 1, 0, 0, "t"), std::invalid_argument);
  EXPECT_THROW(attention_svg({1}, 1, 1, 1, 2, "t"), std::invalid_argument);
}

}  // namespace
}  // namespace posattn
