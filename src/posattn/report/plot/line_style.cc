#include "posattn/report/plot/line_style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <set>

namespace posattn {
namespace {

struct Hue {
  std::string_view architecture;
  const char *light, *dark;
};
struct ShadeLook {
  double share;
  const char* dash;
};

#define POSATTN_SHADE(share, dash)
#define POSATTN_HUE(architecture, light, dark) {architecture, light, dark},
constexpr Hue hues[] = {
#include "posattn/report/plot/line_styles.inc"
};
#undef POSATTN_SHADE
#undef POSATTN_HUE

#define POSATTN_HUE(architecture, light, dark)
#define POSATTN_SHADE(share, dash) {share, dash},
constexpr ShadeLook shades[] = {
#include "posattn/report/plot/line_styles.inc"
};
#undef POSATTN_SHADE
#undef POSATTN_HUE

constexpr int hue_count = static_cast<int>(std::size(hues));
constexpr int shade_count = static_cast<int>(std::size(shades));
static_assert(line_style_count == hue_count * shade_count);

bool is_hue(std::string_view name) {
  return std::ranges::find(hues, name, &Hue::architecture) != std::end(hues);
}

std::string shaded(const char* colour, const char* paper, const char* ink, double share) {
  return share <= 1 ? mixed_colour(colour, paper, share) : mixed_colour(colour, ink, 2 - share);
}

// gnuplot's symbols, filled and open: circle, square, triangles, diamond, pentagon.
constexpr std::array<std::pair<int, int>, 6> markers{
    {{7, 6}, {5, 4}, {9, 8}, {11, 10}, {13, 12}, {15, 14}}};

// The shades for each number of variants, from pale to dark.
constexpr std::array<std::array<Shade, 5>, 6> ordered_shades{
    {{},
     {Shade::plain},
     {Shade::pale, Shade::plain},
     {Shade::pale, Shade::plain, Shade::darkest},
     {Shade::palest, Shade::pale, Shade::plain, Shade::darkest},
     {Shade::palest, Shade::pale, Shade::plain, Shade::dark, Shade::darkest}}};
constexpr std::array<Shade, 5> other_shades{Shade::plain, Shade::pale, Shade::darkest,
                                            Shade::palest, Shade::dark};

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

int style_of(std::string_view architecture, Shade shade) {
  if (architecture == "m0") architecture = "standard";
  if (architecture == "m5") architecture = "positional";
  const auto* hue = std::ranges::find(hues, architecture, &Hue::architecture);
  if (hue == std::end(hues)) {
    hue = std::ranges::find(hues, std::string_view("baseline"), &Hue::architecture);
  }
  return static_cast<int>(std::distance(std::begin(hues), hue)) * shade_count +
         static_cast<int>(shade);
}

int in_shade(int style, Shade shade) {
  return style - style % shade_count + static_cast<int>(shade);
}

int variant_style(std::string_view architecture, size_t variant) {
  const auto again = static_cast<int>(variant / shade_count);
  return style_of(architecture, other_shades[variant % shade_count]) + again * line_style_count;
}

std::vector<int> styles_of(const std::vector<StyledLine>& lines) {
  std::vector<int> styles;
  for (const StyledLine& line : lines) {
    const int plain = style_of(line.architecture);
    std::set<double> depths;
    size_t variants = 0, before = 0;
    for (const StyledLine& other : lines) {
      if (style_of(other.architecture) != plain) continue;
      if (&other < &line) ++before;
      ++variants;
      depths.insert(other.depth);
    }
    const bool ordered = depths.size() == variants && variants < ordered_shades.size();
    const auto place = static_cast<size_t>(std::distance(depths.begin(), depths.find(line.depth)));
    styles.push_back(ordered ? in_shade(plain, ordered_shades[variants][place])
                             : variant_style(line.architecture, before));
  }
  return styles;
}

std::vector<int> styles_of_labels(const std::vector<std::string>& labels) {
  std::vector<StyledLine> lines;
  for (const std::string& label : labels) {
    StyledLine line{"baseline"};
    for (size_t length = label.size(); length > 0; --length) {
      const std::string_view start = std::string_view(label).substr(0, length);
      const bool ends = length == label.size() ||
                        std::string_view(" ,(-").find(label[length]) != std::string_view::npos;
      if (ends && (start == "m0" || start == "m5" || is_hue(start))) {
        line.architecture = start;
        break;
      }
    }
    lines.push_back(line);
  }
  return styles_of(lines);
}

LineStyle line_style(int style) {
  const int again = style / line_style_count, shade = style % shade_count;
  const Hue& hue = hues[style % line_style_count / shade_count];
  const double share = shades[shade].share;
  const auto marker = markers[(style / shade_count + shade + 4 + again) % markers.size()];
  return {shaded(hue.light, light_paper, "#000000", share),
          shaded(hue.dark, dark_paper, "#ffffff", share),
          shades[(shade + again) % shade_count].dash, marker.first, marker.second};
}

std::string style_colour(int style) { return line_style(style).colour; }

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
