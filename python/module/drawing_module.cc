// Pictures of attention and of lines over several runs.
#include "arrays.h"
#include "posattn/base/error.h"
#include "posattn/draw.h"
#include "posattn/evaluate.h"

namespace posattn::python {
namespace {

// A label, x, and values [runs, x]; the band goes from the smallest to the largest.
FigureLine line_of(const std::string& label, const py::object& x, const py::object& values,
                   int style) {
  const Doubles places = doubles_of(x, "x of '" + label + "'");
  Doubles runs = doubles_of(values, "values of '" + label + "'");
  if (runs.ndim() == 1) runs = Doubles(runs.attr("reshape")(1, -1));
  if (places.ndim() != 1 || runs.ndim() != 2 || runs.shape(1) != places.shape(0) ||
      runs.shape(0) == 0) {
    throw Error(ExitCode::data,
                "'" + label + "' with x " + shape_text(places) + " and values " + shape_text(runs),
                "[x] and [runs, x]");
  }
  FigureLine line{.label = label, .style = style, .points = {}};
  for (int64_t i = 0; i < places.shape(0); ++i) {
    std::vector<double> here;
    for (int64_t run = 0; run < runs.shape(0); ++run) here.push_back(runs.at(run, i));
    const Spread spread = spread_of(here);
    line.points.push_back({places.at(i), spread.median, spread.minimum, spread.maximum});
  }
  return line;
}

using GivenLines = std::vector<std::tuple<std::string, py::object, py::object>>;

std::vector<FigureLine> lines_of(const GivenLines& given) {
  std::vector<std::string> labels;
  for (const auto& [label, x, values] : given) labels.push_back(label);
  const std::vector<int> styles = styles_of_labels(labels);
  std::vector<FigureLine> lines;
  for (const auto& [label, x, values] : given) {
    lines.push_back(line_of(label, x, values, styles[lines.size()]));
  }
  return lines;
}

}  // namespace

void add_drawings(py::module_& module) {
  module.def(
      "attention_svg",
      [](const py::object& weights, int scratch_nodes, const std::string& title) {
        const Floats given = floats_of(weights, "attention");
        if (given.ndim() != 4 || given.shape(2) != given.shape(3) || given.size() == 0 ||
            scratch_nodes < 0 || scratch_nodes >= given.shape(2)) {
          throw Error(ExitCode::data, "attention of shape " + shape_text(given),
                      "[depth, heads, nodes, nodes]");
        }
        AttentionMaps maps;
        maps.depth = static_cast<int>(given.shape(0));
        maps.heads = static_cast<int>(given.shape(1));
        maps.nodes = static_cast<int>(given.shape(2));
        maps.scratch_nodes = scratch_nodes;
        const std::span<const float> values = numbers(given);
        maps.weights.assign(values.begin(), values.end());
        return attention_svg(maps, title, attention_scale_end(maps));
      },
      py::arg("weights"), py::arg("scratch_nodes"), py::arg("title"));
  // What stands along the axis of a metric, and the axis' end where it is not logarithmic.
  module.def(
      "metric_axis",
      [](const std::string& name) {
        const Metric& metric = find_metric(name);
        const std::optional<double> end =
            metric.logarithmic ? std::nullopt : std::optional(metric.greatest);
        return std::pair{std::string(metric.words), end};
      },
      py::arg("metric"));
  module.def(
      "figure_lines",
      [](const GivenLines& given) {
        std::vector<std::tuple<std::string, std::string, py::array>> lines;
        for (const FigureLine& line : lines_of(given)) {
          std::vector<double> points;
          for (const BandPoint& point : line.points) {
            points.insert(points.end(), {point.x, point.median, point.low, point.high});
          }
          const auto count = static_cast<int64_t>(line.points.size());
          lines.emplace_back(line.label, style_colour(line.style),
                             array_of({count, 4}, std::move(points)));
        }
        return lines;
      },
      py::arg("lines"));
  module.def(
      "figure",
      [](const std::string& title, const std::string& x_label, const std::string& y_label,
         const GivenLines& lines, bool logarithmic_x, std::optional<double> greatest) {
        const FigureRequest request{.name = "figure",
                                    .title = title,
                                    .x_label = x_label,
                                    .y_label = y_label,
                                    .markers = true,
                                    .lines = lines_of(lines),
                                    .greatest = greatest,
                                    .logarithmic_x = logarithmic_x};
        std::string picture = draw_figure(request);
        if (picture.empty()) {
          throw Error(ExitCode::data, "a figure without a point that can be drawn",
                      "finite values, above 0 on a logarithmic axis");
        }
        return picture;
      },
      py::arg("title"), py::arg("x_label"), py::arg("y_label"), py::arg("lines"),
      py::arg("logarithmic_x"), py::arg("greatest"));
}

}  // namespace posattn::python
