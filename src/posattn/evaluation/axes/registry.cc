#include <algorithm>
#include <string>

#include "posattn/base/error.h"
#include "posattn/evaluation/axes/test_axis.h"

namespace posattn {

extern const TestAxis value_range_axis, length_axis;

const std::vector<const TestAxis*>& test_axes() {
  static const std::vector<const TestAxis*> all = {
      &value_range_axis,
      &length_axis,
  };
  return all;
}

const TestAxis& find_test_axis(std::string_view name) {
  const auto at = std::ranges::find(test_axes(), name, &TestAxis::name);
  if (at != test_axes().end()) return **at;
  std::vector<std::string> known;
  for (const TestAxis* axis : test_axes()) known.emplace_back(axis->name);
  throw unknown_name(ExitCode::usage, "axis of tests", name, known);
}

int length_of(const Model& model) {
  return model.origin.length > 0 ? model.origin.length : model.spec.real_nodes;
}

}  // namespace posattn
