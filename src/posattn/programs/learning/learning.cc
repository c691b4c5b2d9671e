#include "posattn/programs/learning/learning.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/memory.h"
#include "posattn/base/text.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr const char* algorithm_note = "learning";
constexpr const char* settings_note = "set";
constexpr int most_nodes = 4096;

}  // namespace

const LearningAlgorithm* find_learning_algorithm(std::string_view name) {
  for (const LearningAlgorithm& row : learning_algorithms()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool LearningProgram::takes(const LearningAlgorithm& algorithm, int64_t nodes) {
  return nodes > algorithm.fewest_examples && nodes <= most_nodes;
}

LearningProgram::LearningProgram(const LearningAlgorithm& algorithm, int nodes,
                                 const Settings& settings)
    : algorithm_(&algorithm), nodes_(nodes) {
  if (!takes(algorithm, nodes)) {
    throw Error(ExitCode::usage, fmt::format("length {} for '{}'", nodes, algorithm.name),
                fmt::format("{} to {}: the query and the examples", algorithm.fewest_examples + 1,
                            most_nodes));
  }
  std::vector<std::string> known;
  for (const ProgramParameter& parameter : algorithm.parameters(examples())) {
    known.push_back(parameter.name);
    parameters_.push_back(with_setting(parameter, settings));
  }
  refuse_unknown(settings, known);
}

double LearningProgram::operator[](std::string_view parameter) const {
  return std::ranges::find(parameters_, parameter, &ProgramParameter::name)->value;
}

Model compile(const LearningProgram& program) {
  const TokenNetwork network = program.network();
  const ModelSpec spec = spec_of(network);
  // In memory as numbers, and again as bytes of the file.
  require_memory(2 * sizeof(float) * static_cast<uint64_t>(ParameterLayout(spec).buffer_size()),
                 fmt::format("the model of '{}'", program.algorithm().name),
                 "fewer steps or dimensions make it smaller");
  Model model{spec, weights_of<float>(network), {}};
  ModelOrigin& origin = model.origin;
  origin.length = program.nodes();
  const Task& task = find_task("in-context-regression");
  const int dimensions = program.columns() - 1;
  for (const TaskParameter& parameter : task.parameters()) {
    if (parameter.name != "d" || dimensions > parameter.most) continue;
    origin.task = task.name();
    if (dimensions != parameter.standard) origin.task_set = fmt::format("d={}", dimensions);
  }
  Settings settings;
  for (const ProgramParameter& parameter : program.parameters()) {
    settings.emplace(parameter.name, parameter.value);
  }
  origin.notes = {{"compiled", "weights by hand"},
                  {algorithm_note, program.algorithm().name},
                  {settings_note, to_text(settings)}};
  return model;
}

bool is_learning(const Model& model) { return model.origin.notes.contains(algorithm_note); }

LearningProgram carried_learning(const Model& model, const std::string& path) {
  const std::string& name = model.origin.notes.at(algorithm_note);
  const LearningAlgorithm* algorithm = find_learning_algorithm(name);
  if (algorithm == nullptr) {
    std::vector<std::string> known;
    for (const LearningAlgorithm& row : learning_algorithms()) known.emplace_back(row.name);
    throw unknown_name(ExitCode::data, "learning algorithm", printable(name), known, path);
  }
  try {
    const auto set = model.origin.notes.find(settings_note);
    return {*algorithm, model.spec.real_nodes,
            parse_settings(set == model.origin.notes.end() ? "" : set->second)};
  } catch (const Error& error) {  // the file's fault
    throw error.as(ExitCode::data);
  }
}

}  // namespace posattn
