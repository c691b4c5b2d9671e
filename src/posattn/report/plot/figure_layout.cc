#include "posattn/report/plot/figure_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/report/markup.h"

namespace posattn {
namespace {

constexpr double text_size = drawing_text_size;
constexpr double title_size = 16;
constexpr double line_height = 19;
constexpr double margin = 10;

// Four panels look better as a square than as three and one.
size_t columns_for(size_t panels, FigureShape shape) {
  if (shape == FigureShape::narrow) return 1;
  return panels == 4 ? 2 : std::min<size_t>(panels, 3);
}

double plot_height(size_t columns, FigureShape shape) {
  if (shape == FigureShape::narrow) return 180;
  return columns == 3 ? 165 : columns == 2 ? 205 : 265;
}

// Adds centred lines below `y`, and returns where they end.
double place_lines(FigureLayout& layout, const std::string& text, double y, double size,
                   const std::string& colour) {
  for (const std::string& line : wrapped(text, size, layout.width - 2 * margin)) {
    const double height = line_height * size / text_size;
    layout.texts.push_back({line, layout.width / 2, y + height / 2, true, size, colour});
    y += height;
  }
  return y;
}

// In a box of its own (an empty cell) as one column, or centred below the panels in rows.
double place_legend(FigureLayout& layout, const std::vector<std::string>& labels, double y,
                    const Box* free_cell) {
  double widest = 0;
  for (const std::string& label : labels) widest = std::max(widest, text_width(label, text_size));
  const double entry = 47 + widest + 26;
  const auto count = static_cast<double>(labels.size());
  if (free_cell && entry <= free_cell->right - free_cell->left + 26 &&
      count * line_height <= free_cell->bottom - free_cell->top) {
    for (size_t i = 0; i < labels.size(); ++i) {
      layout.legend.push_back({labels[i], free_cell->left,
                               free_cell->top + (static_cast<double>(i) + 0.5) * line_height, false,
                               text_size});
    }
    return y;
  }
  const double fit = std::max(1.0, std::floor((layout.width - 2 * margin) / entry));
  const double rows = std::ceil(count / fit), columns = std::ceil(count / rows);
  for (size_t i = 0; i < labels.size(); ++i) {
    const double row = std::floor(static_cast<double>(i) / columns);
    const double column = static_cast<double>(i) - row * columns;
    const double left = (layout.width - columns * entry + 26) / 2;
    layout.legend.push_back(
        {labels[i], left + column * entry, y + (row + 0.5) * line_height, false, text_size});
  }
  return y + rows * line_height + 6;
}

bool spans_far(const std::vector<double>& values) {
  return values.front() > 0 && values.back() >= 50 * values.front();
}

// Each value is about the same multiple of the one before it (2, 4, 8), or they span far (640,
// 1600, 64000).
bool is_geometric(const std::vector<double>& values) {
  if (values.size() < 3 || values.front() <= 0) return false;
  double least = values[1] / values[0], most = least;
  for (size_t i = 2; i < values.size(); ++i) {
    least = std::min(least, values[i] / values[i - 1]);
    most = std::max(most, values[i] / values[i - 1]);
  }
  return least >= 1.5 && (most <= 1.25 * least || spans_far(values));
}

}  // namespace

double figure_width(FigureShape shape) { return shape == FigureShape::wide ? 720 : 320; }

FigureLayout lay_out(const Experiment& experiment, const std::string& note,
                     const std::vector<std::string>& labels, FigureShape shape) {
  constexpr double axis_labels = 49, axis_title = 17, gap = 9, heading = 24, below = 47;
  FigureLayout layout;
  layout.width = figure_width(shape);
  layout.text_size = text_size;
  double y = place_lines(layout, experiment.title, margin, title_size, "#222222");
  y = place_lines(layout, experiment.reduction, y, text_size, "#b03a00") + 6;

  const size_t panels = experiment.tasks.size();
  layout.columns = columns_for(panels, shape);
  const auto columns = static_cast<double>(layout.columns);
  const double width = (layout.width - axis_title - columns * (axis_labels + gap)) / columns;
  const double height = plot_height(layout.columns, shape);
  const auto cell = [&](size_t index) {
    const size_t row = index / layout.columns, column = index % layout.columns;
    const double left =
        axis_title + axis_labels + static_cast<double>(column) * (width + axis_labels + gap);
    const double top = y + heading + static_cast<double>(row) * (height + heading + below);
    return Box{left, top, left + width, top + height};
  };
  for (size_t i = 0; i < panels; ++i) layout.panels.push_back(cell(i));
  const bool has_free_cell = panels % layout.columns != 0;
  const Box free_cell = cell(panels);

  y = layout.panels.back().bottom + below;
  y = place_legend(layout, labels, y, has_free_cell ? &free_cell : nullptr);
  layout.height = std::ceil(place_lines(layout, note, y + 3, text_size, "#444444") + margin);
  return layout;
}

HorizontalAxis horizontal_axis_of(const ExperimentAxis& axis, double width) {
  HorizontalAxis shown;
  const double first = axis.values.front(), last = axis.values.back();
  const bool known = axis.is_tested() && !axis.test_axis.stated;
  shown.logarithmic =
      known ? axis.test_axis.logarithmic || spans_far(axis.values) : is_geometric(axis.values);
  if (shown.logarithmic) {
    const double space = std::pow(last / first, 0.05);
    shown.first = first / space;
    shown.last = last * space;
  } else {
    const double space = last > first ? 0.04 * (last - first) : 1;
    shown.first = first - space;
    shown.last = last + space;
  }
  std::vector<std::string> labels;
  double widest = 0;
  for (const double value : axis.values) {
    const bool thousands = last >= 10000 && std::fmod(value, 1000) == 0;
    labels.push_back(thousands ? fmt::format("{:g}k", value / 1000) : fmt::format("{:g}", value));
    widest = std::max(widest, text_width(labels.back(), text_size) + 14);
  }
  // From the last value back, so that the largest has its label.
  const auto room = static_cast<size_t>(std::max(2.0, width / widest));
  const size_t step = (labels.size() + room - 1) / room;
  for (size_t i = labels.size(); i > 0; i -= std::min(i, step)) {
    shown.tics.emplace_back(labels[i - 1], axis.values[i - 1]);
  }
  std::ranges::reverse(shown.tics);
  return shown;
}

}  // namespace posattn
