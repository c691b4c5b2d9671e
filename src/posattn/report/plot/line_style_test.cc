#include "posattn/report/plot/line_style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "posattn/model/spec/spec.h"

namespace posattn {
namespace {

using testing::ElementsAre;

TEST(LineStyle, EveryArchitectureHasAHueOfItsOwn) {
  std::set<std::string> colours{style_colour(style_of("baseline")),
                                style_colour(style_of("compiled"))};
  size_t names = 2;
  for (const Preset& preset : presets()) {
    if (preset.name == "m0" || preset.name == "m5") continue;
    colours.insert(style_colour(style_of(preset.name)));
    ++names;
  }
  EXPECT_EQ(colours.size(), names);
  EXPECT_EQ(style_of("m0"), style_of("standard"));
  EXPECT_EQ(style_of("m5"), style_of("positional"));
  EXPECT_EQ(style_of("nobody's"), style_of("baseline"));
}

TEST(LineStyle, TheShadeTellsVariantsApart) {
  const int plain = style_of("standard"), positional = style_of("positional");
  EXPECT_THAT(styles_of({{"positional"}, {"standard"}}), ElementsAre(positional, plain));
  EXPECT_THAT(styles_of({{"standard"}, {"standard"}}),
              ElementsAre(plain, style_of("standard", Shade::pale)));
  // From pale to dark, in whichever order the lines stand.
  EXPECT_THAT(styles_of({{"standard", 8}, {"positional", 1}, {"standard", 2}}),
              ElementsAre(plain, positional, style_of("standard", Shade::pale)));
  // Six lines of one architecture still differ.
  const std::vector<int> six = styles_of(std::vector<StyledLine>(6, {"standard"}));
  EXPECT_EQ(std::set<int>(six.begin(), six.end()).size(), 6U);
  EXPECT_EQ(style_colour(six[5]), style_colour(six[0]));
  EXPECT_STRNE(line_style(six[5]).dash, line_style(six[0]).dash);
}

TEST(LineStyle, LabelsBeginWithAnArchitecture) {
  EXPECT_THAT(
      styles_of_labels({"standard (tf32)", "mine", "m5", "standard-no-bias, deep", "positionally"}),
      ElementsAre(style_of("standard"), style_of("baseline"), style_of("positional"),
                  style_of("standard-no-bias"), style_of("baseline", Shade::pale)));
}

// A style sheet of dark pages replaces colours one by one.
TEST(LineStyle, NoTwoStylesHaveOneColour) {
  std::set<std::string> light;
  for (int style = 0; style < line_style_count; ++style) {
    for (const double share : {1.0, whisker_share, published_share}) {
      light.insert(mixed_colour(style_colour(style), light_paper, share));
    }
  }
  EXPECT_EQ(light.size(), 3U * line_style_count);
}

}  // namespace
}  // namespace posattn
