#include "posattn/report/dark_mode.h"

#include <fmt/format.h>

#include <cmath>

#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

// What all drawings share.
std::vector<ThemedColour> common_colours() {
  std::vector<ThemedColour> colours{{light_paper, dark_paper}, {"#222222", "#e6e9ec"},  // text
                                    {"#000000", "#e6e9ec"},   // text of gnuplot
                                    {"#444444", "#c3cad1"},   // notes
                                    {"#555555", "#9aa5b1"},   // axes
                                    {"#666666", "#9aa5b1"},   // the published results, in a legend
                                    {"#999999", "#6b7580"},   // frames
                                    {"#cccccc", "#3a424b"},   // the lines of processors
                                    {"#dddddd", "#2f363d"},   // grids
                                    {"#eeeeee", "#262b31"},   // between rounds
                                    {"#b03a00", "#ff9d66"}};  // what was reduced
  for (int style = 0; style < line_style_count; ++style) {
    const LineStyle line = line_style(style);
    for (const double share : {1.0, whisker_share, published_share}) {
      colours.push_back({mixed_colour(line.colour, light_paper, share),
                         mixed_colour(line.dark_colour, dark_paper, share)});
    }
  }
  return colours;
}

}  // namespace

std::string mixed_colour(const std::string& colour, const std::string& paper, double share) {
  std::string mixed = "#";
  for (const size_t at : {1, 3, 5}) {
    const auto part = [at](const std::string& of) {
      return std::stoi(of.substr(at, 2), nullptr, 16);
    };
    mixed += fmt::format("{:02x}", std::lround(share * part(colour) + (1 - share) * part(paper)));
  }
  return mixed;
}

std::string dark_mode_style(std::string_view drawing, const std::vector<ThemedColour>& more) {
  std::string rules;
  const auto add = [&](const ThemedColour& colour) {
    for (const char* attribute : {"fill", "stroke", "color"}) {
      const auto used = [&](char quote) {
        return drawing.find(fmt::format(" {}={}{}{}", attribute, quote, colour.light, quote)) !=
               std::string_view::npos;
      };
      if (used('"') || used('\'')) {
        rules += fmt::format("[{0}=\"{1}\"]{{{0}:{2}}}\n", attribute, colour.light, colour.dark);
      }
    }
  };
  for (const ThemedColour& colour : common_colours()) add(colour);
  for (const ThemedColour& colour : more) add(colour);
  if (rules.empty()) return "";
  return "<style>@media (prefers-color-scheme: dark) {\n" + rules + "}</style>\n";
}

}  // namespace posattn
