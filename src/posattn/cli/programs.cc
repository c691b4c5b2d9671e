// posattn programs

#include <algorithm>
#include <sstream>

#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/learning/learning.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

struct ProgramsFlags {
  int64_t length = 8;
  std::string settings, show;
  bool json = false;
};

// Descriptions to the right of the numbers, from the same column on; wrapped on a terminal.
std::string with_descriptions(const std::string& table, const std::vector<std::string>& texts) {
  std::vector<std::string> rows;
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) rows.push_back(line);
  size_t width = 0;
  for (const std::string& row : rows) width = std::max(width, row.size());
  const auto indent = static_cast<int>(width) + 2;
  const int columns = is_terminal(stdout) ? std::max(indent + 24, terminal_columns(stdout)) : 1000;
  std::string text;
  for (size_t k = 0; k < rows.size(); ++k) {
    text += fmt::format("{:<{}}{}\n", rows[k], indent, wrapped(texts[k], columns, indent));
  }
  return text;
}

// One of the library, and what it costs as a network: a plan, or the problem that there is none.
struct ListedProgram {
  std::string name, description;
  std::vector<ProgramParameter> parameters = {};
  size_t rounds = 0;
  std::optional<NetworkPlan> plan = {};
  std::string problem = {};
};

// A setting is for every program that has it; `unused` loses those that this one has.
ListedProgram planned(const LibraryProgram& source, int64_t length, const Settings& settings,
                      Settings& unused) {
  ListedProgram listed{.name = source.name, .description = source.description};
  Settings own;
  for (const ProgramParameter& parameter : text_parameters(source.text, source.file, 1)) {
    const auto set = settings.find(parameter.name);
    if (set == settings.end()) continue;
    own.insert(*set);
    unused.erase(parameter.name);
  }
  try {
    const ProgramInput input = read_program(source.name, length, own);
    listed.parameters = input.parameters;
    listed.rounds = input.program.rounds.size();
    listed.plan = plan_network(route_messages(input.program, Routing::automatic).program);
  } catch (const Error& error) {
    if (error.code() == ExitCode::usage) throw;
    listed.problem = error.problem();  // too large at this length
    if (!error.expected().empty()) listed.problem += ", expected " + error.expected();
  }
  return listed;
}

// A learning algorithm at so many nodes.
struct ListedAlgorithm {
  const LearningAlgorithm* algorithm = nullptr;
  std::vector<ProgramParameter> parameters = {};
  std::optional<ModelSpec> spec = {};
  std::string problem = {};
};

ListedAlgorithm planned(const LearningAlgorithm& algorithm, int64_t length,
                        const Settings& settings, Settings& unused) {
  ListedAlgorithm listed{.algorithm = &algorithm};
  Settings own;
  for (const ProgramParameter& parameter : algorithm.parameters(algorithm.fewest_examples)) {
    const auto set = settings.find(parameter.name);
    if (set == settings.end()) continue;
    own.insert(*set);
    unused.erase(parameter.name);
  }
  if (!LearningProgram::takes(algorithm, length)) {
    listed.problem = fmt::format("not for {} nodes", length);
    return listed;
  }
  const LearningProgram program(algorithm, static_cast<int>(length), own);
  listed.parameters = program.parameters();
  listed.spec = spec_of(program.network());
  return listed;
}

template <class Listed>
std::string described(std::string text, const Listed& listed) {
  for (const ProgramParameter& parameter : listed.parameters) text += "; " + to_text(parameter);
  return listed.problem.empty() ? text : fmt::format("{} ({})", text, listed.problem);
}

Json as_json(const ProgramParameter& parameter) {
  Json document = {{"name", parameter.name}, {"value", parameter.value}};
  if (parameter.low) {
    document["low"] = *parameter.low;
    document["high"] = *parameter.high;
  }
  return document;
}

// With nulls for what it costs.
Json begun(const std::string& name, const std::string& description, int64_t length) {
  Json document = {
      {"name", name}, {"description", description}, {"task", nullptr}, {"length", length}};
  for (const char* number :
       {"processors", "rounds", "layers", "heads", "words", "hidden", "constants"}) {
    document[number] = nullptr;
  }
  return document;
}

template <class Listed>
Json finished(Json document, const Listed& listed) {
  for (const ProgramParameter& parameter : listed.parameters) {
    document["parameters"].push_back(as_json(parameter));
  }
  if (!listed.problem.empty()) document["problem"] = listed.problem;
  return document;
}

Json as_json(const ListedAlgorithm& listed, int64_t length) {
  Json document = begun(listed.algorithm->name, listed.algorithm->description, length);
  if (listed.spec) {
    document["layers"] = listed.spec->depth;
    document["heads"] = listed.spec->heads;
    document["words"] = listed.spec->width;
    document["hidden"] = listed.spec->mlp_width;
  }
  return finished(std::move(document), listed);
}

Json as_json(const ListedProgram& listed, int64_t length) {
  Json document = begun(listed.name, listed.description, length);
  if (listed.plan) {
    const NetworkPlan& plan = *listed.plan;
    document["task"] = plan.program.task;
    document["processors"] = plan.program.processors;
    document["rounds"] = listed.rounds;
    document["layers"] = plan.layers.size();
    document["heads"] = plan.heads;
    document["words"] = plan.width;
    document["hidden"] = plan.hidden;
    document["constants"] = plan.constants;
  }
  return finished(std::move(document), listed);
}

ExitCode list_programs(const ProgramsFlags& options) {
  if (!options.show.empty()) {
    write_output(find_program(options.show).text);
    return ExitCode::done;
  }
  std::vector<std::string> descriptions = {"what it computes"};
  Json list = Json::array();
  const Settings settings = parse_settings(options.settings);
  Settings unused = settings;
  for (const LibraryProgram& entry : library_programs()) {
    const ListedProgram listed = planned(entry, options.length, settings, unused);
    descriptions.push_back(described(listed.description, listed));
    list.push_back(as_json(listed, options.length));
  }
  for (const LearningAlgorithm& algorithm : learning_algorithms()) {
    const ListedAlgorithm listed = planned(algorithm, options.length, settings, unused);
    descriptions.push_back(described(algorithm.description, listed));
    list.push_back(as_json(listed, options.length));
  }
  if (!unused.empty()) {
    throw Error(ExitCode::usage, fmt::format("--set {}", to_text(unused)),
                "parameters that a program of the list has");
  }
  if (options.json) {
    write_output(json_text(list));
  } else {
    write_output(
        fmt::format("n = {}\n{}\nnext:  posattn programs --show sort\n"
                    "       posattn compile sort --length 8 -o sort.safetensors\n",
                    options.length,
                    with_descriptions(json_table(list, {{"program", "name"},
                                                        {"rounds", "rounds"},
                                                        {"layers", "layers"},
                                                        {"heads", "heads"},
                                                        {"words", "words"},
                                                        {"hidden", "hidden"}}),
                                      descriptions)));
  }
  return ExitCode::done;
}

void add_programs_options(CLI::App& command, ProgramsFlags& options) {
  CLI::Option* length = option(command, "--length", options.length, "INT [8]", "Cost for this n");
  CLI::Option* set = add_set_option(command, options.settings);
  CLI::Option& json = add_json_flag(command, options.json);
  option(command, "--show", options.show, "NAME", "Print the text of one of them")
      ->excludes(length)
      ->excludes(set)
      ->excludes(&json);
}

const Command registered_programs(
    {.name = "programs",
     .group = Group::algorithms,
     .summary = "List the programs and learning algorithms that can be compiled, and their cost",
     .examples = {"posattn programs", "posattn programs --length 32",
                  "posattn programs --show sort > mine.par"}},
    add_programs_options, list_programs);

}  // namespace
}  // namespace posattn
