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

std::vector<float> identity(int maps, int nodes) {
  std::vector<float> attention(static_cast<size_t>(maps) * nodes * nodes);
  for (int map = 0; map < maps; ++map) {
    for (int node = 0; node < nodes; ++node) {
      attention[(static_cast<size_t>(map) * nodes + node) * nodes + node] = 1;
    }
  }
  return attention;
}

AttentionMaps maps_of(const std::vector<float>& attention, int depth, int heads, int nodes,
                      int scratch_nodes = 0) {
  return {.caption = {},
          .depth = depth,
          .heads = heads,
          .nodes = nodes,
          .scratch_nodes = scratch_nodes,
          .weights = attention};
}

std::string draw(const std::vector<float>& attention, int depth, int heads, int nodes,
                 int scratch_nodes, const std::string& title) {
  const AttentionMaps maps = maps_of(attention, depth, heads, nodes, scratch_nodes);
  return attention_svg(maps, title, attention_scale_end(maps));
}

TEST(AttentionSvg, DrawsEveryLayerAndHead) {
  const std::string svg = draw(identity(6, 4), 3, 2, 4, 1, "hard attention");
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
  const std::string svg = draw(attention, 1, 1, 2, 0, "t");
  EXPECT_THAT(svg, HasSubstr("<title>0 \u2192 1: 1.000</title>"));
  EXPECT_THAT(svg, HasSubstr("x=\"67.00\" y=\"0.00\""));
  EXPECT_THAT(svg, Not(HasSubstr("x=\"0.00\" y=\"67.00\"")));
  EXPECT_THAT(svg, Not(HasSubstr("scratch")));
}

TEST(AttentionSvg, EscapesTheTitle) {
  const std::string svg = draw({1}, 1, 1, 1, 0, "</svg><script>alert('x')</script>&\x01");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("<script")));
}

TEST(AttentionSvg, ManyNodesStaySmall) {
  constexpr int nodes = 1025;
  const std::string svg = draw(std::vector<float>(static_cast<size_t>(nodes) * nodes, 1.0F / nodes),
                               1, 1, nodes, 1, "t");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_LT(svg.size(), 80'000U);
  EXPECT_THAT(svg, HasSubstr("17 \u00d7 17"));
  EXPECT_EQ(count(svg, ">s</text>"), 2);
}

TEST(AttentionSvg, ABlockHoldsTheAttentionOfItsNodes) {
  constexpr int nodes = 128;  // two nodes to a cell, every node looks at node 1 and its neighbour
  std::vector<float> attention(static_cast<size_t>(nodes) * nodes);
  for (int node = 0; node < nodes; ++node) {
    attention[static_cast<size_t>(node) * nodes] = 0.5F;
    attention[static_cast<size_t>(node) * nodes + 1] = 0.5F;
  }
  const std::string svg = draw(attention, 1, 1, nodes, 0, "t");
  // Full attention, darkest, in the first cell of each of the 64 rows and nowhere else.
  EXPECT_EQ(count(svg, "fill=\"#161a21\" d=\"M0 0h1v1h-1z"), 1);
  EXPECT_EQ(count(svg, "h1v1h-1z"), 64);
  EXPECT_EQ(count(svg, "M0 63h1v1h-1z"), 1);
}

TEST(AttentionSvg, ShowsWhatIsNotANumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::string svg = draw({nan, nan, nan, nan}, 1, 1, 2, 1, "t");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count(svg, "fill=\"#bbbbbb\"><title>"), 4);
}

// Two maps on one page: the same weight has the same colour.
TEST(AttentionSvg, DrawingsShareAScale) {
  const AttentionMaps sharp = maps_of({1, 0, 0, 1}, 1, 1, 2);
  const AttentionMaps even = maps_of({0.5F, 0.5F, 0.5F, 0.5F}, 1, 1, 2);
  EXPECT_EQ(attention_scale_end(even), 0.5);
  EXPECT_EQ(attention_scale_end(sharp), 1);
  const std::string own = attention_svg(even, "t", 0.5);
  const std::string shared = attention_svg(even, "t", 1);
  EXPECT_EQ(count(own, "fill=\"#161a21\"><title>"), 4);
  EXPECT_EQ(count(shared, "fill=\"#878a8f\"><title>"), 4);  // the middle of the scale
  EXPECT_THAT(shared, HasSubstr(">1 attention weight<"));
}

TEST(AttentionSvg, WeightsBelowZeroHaveAColourOfTheirOwn) {
  const std::string svg = draw({1.5F, -0.5F, 0.5F, 0.5F}, 1, 1, 2, 0, "t");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count(svg, "0 \u2192 1: -0.500</title>"), 1);
  EXPECT_EQ(count(svg, "fill=\"#d6a9ba\"><title>0 \u2192 1"), 1);  // a third of the strongest
  EXPECT_EQ(count(svg, "fill=\"#161a21\"><title>0 \u2192 0"), 1);
  EXPECT_THAT(svg, HasSubstr("text-anchor=\"end\">-1.5</text>"));
  EXPECT_THAT(svg, HasSubstr(">1.5 attention weight<"));
  EXPECT_THAT(svg, HasSubstr("[fill=\"#96103c\"]{fill:#ff8096}"));
  EXPECT_THAT(svg, Not(HasSubstr("adds up")));
  const std::string usual = draw({1, 0, 0.5F, 0.5F}, 1, 1, 2, 0, "t");
  EXPECT_THAT(usual, HasSubstr("text-anchor=\"end\">0</text>"));
  EXPECT_THAT(usual, Not(HasSubstr("#96103c")));
}

TEST(AttentionSvg, SaysWhatRowsAddUpTo) {
  const AttentionMaps maps = maps_of({12, 0.5F, 0, 0.25F}, 1, 1, 2);
  EXPECT_EQ(attention_scale_end(maps), 12);
  EXPECT_THAT(attention_svg(maps, "t", 12), HasSubstr("; a row adds up to 0.25 to 12"));
  // A part of maps leaves weights out.
  EXPECT_THAT(attention_svg(part_of(maps, 1, 1), "t", 1), Not(HasSubstr("adds up")));
  EXPECT_EQ(attention_scale_end(maps_of({1.0000001F, 0, 0, 1}, 1, 1, 2)), 1);  // rounding
  EXPECT_EQ(attention_scale_end(maps_of({-0.31F, 0, 0, 0.1F}, 1, 1, 2)), 0.4);
}

TEST(AttentionSvg, FollowsDarkPages) {
  const std::string svg = draw(identity(1, 3), 1, 1, 3, 0, "t");
  EXPECT_THAT(svg, HasSubstr("[fill=\"#161a21\"]{fill:#e8eef6}"));
  EXPECT_THAT(svg, HasSubstr("[fill=\"#f7f9fc\"]{fill:#1d2229}"));
  EXPECT_THAT(svg, HasSubstr("[fill=\"#222222\"]{fill:"));
}

// 390 pixels less the margins of a page.
TEST(AttentionSvg, TwoHeadsFitAPhoneWithCaptionsText) {
  const std::string svg = draw(identity(2, 9), 1, 2, 9, 1,
                               "runs/cumulative-sum/positional-seed0/model.safetensors, "
                               "the same for every input");
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_THAT(svg, HasSubstr("width=\"344\""));
  EXPECT_THAT(svg, HasSubstr("font-size=\"14.4\""));
  EXPECT_EQ(count(svg, "font-size"), 1);  // nothing smaller
  EXPECT_THAT(
      svg, HasSubstr("<desc>Attention weights over 9 nodes, one map per layer (1) and head (2)"));
}

TEST(AttentionSvg, NamesStandAtEveryNode) {
  AttentionMaps maps = maps_of(identity(1, 31), 1, 1, 31, 1);
  for (int node = 0; node < 30; ++node) maps.names.push_back(node % 2 == 0 ? "a" : "<");
  const std::string svg = attention_svg(maps, "t", 1);
  EXPECT_EQ(markup_problem(svg), "");
  EXPECT_EQ(count(svg, ">a</text>"), 2 * 15);
  EXPECT_EQ(count(svg, ">&lt;</text>"), 2 * 15);
  EXPECT_EQ(count(svg, ">s</text>"), 2);
  EXPECT_THAT(svg, Not(HasSubstr("rotate")));
  // Long ones stand upright above their columns.
  maps.names[3] = "003.41";
  EXPECT_EQ(count(attention_svg(maps, "t", 1), "rotate(-90)"), 31);
  maps.names.pop_back();
  EXPECT_THROW(attention_svg(maps, "t", 1), std::invalid_argument);
}

TEST(AttentionSvg, BlocksOfNodesHaveNumbers) {
  AttentionMaps maps = maps_of(identity(1, 100), 1, 1, 100);
  maps.names.assign(100, "a");
  const std::string svg = attention_svg(maps, "t", 1);
  EXPECT_EQ(count(svg, ">a</text>"), 0);
  EXPECT_THAT(svg, HasSubstr(">0</text>"));
}

TEST(AttentionMaps, APartKeepsNumbersNamesAndWeights) {
  AttentionMaps maps = maps_of({}, 1, 2, 4, 1);
  for (int i = 0; i < 32; ++i) maps.weights.push_back(static_cast<float>(i));
  const AttentionMaps unnamed = part_of(maps, 1, 2);
  EXPECT_EQ(unnamed.weights, (std::vector<float>{5, 6, 9, 10, 21, 22, 25, 26}));
  EXPECT_EQ(unnamed.scratch_nodes, 0);
  EXPECT_EQ(unnamed.name(1), "2");
  maps.names = {"x", "y", "z"};
  const AttentionMaps named = part_of(maps, 1, 2);
  EXPECT_EQ(named.name(0), "y");
  EXPECT_EQ(named.full_name(1), "2 z");
  EXPECT_EQ(maps.full_name(3), "s");
  // A scratch node is in no part.
  EXPECT_THROW(part_of(maps, 1, 3), std::invalid_argument);
  EXPECT_THROW(part_of(maps, 2, 1), std::invalid_argument);
}

TEST(AttentionSvg, RefusesWrongSizes) {
  EXPECT_THROW(draw({1, 0}, 1, 1, 1, 0, "t"), std::invalid_argument);
  EXPECT_THROW(draw({}, 1, 1, 0, 0, "t"), std::invalid_argument);
  EXPECT_THROW(draw({1}, 1, 1, 1, 2, "t"), std::invalid_argument);
}

}  // namespace
}  // namespace posattn
