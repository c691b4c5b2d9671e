#include "posattn/bounds/gap_measures.h"

#include <cmath>
#include <map>

#include "posattn/bounds/bound_report.h"
#include "posattn/bounds/input_jacobian.h"
#include "posattn/bounds/path_norm.h"
#include "posattn/training/run_parts.h"

namespace posattn::bounds {
namespace {

double mean_jacobian(const Model& model, const CollapsedNetwork& network) {
  constexpr int64_t samples = 200;
  const Dataset data = fresh_samples_of(model, samples, 1);
  const std::vector<double> x(data.inputs.begin(), data.inputs.end());
  return input_jacobian(network, x, samples);
}

}  // namespace

const std::vector<GapMeasure>& gap_measures() {
  static const std::vector<GapMeasure> measures = {
      {"inverse_samples", "1 / samples"},
      {"training_loss", "training loss"},
      {"distance", "distance from the initial weights"},
      {"jacobian", "Jacobian on data"},
      {"path_norm", "path norm"},
      {"norm_bound", "bound by norms"},
      {"count_bound", "bound by count"},
  };
  return measures;
}

double distance_from_start(const Model& model, const RunConfig& run) {
  const Parameters<float> start = initial_state(run).parameters;
  double sum = 0;
  for (const TensorInfo& tensor : start.layout().tensors()) {
    if (!tensor.trained) continue;
    const auto first = start.slice(tensor), now = model.parameters.slice(tensor);
    for (size_t i = 0; i < first.size(); ++i) {
      sum += std::pow(static_cast<double>(now[i]) - first[i], 2);
    }
  }
  return std::sqrt(sum);
}

GapRun gap_run(const Model& model, const GapRequest& request) {
  const BoundReport report = bound_report(model, {.name = request.name,
                                                  .run = request.run,
                                                  .clip = request.clip,
                                                  .delta = request.delta,
                                                  .fresh_samples = request.fresh_samples,
                                                  .threads = request.threads});
  const CollapsedNetwork network = collapse(model.spec, to_double(model.parameters), request.name);
  return {.name = request.name,
          .architecture = preset_name(model.spec),
          .samples = request.run.samples,
          .measured = *report.measured,
          .values = {1.0 / static_cast<double>(request.run.samples), report.measured->training.mean,
                     distance_from_start(model, request.run), mean_jacobian(model, network),
                     log_path_norm(network), report.by_norms.log_gap, report.by_count.gap}};
}

RankCorrelation gap_correlation(const std::vector<GapRun>& runs, size_t measure,
                                Compared compared) {
  std::map<std::pair<std::string, int64_t>, int> strata;
  std::vector<RankedRun> ranked;
  for (const GapRun& run : runs) {
    const std::pair<std::string, int64_t> alike = {
        compared == Compared::all ? "" : run.architecture,
        compared == Compared::same_architecture_and_samples ? run.samples : 0};
    const int stratum = strata.try_emplace(alike, static_cast<int>(strata.size())).first->second;
    ranked.push_back({.x = run.values[measure], .y = run.measured.gap(), .stratum = stratum});
  }
  return rank_correlation(ranked);
}

}  // namespace posattn::bounds
