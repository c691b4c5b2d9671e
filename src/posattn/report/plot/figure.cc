#include "posattn/report/plot/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "posattn/report/markup.h"
#include "posattn/report/plot/gnuplot.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

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
  if (request.greatest) {
    const LinearAxis axis = linear_axis(highest, *request.greatest);
    return fmt::format("set yrange [0:{}]\nset ytics {}\n", axis.end, axis.step);
  }
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
      "set grid ytics lt 1 dt solid lc rgb '#dddddd' lw 0.6\n"
      "set xrange [{}:{}]\n"
      "set xlabel {} noenhanced offset 0,0.6\n"
      "set ylabel {} noenhanced\n"
      "set key bmargin center horizontal Left reverse noenhanced samplen 2.5 height 1\n",
      shape == FigureShape::wide ? 516 : 320, shape == FigureShape::wide ? 360 : 330,
      drawing_text_size, light_paper, first, last, gnuplot_quote(request.x_label),
      gnuplot_quote(request.y_label));
  script += vertical_axis(request, lowest, highest) + horizontal_marks(request, first, last) +
            plot_command(request);
  const std::string name = request.name + (shape == FigureShape::narrow ? "_narrow" : "");
  return svg_element(run_gnuplot(script), {name, request.title, description(request)});
}

LinearAxis linear_axis(double highest, double greatest) {
  LinearAxis axis{greatest, greatest / 4};
  for (const auto& [share, steps] : {std::pair{0.75, 3}, {0.5, 5}, {0.3, 3}, {0.2, 4}, {0.1, 5}}) {
    if (highest > 0 && highest <= share * greatest) {
      axis = {share * greatest, share * greatest / steps};
    }
  }
  return axis;
}

}  // namespace posattn
