#include "posattn/programs/checking/compiled_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/programs/lowering/compile.h"

namespace posattn {
namespace {

// The sharpness that `compile` notes in the file: "dense sharpness 1024".
double noted_sharpness(const Model& model) {
  constexpr std::string_view before = "dense sharpness ";
  const auto note = model.origin.notes.find("compiled");
  if (note == model.origin.notes.end() || !note->second.starts_with(before)) {
    return CompileOptions{}.sharpness;
  }
  return parse_number(note->second.substr(before.size()), "metadata compiled");
}

// Nothing where the network is too small for the program.
std::optional<Model> compiled_again(const Model& model, const RoutedProgram& routed) {
  const ModelSpec& spec = model.spec;
  try {
    const NetworkPlan smallest = plan_network(routed.program);
    if (spec.width < smallest.width || spec.heads < smallest.heads ||
        spec.mlp_width < smallest.hidden || spec.depth < static_cast<int>(smallest.layers.size())) {
      return std::nullopt;
    }
    CompileOptions options;
    options.dense = !spec.routed();
    options.sharpness = noted_sharpness(model);
    const PlanSizes sizes = {spec.width, spec.heads, spec.mlp_width, spec.depth};
    return compile(plan_network(routed.program, sizes), options);
  } catch (const Error& error) {  // the file's fault
    throw Error(ExitCode::data, error.problem(), error.expected(), error.hint());
  }
}

}  // namespace

std::string difference_from_compiled(const Model& model, const RoutedProgram& routed) {
  const std::optional<Model> again = compiled_again(model, routed);
  if (!again) return "a network that is too small for it";
  const Model& compiled = *again;
  if (model.origin.range != compiled.origin.range) {
    throw Error(ExitCode::data,
                fmt::format("a compiled model with the training range {}", model.origin.range),
                fmt::format("{}, as `posattn compile` writes it", compiled.origin.range),
                "compile the program again");
  }
  if (model.spec != compiled.spec) return "other settings of the network";
  std::string first;
  int64_t numbers = 0, tensors = 0;
  for (const TensorInfo& info : compiled.parameters.layout().tensors()) {
    const auto ours = model.parameters[info.name], theirs = compiled.parameters[info.name];
    int64_t differ = 0;
    for (size_t k = 0; k < theirs.size(); ++k) differ += !(ours[k] == theirs[k]);
    if (differ == 0) continue;
    numbers += differ;
    if (++tensors == 1) first = info.name;
  }
  if (tensors == 0) return "";
  return fmt::format("{} number{} of {}{}", numbers, numbers == 1 ? "" : "s", first,
                     tensors == 1 ? "" : fmt::format(" and {} more tensors", tensors - 1));
}

}  // namespace posattn
