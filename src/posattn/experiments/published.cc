#include "posattn/experiments/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/experiments/curves.h"

namespace posattn {
namespace {

std::vector<PublishedPoint> read_embedded() {
  constexpr std::string_view name = "published.csv";
  for (const EmbeddedFile& file : embedded_experiments()) {
    if (file.name == name) return published_from_csv(file.text, std::string(name));
  }
  throw std::logic_error("published.csv is not part of the program");
}

}  // namespace

std::vector<PublishedPoint> published_from_csv(std::string_view csv, const std::string& name) {
  std::vector<PublishedPoint> points;
  for (PointRow& row : read_point_rows(csv, name, "correction")) {
    // The five are in order, or all NaN: the largest speaks for all.
    if (!std::isfinite(row.point.maximum)) {
      throw Error(ExitCode::data, fmt::format("{}:{}: max '{}'", name, row.line, row.point.maximum),
                  "a finite number");
    }
    points.push_back({std::move(row.point), std::move(row.text)});
  }
  return points;
}

const std::vector<PublishedPoint>& published_points() {
  static const std::vector<PublishedPoint> points = read_embedded();
  return points;
}

std::vector<PublishedPoint> published_points(const std::string& experiment) {
  std::vector<PublishedPoint> points;
  std::copy_if(published_points().begin(), published_points().end(), std::back_inserter(points),
               [&](const PublishedPoint& point) { return point.point.experiment == experiment; });
  return points;
}

// Published with the experiment on mixed-type inputs: GPT-2 large, fine-tuned from its weights.
static std::vector<PublishedPoint> published_gpt2(const Experiment& experiment) {
  constexpr std::string_view published_size = "gpt2-large";
  if (std::ranges::count(experiment.lines, published_size, &ExperimentLine::name) == 0) return {};
  std::vector<PublishedPoint> points = published_points("mixed-type");
  std::erase_if(points, [](const PublishedPoint& point) { return point.point.line != "gpt2"; });
  for (PublishedPoint& point : points) {
    point.point.experiment = experiment.name;
    point.point.task += "-gpt2";
    point.point.line = published_size;
  }
  return points;
}

std::vector<PublishedPoint> published_points(const Experiment& experiment) {
  if (!experiment.is_embedded) return {};
  if (experiment.metric->name == "answer_mse") return published_gpt2(experiment);
  if (experiment.metric->name != "mse") return {};
  std::vector<PublishedPoint> points = published_points(experiment.name);
  if (experiment.view_of.empty() || points.empty()) return points;
  // A view of the same runs with other tests: trained and validated they were once.
  for (PublishedPoint& point : published_points(experiment.view_of)) {
    if (point.point.split == Split::test) continue;
    point.point.experiment = experiment.name;
    points.push_back(std::move(point));
  }
  return points;
}

}  // namespace posattn
