#include "posattn/experiments/baseline_curve.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "posattn/evaluation/baselines.h"
#include "posattn/experiments/experiment_baselines.h"
#include "posattn/training/run_evaluation.h"
#include "posattn/training/run_parts.h"

namespace posattn {
namespace {

double value_at(const Experiment& experiment, const Baseline& baseline, const RunConfig& config,
                double test_x) {
  const EvaluationAxis& axis = experiment.axis.test_axis;
  const RunState untrained(std::make_shared<const ParameterLayout>(model_spec(config)));
  const Model model = trained_model(config, untrained);
  EvaluationRequest request = test_request(config, model);
  request.axis = &axis;
  const std::vector<Measurement> rows =
      baseline_rows(baseline, *request.task, axis.samples(request, test_x), axis.name, test_x);
  return find_value(rows, {.axis = axis.name, .x = test_x, .metric = experiment.metric->name})
      .value();
}

}  // namespace

Curve baseline_curve(const Experiment& experiment, const std::string& task,
                     const std::string& baseline, const std::vector<uint64_t>& seeds) {
  const Baseline predictor = find_experiment_baseline(find_task(task), baseline);
  // An exact network is the same for every seed, and its hundreds of layers take their time.
  const bool is_compiled = baseline == compiled_baseline;
  const auto tested =
      std::span(seeds).first(is_compiled ? std::min<size_t>(1, seeds.size()) : seeds.size());
  const ExperimentAxis& axis = experiment.axis;
  Curve curve{.task = task, .line = baseline, .split = Split::test, .points = {}};
  for (const double x : axis.values) {
    RunConfig config = experiment.settings;
    config.task = task;
    if (is_compiled) config.test_samples = std::min<int64_t>(100, config.test_samples);
    if (!axis.is_tested()) set_field(config, axis.key, fmt::format("{}", x));
    CurvePoint point{.x = x, .runs = {}};
    for (const uint64_t seed : tested) {
      config.seed = static_cast<int64_t>(seed);
      point.runs.emplace_back(
          seed, value_at(experiment, predictor, config, axis.is_tested() ? x : axis.test_x));
    }
    curve.points.push_back(std::move(point));
  }
  return curve;
}

}  // namespace posattn
