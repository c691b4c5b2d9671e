#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "posattn/report/experiment/tables.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

// The paper's experiment as a whole, not what --quick or --epochs made of it.
const ExperimentResults* find_whole(const std::vector<ExperimentResults>& all,
                                    const std::string& name) {
  const auto found = std::ranges::find_if(all, [&](const ExperimentResults& results) {
    const Experiment& experiment = results.experiment;
    return experiment.is_embedded && experiment.name == name && experiment.reduction.empty();
  });
  return found == all.end() ? nullptr : &*found;
}

std::string measured_growth(const ExperimentResults* results) {
  double least = INFINITY, most = -INFINITY;
  size_t tasks = 0;
  if (results) {
    for (const std::string& task : results->experiment.tasks) {
      const double exponent = our_growth(*results, task, "positional").exponent;
      if (!std::isfinite(exponent)) continue;
      least = std::min(least, exponent);
      most = std::max(most, exponent);
      ++tasks;
    }
  }
  if (tasks == 0) return "";
  if (tasks == 1) return fmt::format(" Measured here: c<sup>{:.2f}</sup>, on one task.", least);
  return fmt::format(" Measured here: c<sup>{:.2f}</sup> to c<sup>{:.2f}</sup>, over {} tasks.",
                     least, most, tasks);
}

// The medians at c = 1 of both architectures on a task, and whether they differ: "" without both.
std::string measured_inside(const ExperimentResults& results, const std::string& task) {
  const auto median = [&](const char* line) {
    const Curve* curve = test_curve(results.curves, task, line);
    if (curve == nullptr) return double{NAN};
    const auto point = std::ranges::find(curve->points, std::optional<double>(1), &CurvePoint::x);
    return point == curve->points.end() ? NAN
                                        : summarise(results.experiment, *curve, *point).median;
  };
  const double positional = median("positional"), standard = median("standard");
  if (!std::isfinite(positional) || !std::isfinite(standard)) return "";
  std::string test;
  for (const PairedPoint& point : paired_points(results.curves, "positional", "standard")) {
    if (point.task != task || point.x != 1 || std::isnan(point.test.p_value)) continue;
    test = fmt::format(" (p = {:.2g}, paired by seed)", point.test.p_value);
  }
  return fmt::format("{}: standard {}, positional {}{}", task, three_digits(standard),
                     three_digits(positional), test);
}

// On the tasks where the standard model may be the better one there.
std::string measured_inside(const ExperimentResults* results) {
  if (!results) return "";
  std::vector<std::string> parts;
  for (const char* task : {"cumulative-min", "cumulative-max-subarray"}) {
    std::string part = measured_inside(*results, task);
    if (!part.empty()) parts.push_back(std::move(part));
  }
  if (parts.empty()) return "";
  return fmt::format(" Measured here at c = 1, medians: {}.", fmt::join(parts, "; "));
}

std::string note(std::string_view title, const std::string& text) {
  return fmt::format("<li><b>{}</b> {}</li>\n", title, text);
}

}  // namespace

std::string audit_notes(const std::vector<ExperimentResults>& all) {
  const ExperimentResults* value_range = find_whole(all, "value-range");
  return heading("What to know about the published results") + "<ul class=\"notes\">\n" +
         note("\u201cStable\u201d is relative.",
              "Outside the training range the positional Transformer loses far less than the "
              "standard one, but its loss is not constant: in the published results it grows about "
              "like c<sup>2.6</sup> to c<sup>3.3</sup> between c = 2 and c = 10. The loss of a "
              "model that scales with its input would grow like c\u00b2." +
                  measured_growth(value_range)) +
         note("Inside the training range, standard wins on cumulative-min.",
              "There the published standard Transformer has the lower loss; the advantage of "
              "positional attention begins outside." +
                  measured_inside(value_range)) +
         note("The released RoPE baseline does nothing.",
              "It turns the queries and the keys of a head by the same angle, whatever their "
              "position, so their products and the attention stay what they were: its results are "
              "those of the standard Transformer. The experiment <code>variants</code> turns by "
              "position, as RoPE is meant to.") +
         note("Published losses for variable lengths are 8 times too large.",
              "The test loss was summed over 8 batches instead of averaged. Here the published "
              "values are divided by 8.") +
         "</ul>\n";
}

}  // namespace posattn
