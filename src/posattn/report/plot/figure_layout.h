// Where the parts of an experiment's figure lie, in pixels of the canvas from its top left corner.
#pragma once

#include <cstddef>

#include "posattn/experiments/experiment.h"
#include "posattn/report/plot/figure.h"

namespace posattn {

struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

struct PlacedText {
  std::string text;
  double x = 0, y = 0;  // of its middle line: left end, or middle where centred
  bool centred = false;
  double size = 0;
  std::string colour = "#222222";
};

double figure_width(FigureShape shape);  // pixels

struct FigureLayout {
  double width = 0, height = 0;
  double text_size = 0;  // of everything without a size of its own
  size_t columns = 1;
  std::vector<Box> panels;         // the plots inside their axes
  std::vector<PlacedText> texts;   // title, reduction, note
  std::vector<PlacedText> legend;  // one per label

  // Places as shares of the canvas, y from below.
  double x(double pixels) const { return pixels / width; }
  double y(double pixels) const { return 1 - pixels / height; }
  bool lowest_of_column(size_t panel) const { return panel + columns >= panels.size(); }
};

// `labels`: of the legend.
FigureLayout lay_out(const Experiment& experiment, const std::string& note,
                     const std::vector<std::string>& labels, FigureShape shape = FigureShape::wide);

// Logarithmic where the values are spaced so; labels at as many values as fit into `width`.
struct HorizontalAxis {
  bool logarithmic = false;
  double first = 0, last = 0;
  std::vector<std::pair<std::string, double>> tics;
};
HorizontalAxis horizontal_axis_of(const ExperimentAxis& axis, double width);

}  // namespace posattn
