#include "posattn/report/plot/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "posattn/report/plot/gnuplot.h"

namespace posattn {
namespace {

constexpr std::array<LineStyle, 8> styles{{{"#0072B2", "solid", 7, 6},
                                           {"#D55E00", "'-'", 5, 4},
                                           {"#009E73", "'-.'", 9, 8},
                                           {"#CC79A7", "'_ '", 11, 10},
                                           {"#E69F00", "'. '", 13, 12},
                                           {"#56B4E9", "'_-'", 15, 14},
                                           {"#000000", "'_.'", 3, 2},
                                           {"#777777", "'--.'", 1, 1}}};

bool drawable(double value) { return std::isfinite(value) && value > 0; }
bool is_shown(const BandPoint& point) { return drawable(point.median) && std::isfinite(point.x); }

// One data block per line, in the order x, median, low, high; a blank line breaks the curve.
std::string data_block(size_t index, const FigureLine& line) {
  std::string text = fmt::format("$line{} << END\n", index);
  for (const BandPoint& point : line.points) {
    if (!is_shown(point)) {
      text += "\n";
      continue;
    }
    const double low = drawable(point.low) ? point.low : point.median;
    const double high = drawable(point.high) ? point.high : point.median;
    text += fmt::format("{} {} {} {}\n", point.x, point.median, low, high);
  }
  return text + "END\n";
}

bool has_band(const FigureLine& line) {
  return !line.secondary && std::ranges::any_of(line.points, [](const BandPoint& point) {
    return drawable(point.low) && drawable(point.high) && point.low < point.high;
  });
}

std::string plot_command(const FigureRequest& request) {
  std::vector<std::string> bands, curves;
  for (size_t i = 0; i < request.lines.size(); ++i) {
    const FigureLine& line = request.lines[i];
    const LineStyle& style = line_style(line.style);
    if (std::ranges::none_of(line.points, is_shown)) continue;  // nor has it a place in the legend
    if (has_band(line)) {
      bands.push_back(
          fmt::format("$line{} using 1:3:4 with filledcurves fs transparent solid 0.18 "
                      "noborder lc rgb '{}' notitle",
                      i, style.colour));
    }
    const std::string look =
        line.secondary
            ? "lines dt '.' lw 1.2"
            : fmt::format("{} dt {} lw 2.2", request.markers ? "linespoints" : "lines", style.dash);
    const std::string marker =
        request.markers && !line.secondary ? fmt::format(" pt {} ps 0.7", style.marker) : "";
    curves.push_back(fmt::format("$line{} using 1:2 with {}{} lc rgb '{}' title {}", i, look,
                                 marker, style.colour, gnuplot_quote(line.label)));
  }
  bands.insert(bands.end(), curves.begin(), curves.end());  // curves lie on top of the bands
  return fmt::format("plot {}\n", fmt::join(bands, ", \\\n  "));
}

}  // namespace

std::string draw_figure(const FigureRequest& request) {
  double first = INFINITY, last = -INFINITY, lowest = INFINITY, highest = 0;
  std::string script;
  for (size_t i = 0; i < request.lines.size(); ++i) {
    script += data_block(i, request.lines[i]);
    for (const BandPoint& point : request.lines[i].points) {
      if (!is_shown(point)) continue;
      first = std::min(first, point.x);
      last = std::max(last, point.x);
      lowest = std::min(lowest, drawable(point.low) ? point.low : point.median);
      highest = std::max({highest, point.median, drawable(point.high) ? point.high : 0});
    }
  }
  if (first > last) return "";
  if (first == last) {  // one point: gnuplot wants a range
    first -= 1;
    last += 1;
  }
  script += fmt::format(
      "set terminal svg size 760,430 dynamic enhanced font 'sans-serif,14' background '#ffffff' "
      "name {}\n"
      "set encoding utf8\n"
      "set border 3 lc rgb '#555555'\n"
      "set tics nomirror\n"
      "set grid ytics lc rgb '#dddddd' lw 0.6\n"
      "set logscale y\n"
      "set format y '10^{{%T}}'\n"
      "set xrange [{}:{}]\n"
      "set yrange [{}:{}]\n"
      "set xlabel {} noenhanced\n"
      "set ylabel {} noenhanced\n"
      "set key outside top center horizontal noenhanced samplen 3\n",
      gnuplot_quote(request.name), first, last, std::pow(10, std::floor(std::log10(lowest))),
      std::pow(10, std::ceil(std::log10(highest) + 1e-9)), gnuplot_quote(request.x_label),
      gnuplot_quote(request.y_label));
  script += plot_command(request);
  return svg_element(run_gnuplot(script), request.name);
}

const LineStyle& line_style(int style) {
  return styles[static_cast<size_t>(style) % styles.size()];
}

std::string style_colour(int style) { return line_style(style).colour; }

}  // namespace posattn
