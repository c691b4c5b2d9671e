// Figures drawn by gnuplot, as SVG text: lines, mostly on a logarithmic axis, with a band around
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace posattn {

// Over several runs: the median and the smallest and largest value at x. Values that a logarithmic
// axis cannot show (not finite, zero, negative) leave a gap.
struct BandPoint {
  double x = 0;
  double median = 0, low = 0, high = 0;
  bool alone = false;  // not joined to its neighbours
};

struct FigureLine {
  std::string label;
  int style = 0;           // line_style.h
  bool secondary = false;  // thin and dotted, without a band: the validation loss next to training
  std::vector<BandPoint> points;
};

struct FigureRequest {
  std::string name;   // letters and digits; tells the ids of two figures on one page apart
  std::string title;  // for those who do not see it, and under the pointer
  std::string x_label, y_label;
  bool markers = false;
  std::vector<FigureLine> lines;
  // The most that y can be: y goes from 0 to it, or as far as the values do. Without it y is
  // logarithmic.
  std::optional<double> greatest = {};
  bool logarithmic_x = false;  // every x must then be above 0
};

// A page shows one of the two: the narrow one, for a phone, where the wide one would have to
// shrink. The text is as large in both.
enum class FigureShape { wide, narrow };

// The figure as one <svg> element, or "" when no point can be drawn.
std::string draw_figure(const FigureRequest& request, FigureShape shape = FigureShape::wide);

// A linear axis from 0 whose end lies just above the values, and the step between its marks.
struct LinearAxis {
  double end = 0, step = 0;
};
LinearAxis linear_axis(double highest, double greatest);

}  // namespace posattn
