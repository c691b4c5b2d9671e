#include "posattn/report/experiment/figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "posattn/report/experiment/panels.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/figure_layout.h"
#include "posattn/report/plot/gnuplot.h"
#include "posattn/report/plot/line_style.h"

namespace posattn {
namespace {

constexpr double png_width = 1600;
constexpr double vertical_label_place = 9;  // from the figure's left edge

// x, median, low, high; a blank line, where two neighbours are not joined, breaks the curve.
std::string data_block(const std::string& name, const std::vector<BandPoint>& points,
                       const Metric& metric, const AxisRange& range) {
  std::string text = fmt::format("${} << END\n", name);
  for (size_t i = 0; i < points.size(); ++i) {
    const BandPoint& point = points[i];
    if (!joined(points, i, metric)) text += "\n";
    if (!drawable(point.median, metric)) continue;
    // A diverged run's value may be infinite, a perfect one's zero: the band reaches the edge.
    const double low = std::isnan(point.low) ? point.median : std::max(point.low, range.low / 10);
    const double high =
        std::isnan(point.high) ? point.median : std::min(point.high, 10 * range.high);
    text += fmt::format("{} {} {} {}\n", point.x, point.median, low, high);
  }
  return text + "END\n";
}

bool any_drawable(const std::vector<BandPoint>& points, const Metric& metric) {
  return std::ranges::any_of(
      points, [&metric](const BandPoint& point) { return drawable(point.median, metric); });
}

// A point that has no neighbour has no band either: its spread is drawn as whiskers.
std::vector<BandPoint> isolated(const std::vector<BandPoint>& points, const Metric& metric) {
  std::vector<BandPoint> alone;
  for (size_t i = 0; i < points.size(); ++i) {
    const bool has_band = joined(points, i, metric) || joined(points, i + 1, metric);
    if (drawable(points[i].median, metric) && !has_band) alone.push_back(points[i]);
  }
  return alone;
}

// Triangles where the spread of a point goes on beyond the edge of the panel.
struct ClippedMarks {
  std::string data;
  std::vector<std::string> plots;  // in gnuplot's terms

  void add(const std::string& name, const std::vector<BandPoint>& points, const Metric& metric,
           const AxisRange& range, const std::string& colour) {
    for (const bool above : {false, true}) {
      std::string places;
      for (const BandPoint& point : points) {
        if (!(above ? is_clipped_above(point, metric, range)
                    : is_clipped_below(point, metric, range))) {
          continue;
        }
        places += fmt::format("{} {}\n", point.x, above ? range.high : range.low);
      }
      if (places.empty()) continue;
      const std::string block = fmt::format("${}{}", name, above ? "above" : "below");
      data += fmt::format("{} << END\n{}END\n", block, places);
      plots.push_back(fmt::format("{} using 1:2 with points pt {} ps 0.8 lc rgb '{}' notitle",
                                  block, above ? 9 : 11, colour));
    }
  }
};

// The curves of a panel, from back to front: bands, published, ours.
std::string plot_panel(const Panel& panel, const std::vector<int>& styles, const Metric& metric,
                       const AxisRange& range) {
  std::string data;
  std::vector<std::string> bands, published, ours;
  ClippedMarks clipped;
  const double opacity = panel.lines.size() > 4 ? 0.12 : 0.2;
  for (size_t i = 0; i < panel.lines.size(); ++i) {
    const PanelLine& line = panel.lines[i];
    const LineStyle style = line_style(styles[i]);
    if (any_drawable(line.ours, metric)) {
      data += data_block(fmt::format("ours{}", i), line.ours, metric, range);
      bands.push_back(
          fmt::format("$ours{} using 1:3:4 with filledcurves fs transparent solid {} "
                      "noborder lc rgb '{}' notitle",
                      i, opacity, style.colour));
      ours.push_back(
          fmt::format("$ours{} using 1:2 with linespoints dt {} lw 1.8 pt {} ps 0.55 "
                      "lc rgb '{}' notitle",
                      i, style.dash, style.marker, style.colour));
      if (const auto alone = isolated(line.ours, metric); !alone.empty()) {
        data += data_block(fmt::format("alone{}", i), alone, metric, range);
        bands.push_back(
            fmt::format("$alone{} using 1:2:3:4 with yerrorbars lw 1.8 pt 0 lc rgb '{}' "
                        "notitle",
                        i, mixed_colour(style.colour, light_paper, whisker_share)));
      }
      clipped.add(fmt::format("ours{}", i), line.ours, metric, range, style.colour);
    }
    if (any_drawable(line.published, metric)) {
      data += data_block(fmt::format("published{}", i), line.published, metric, range);
      const std::string colour = mixed_colour(style.colour, light_paper, published_share);
      published.push_back(
          fmt::format("$published{} using 1:2:3:4 with yerrorlines lw 0.8 pt {} ps "
                      "0.55 lc rgb '{}' notitle",
                      i, style.open_marker, colour));
      clipped.add(fmt::format("published{}", i), line.published, metric, range, colour);
    }
  }
  bands.insert(bands.end(), published.begin(), published.end());
  bands.insert(bands.end(), clipped.plots.begin(), clipped.plots.end());
  bands.insert(bands.end(), ours.begin(), ours.end());
  return data + clipped.data + fmt::format("plot {}\n", fmt::join(bands, ", \\\n  "));
}

std::string vertical_axis(const AxisRange& range, const Metric& metric) {
  if (!metric.logarithmic) {
    return fmt::format(
        "unset logscale y\nset format y '%g'\nset ytics {}\nunset mytics\n"
        "set yrange [{}:{}]\n",
        linear_axis(range.high, metric.greatest).step, -0.04 * range.high, 1.04 * range.high);
  }
  const double decades = std::round(std::log10(range.high / range.low));
  const double step = std::ceil(decades / 5);  // at most six labels
  return fmt::format(
      "set logscale y 10\nset format y '10^{{%T}}'\nset ytics {:e}\n{}\n"
      "set yrange [{:e}:{:e}]\n",
      std::pow(10, step), step == 1 ? "set mytics 10" : "unset mytics", range.low, range.high);
}

std::string horizontal_axis(const ExperimentAxis& axis, double width) {
  const HorizontalAxis shown = horizontal_axis_of(axis, width);
  std::vector<std::string> tics;
  for (const auto& [label, x] : shown.tics) {
    tics.push_back(fmt::format("{} {}", gnuplot_quote(label), x));
  }
  return fmt::format("{}set xtics offset 0,0.3 ({})\nset xrange [{}:{}]\n",
                     shown.logarithmic ? "set logscale x 2\n" : "", fmt::join(tics, ", "),
                     shown.first, shown.last);
}

std::string panel_script(const Experiment& experiment, const FigureLayout& layout, size_t index,
                         const Panel& panel) {
  const Box& box = layout.panels[index];
  const double middle = (box.left + box.right) / 2;
  const auto place = [&](int label, const std::string& text, double x, double y) {
    return fmt::format("set label {} {} at screen {:.5f},{:.5f} center noenhanced\n", label,
                       gnuplot_quote(text), layout.x(x), layout.y(y));
  };
  const AxisRange range = value_range(panel, *experiment.metric).value();
  // Placed by hand: gnuplot's own place depends on how wide it thinks the numbers are.
  const std::string vertical_label = fmt::format(
      "set label 4 {} at screen {:.5f},{:.5f} center rotate noenhanced\n",
      gnuplot_quote(index % layout.columns != 0 ? "" : std::string(experiment.metric->words)),
      layout.x(vertical_label_place), layout.y((box.top + box.bottom) / 2));
  return fmt::format(
             "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\n"
             "set tmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n",
             layout.x(box.left), layout.x(box.right), layout.y(box.top), layout.y(box.bottom)) +
         place(2, panel.task, middle, box.top - 13) +
         place(3, layout.lowest_of_column(index) ? experiment.axis.label : "", middle,
               box.bottom + 33) +
         vertical_label + vertical_axis(range, *experiment.metric) +
         plot_panel(panel, line_styles(experiment), *experiment.metric, range);
}

// In gnuplot's terms; no line where points are not joined.
struct LegendEntry {
  std::string label, line, marker;
};

// An entry for each line that has something to show in a panel, and one for the published results
// if there are any.
std::vector<LegendEntry> legend_of(const Experiment& experiment, const std::vector<Panel>& panels) {
  const auto any = [&](size_t line, auto member) {
    return std::ranges::any_of(panels, [&](const Panel& panel) {
      return any_drawable(panel.lines[line].*member, *experiment.metric);
    });
  };
  const std::vector<int> styles = line_styles(experiment);
  std::vector<LegendEntry> entries;
  bool with_published = false;
  for (size_t i = 0; i < experiment.lines.size(); ++i) {
    const LineStyle style = line_style(styles[i]);
    const bool published = any(i, &PanelLine::published);
    with_published |= published;
    if (!published && !any(i, &PanelLine::ours)) continue;
    const bool lines = std::ranges::any_of(panels, [&](const Panel& panel) {
      return any_joined(panel.lines[i].ours, *experiment.metric);
    });
    entries.push_back(
        {experiment.lines[i].name,
         lines ? fmt::format("dt {} lw 1.8 lc rgb '{}'", style.dash, style.colour) : "",
         fmt::format("pt {} ps 0.55 lc rgb '{}'", style.marker, style.colour)});
  }
  if (with_published) {
    entries.push_back({"published", "lw 0.8 lc rgb '#666666'", "pt 6 ps 0.55 lc rgb '#666666'"});
  }
  return entries;
}

// Texts and legend, over an invisible plot of the whole canvas.
std::string text_script(const FigureLayout& layout, const std::vector<LegendEntry>& legend) {
  std::string script =
      "unset label\nunset border\nunset xtics\n"
      "unset ytics\nunset logscale\nunset grid\n"
      "set lmargin at screen 0\nset rmargin at screen 1\nset tmargin at screen 1\n"
      "set bmargin at screen 0\n";
  for (const PlacedText& text : layout.texts) {
    script += fmt::format(
        "set label {} at screen {:.5f},{:.5f} {} noenhanced font ',{}' tc rgb "
        "'{}'\n",
        gnuplot_quote(text.text), layout.x(text.x), layout.y(text.y),
        text.centred ? "center" : "left", text.size, text.colour);
  }
  for (size_t i = 0; i < legend.size(); ++i) {
    const PlacedText& place = layout.legend[i];
    const double y = layout.y(place.y);
    if (!legend[i].line.empty()) {
      script += fmt::format(
          "set arrow from screen {0:.5f},{2:.5f} to screen {1:.5f},{2:.5f} nohead {3}\n",
          layout.x(place.x), layout.x(place.x + 40), y, legend[i].line);
    }
    script += fmt::format(
        "set label '' at screen {0:.5f},{1:.5f} point {2}\n"
        "set label {3} at screen {4:.5f},{1:.5f} left noenhanced\n",
        layout.x(place.x + 20), y, legend[i].marker, gnuplot_quote(place.text),
        layout.x(place.x + 47));
  }
  return script + "plot [0:1] [0:1] NaN notitle\n";
}

std::string title_of(const Experiment& experiment) {
  return experiment.reduction.empty()
             ? experiment.title
             : fmt::format("{} ({})", experiment.title, experiment.reduction);
}

std::string description_of(const Experiment& experiment, const std::vector<std::string>& labels,
                           const std::string& note) {
  return fmt::format("{} against {}. Panels: {}. Lines: {}. {}", experiment.metric->words,
                     experiment.axis.label, fmt::join(experiment.tasks, ", "),
                     fmt::join(labels, ", "), note);
}

}  // namespace

std::string draw_experiment(const Experiment& whole, const std::vector<Curve>& curves,
                            const std::vector<PublishedPoint>& published, FigureFormat format,
                            const std::string& name) {
  // A panel for each task that has results; the others are named below.
  Experiment experiment = whole;
  std::vector<std::string> without;
  for (const Panel& panel : panels_of(whole, curves, published)) {
    const auto has_finished_run = [&](const PanelLine& line) {
      return any_drawable(line.ours, *whole.metric);
    };
    if (std::ranges::none_of(panel.lines, has_finished_run)) without.push_back(panel.task);
  }
  std::erase_if(experiment.tasks, [&](const std::string& task) {
    return std::ranges::find(without, task) != without.end();
  });
  if (experiment.tasks.empty()) return "";
  const std::vector<Panel> panels = panels_of(experiment, curves, published);
  std::string note = figure_note(experiment, curves, published);
  if (std::ranges::any_of(panels, [&](const Panel& panel) {
        return has_clipped_point(panel, *experiment.metric);
      })) {
    note += " A triangle at the edge: the spread goes on beyond it.";
  }
  if (!without.empty()) note += fmt::format(" No finished run of {}.", fmt::join(without, ", "));

  const std::vector<LegendEntry> legend = legend_of(experiment, panels);
  std::vector<std::string> labels;
  labels.reserve(legend.size());
  for (const LegendEntry& entry : legend) labels.push_back(entry.label);
  const bool narrow = format == FigureFormat::narrow_svg;
  const FigureLayout layout =
      lay_out(experiment, note, labels, narrow ? FigureShape::narrow : FigureShape::wide);
  std::string script;
  if (format != FigureFormat::png) {
    script = fmt::format(
        "set terminal svg size {:.0f},{:.0f} enhanced font 'sans-serif,{}' background '{}'\n",
        layout.width, layout.height, layout.text_size, light_paper);
  } else {
    const double scale = png_width / layout.width;
    script = fmt::format(
        "set terminal pngcairo size {:.0f},{:.0f} enhanced font 'sans-serif,{}' "
        "fontscale {:.5f} linewidth {:.5f} pointscale {:.5f} background "
        "'#ffffff'\n",
        png_width, std::ceil(layout.height * scale), layout.text_size, 0.75 * scale, scale,
        scale);  // pngcairo counts text in points, 72 to the inch
  }
  script +=
      "set encoding utf8\nset multiplot\nset border 3 lc rgb '#555555'\nset tics nomirror\n"
      "set grid ytics lt 1 dt solid lc rgb '#dddddd' lw 0.6\nset errorbars 0.5\nunset key\n"
      "set tics scale 0.6\n";
  script +=
      horizontal_axis(experiment.axis, layout.panels.front().right - layout.panels.front().left);
  for (size_t i = 0; i < panels.size(); ++i) {
    script += panel_script(experiment, layout, i, panels[i]);
  }
  script += text_script(layout, legend) + "unset multiplot\n";
  const std::string drawing = run_gnuplot(script);
  if (format == FigureFormat::png) return drawing;
  return svg_element(drawing, {narrow ? name + "_narrow" : name, title_of(experiment),
                               description_of(experiment, labels, note)});
}

}  // namespace posattn
