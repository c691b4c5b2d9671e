#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/embedded_file.h"
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

}  // namespace

std::string audit_notes(const std::vector<ExperimentResults>& all) {
  const ExperimentResults* value_range = find_whole(all, "value-range");
  return fmt::format(fmt::runtime(page_asset("audit_notes.html")),
                     fmt::arg("measured_growth", measured_growth(value_range)),
                     fmt::arg("measured_inside", measured_inside(value_range)));
}

}  // namespace posattn
