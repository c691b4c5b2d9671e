#include "posattn/experiments/baseline_curve.h"

#include <fmt/format.h>

#include "posattn/evaluation/baselines.h"
#include "posattn/training/run_evaluation.h"
#include "posattn/training/run_parts.h"

namespace posattn {
namespace {

double value_at(const Experiment& experiment, const Baseline& baseline, const RunConfig& config,
                double test_x) {
  const EvaluationAxis& axis = experiment.axis.test_axis;
  const RunState untrained(std::make_shared<const ParameterLayout>(model_spec(config)));
  const Model model = trained_model(config, untrained);
  const EvaluationRequest request = test_request(config, model);
  const std::vector<Measurement> rows =
      baseline_rows(baseline, *request.task, axis.samples(request, test_x), axis.name, test_x);
  return find_value(rows, {.axis = axis.name, .x = test_x, .metric = experiment.metric->name})
      .value();
}

}  // namespace

Curve baseline_curve(const Experiment& experiment, const std::string& task,
                     const std::string& baseline, const std::vector<uint64_t>& seeds) {
  const Baseline predictor = find_baseline(find_task(task), baseline);
  const ExperimentAxis& axis = experiment.axis;
  Curve curve{.task = task, .line = baseline, .split = Split::test, .points = {}};
  for (const double x : axis.values) {
    RunConfig config = experiment.settings;
    config.task = task;
    if (!axis.is_tested()) set_field(config, axis.key, fmt::format("{}", x));
    CurvePoint point{.x = x, .runs = {}};
    for (const uint64_t seed : seeds) {
      config.seed = static_cast<int64_t>(seed);
      point.runs.emplace_back(
          seed, value_at(experiment, predictor, config, axis.is_tested() ? x : axis.test_x));
    }
    curve.points.push_back(std::move(point));
  }
  return curve;
}

}  // namespace posattn
