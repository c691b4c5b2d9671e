#include "posattn/report/plot/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "posattn/report/dark_mode.h"
#include "posattn/report/plot/gnuplot.h"
#include "posattn/report/plot/text_lines.h"

namespace posattn {
namespace {

constexpr std::array<LineStyle, line_style_count> styles{{{"#0072b2", "#4ba3e3", "solid", 7, 6},
                                                          {"#d55e00", "#f58a3d", "'-'", 5, 4},
                                                          {"#009e73", "#2fc79a", "'-.'", 9, 8},
                                                          {"#cc79a7", "#e39ac2", "'_ '", 11, 10},
                                                          {"#e69f00", "#f2c14e", "'. '", 13, 12},
                                                          {"#56b4e9", "#a3dbf7", "'_-'", 15, 14},
                                                          {"#000000", "#e6e9ec", "'_.'", 3, 2},
                                                          {"#777777", "#9aa5b1", "'--.'", 1, 1}}};

// What the axes of a figure can show.
struct Drawable {
  explicit Drawable(const FigureRequest& request)
      : logarithmic(!request.greatest), logarithmic_x(request.logarithmic_x) {}
  bool operator()(double value) const {
    return std::isfinite(value) && (!logarithmic || value > 0);
  }
  bool operator()(const BandPoint& point) const {
    return (*this)(point.median) && std::isfinite(point.x) && (!logarithmic_x || point.x > 0);
  }
  bool logarithmic, logarithmic_x;
};

// One data block per line, in the order x, median, low, high; a blank line breaks the curve.
std::string data_block(size_t index, const FigureLine& line, const Drawable& drawable) {
  std::string text = fmt::format("$line{} << END\n", index);
  for (const BandPoint& point : line.points) {
    if (!drawable(point)) {
      text += "\n";
      continue;
    }
    const double low = drawable(point.low) ? point.low : point.median;
    const double high = drawable(point.high) ? point.high : point.median;
    text += fmt::format("{} {} {} {}\n", point.x, point.median, low, high);
  }
  return text + "END\n";
}

bool has_band(const FigureLine& line, const Drawable& drawable) {
  return !line.secondary && std::ranges::any_of(line.points, [&](const BandPoint& point) {
    return drawable(point.low) && drawable(point.high) && point.low < point.high;
  });
}

std::string plot_command(const FigureRequest& request) {
  const Drawable drawable(request);
  std::vector<std::string> bands, curves;
  for (size_t i = 0; i < request.lines.size(); ++i) {
    const FigureLine& line = request.lines[i];
    const LineStyle style = line_style(line.style);
    if (std::ranges::none_of(line.points, drawable)) continue;  // nor has it a place in the legend
    if (has_band(line, drawable)) {
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

std::string description(const FigureRequest& request) {
  std::vector<std::string> labels;
  for (const FigureLine& line : request.lines) {
    if (std::ranges::any_of(line.points, Drawable(request))) labels.push_back(line.label);
  }
  return fmt::format("{}{} against {}. Lines: {}.", request.y_label,
                     request.greatest ? "" : " on a logarithmic axis", request.x_label,
                     fmt::join(labels, "; "));
}

// On a logarithmic axis few values each have their mark; many have those of powers of ten.
std::string logarithmic_marks(const FigureRequest& request) {
  constexpr size_t most_marks = 8;
  std::set<double> values;
  for (const FigureLine& line : request.lines) {
    for (const BandPoint& point : line.points) {
      if (point.x > 0) values.insert(point.x);
    }
  }
  if (values.size() > most_marks) return "set logscale x\nset format x '10^{%T}'\n";
  return fmt::format("set logscale x\nset xtics ({})\n", fmt::join(values, ", "));
}

// Few whole numbers each have their mark.
std::string horizontal_marks(const FigureRequest& request, double first, double last) {
  constexpr double most_marks = 12;
  if (request.logarithmic_x) return logarithmic_marks(request);
  for (const FigureLine& line : request.lines) {
    for (const BandPoint& point : line.points) {
      if (point.x != std::floor(point.x)) return "";
    }
  }
  return last - first < most_marks ? "set xtics 1\n" : "";
}

std::string vertical_axis(const FigureRequest& request, double lowest, double highest) {
  if (request.greatest) return fmt::format("set yrange [0:{}]\n", *request.greatest);
  return fmt::format(
      "set logscale y\n"
      "set format y '10^{{%T}}'\n"
      "set yrange [{}:{}]\n",
      std::pow(10, std::floor(std::log10(lowest))),
      std::pow(10, std::ceil(std::log10(highest) + 1e-9)));
}

}  // namespace

std::string draw_figure(const FigureRequest& request, FigureShape shape) {
  const Drawable drawable(request);
  double first = INFINITY, last = -INFINITY, lowest = INFINITY, highest = 0;
  std::string script;
  for (size_t i = 0; i < request.lines.size(); ++i) {
    script += data_block(i, request.lines[i], drawable);
    for (const BandPoint& point : request.lines[i].points) {
      if (!drawable(point)) continue;
      first = std::min(first, point.x);
      last = std::max(last, point.x);
      lowest = std::min(lowest, drawable(point.low) ? point.low : point.median);
      highest = std::max({highest, point.median, drawable(point.high) ? point.high : 0});
    }
  }
  if (first > last) return "";
  if (first == last) {  // one point: gnuplot wants a range
    first = request.logarithmic_x ? first / 2 : first - 1;
    last = request.logarithmic_x ? last * 2 : last + 1;
  }
  script += fmt::format(
      "set terminal svg size {},{} enhanced font 'sans-serif,{}' background '{}'\n"
      "set encoding utf8\n"
      "set border 3 lc rgb '#555555'\n"
      "set tics nomirror scale 0.6\n"
      "set grid ytics lc rgb '#dddddd' lw 0.6\n"
      "set xrange [{}:{}]\n"
      "set xlabel {} noenhanced\n"
      "set ylabel {} noenhanced\n"
      "set key outside top center horizontal noenhanced samplen 2.5\n",
      shape == FigureShape::wide ? 516 : 320, shape == FigureShape::wide ? 360 : 330,
      drawing_text_size, light_paper, first, last, gnuplot_quote(request.x_label),
      gnuplot_quote(request.y_label));
  script += vertical_axis(request, lowest, highest) + horizontal_marks(request, first, last) +
            plot_command(request);
  const std::string name = request.name + (shape == FigureShape::narrow ? "_narrow" : "");
  return svg_element(run_gnuplot(script), {name, request.title, description(request)});
}

LineStyle line_style(int style) {
  const auto number = static_cast<size_t>(style);
  LineStyle result = styles[number % styles.size()];
  // A colour that comes again has another dash and marker.
  const LineStyle& other = styles[(number + 3 * (number / styles.size())) % styles.size()];
  result.dash = other.dash;
  result.marker = other.marker;
  result.open_marker = other.open_marker;
  return result;
}

std::string style_colour(int style) { return line_style(style).colour; }

}  // namespace posattn
