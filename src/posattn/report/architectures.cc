#include "posattn/report/architectures.h"

#include <algorithm>
#include <map>

namespace posattn {
namespace {

constexpr size_t most_points = 400;  // per curve; more cannot be seen

std::vector<ScaleSummary> summarise_tests(const std::vector<const RunReport*>& runs) {
  std::map<double, std::vector<const ScaleResult*>> by_scale;
  for (const RunReport* run : runs) {
    for (const ScaleResult& result : run->tests) by_scale[result.c].push_back(&result);
  }
  std::vector<ScaleSummary> summaries;
  for (const auto& [c, results] : by_scale) {
    const auto spread = [&results = results](double ScaleResult::*member) {
      std::vector<double> values;
      values.reserve(results.size());
      for (const ScaleResult* result : results) values.push_back(result->*member);
      return spread_of(values);
    };
    summaries.push_back({.c = c,
                         .mse = spread(&ScaleResult::mse),
                         .mse_over_c2 = spread(&ScaleResult::mse_over_c2),
                         .accuracy = spread(&ScaleResult::accuracy)});
  }
  return summaries;
}

using ByEpoch = std::map<int64_t, std::vector<double>>;

std::vector<BandPoint> thinned_bands(const ByEpoch& losses) {
  std::vector<BandPoint> points;
  const size_t step = losses.size() / most_points + 1;
  size_t index = 0;
  for (const auto& [epoch, values] : losses) {
    if (index++ % step != 0 && index != losses.size()) continue;
    const Spread spread = spread_of(values);
    points.push_back({static_cast<double>(epoch), spread.median, spread.minimum, spread.maximum});
  }
  return points;
}

}  // namespace

std::string group_name(const RunReport& run) {
  return run.execution.empty() ? run.architecture : run.architecture + " (" + run.execution + ")";
}

std::vector<ArchitectureSummary> group_by_architecture(const ReportInput& input) {
  std::vector<ArchitectureSummary> groups;
  for (const RunReport& run : input.runs) {
    const std::string name = group_name(run);
    auto group = std::ranges::find(groups, name, &ArchitectureSummary::name);
    if (group == groups.end()) {
      group = groups.insert(group, ArchitectureSummary{name, {}, 0, {}});
    }
    group->runs.push_back(&run);
    if (run.status != "done") ++group->unfinished;
  }
  for (ArchitectureSummary& group : groups) group.tests = summarise_tests(group.runs);
  return groups;
}

FigureRequest test_figure(const std::vector<ArchitectureSummary>& architectures) {
  FigureRequest request{.name = "tests",
                        .title = "Test error against the scale of the values",
                        .x_label = "scale c of the test values",
                        .y_label = "mean squared error",
                        .markers = true,
                        .lines = {}};
  for (const ArchitectureSummary& architecture : architectures) {
    FigureLine line{.label = architecture.name,
                    .style = static_cast<int>(request.lines.size()),
                    .secondary = false,
                    .points = {}};
    for (const ScaleSummary& test : architecture.tests) {
      line.points.push_back({test.c, test.mse.median, test.mse.minimum, test.mse.maximum});
    }
    request.lines.push_back(std::move(line));
  }
  return request;
}

FigureRequest loss_figure(const std::vector<ArchitectureSummary>& architectures) {
  FigureRequest request{.name = "losses",
                        .title = "Loss during training",
                        .x_label = "epoch",
                        .y_label = "mean squared error",
                        .markers = false,
                        .lines = {}};
  for (size_t i = 0; i < architectures.size(); ++i) {
    ByEpoch train, validation;
    for (const RunReport* run : architectures[i].runs) {
      for (const LossPoint& point : run->curve) {
        train[point.epoch].push_back(point.train);
        if (point.validation) validation[point.epoch].push_back(*point.validation);
      }
    }
    const std::string& name = architectures[i].name;
    const int style = static_cast<int>(i);
    request.lines.push_back({name + ", training", style, false, thinned_bands(train)});
    if (!validation.empty()) {
      request.lines.push_back({name + ", validation", style, true, thinned_bands(validation)});
    }
  }
  return request;
}

}  // namespace posattn
