#include <algorithm>
#include <string>

#include "posattn/base/error.h"
#include "posattn/evaluation/axes/evaluation_axis.h"

namespace posattn {

extern const EvaluationAxis value_range_axis, length_axis, loops_axis, mixed_scales_axis;

const std::vector<const EvaluationAxis*>& evaluation_axes() {
  static const std::vector<const EvaluationAxis*> all = {
      &value_range_axis,
      &length_axis,
      &loops_axis,
      &mixed_scales_axis,
  };
  return all;
}

const EvaluationAxis& find_evaluation_axis(std::string_view name) {
  const auto at = std::ranges::find(evaluation_axes(), name, &EvaluationAxis::name);
  if (at != evaluation_axes().end()) return **at;
  std::vector<std::string> known;
  for (const EvaluationAxis* axis : evaluation_axes()) known.emplace_back(axis->name);
  throw unknown_name(ExitCode::usage, "axis of tests", name, known);
}

int length_of(const Model& model) {
  return model.origin.length > 0 ? model.origin.length : model.spec.real_nodes;
}

}  // namespace posattn
