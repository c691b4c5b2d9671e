// posattn verify
#include "posattn/programs/checking/verify.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/learning.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"

namespace posattn {
namespace {

struct VerifyFlags {
  std::string model, scales = "1,10,1000";
  int64_t samples = 10000, seed = 0;
  int threads = 0;
  bool in_double = false, any_weights = false, json = false;
};

std::string numbers(const std::vector<double>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

// Names the numbers that matter: "1 of processor 37, 2 of processor 40". Where a processor has
// several words: "1 in 'edge[3]' of processor 37".
std::string numbers_at(const std::vector<double>& values, const std::vector<size_t>& places,
                       const StaticProgram& program, const std::vector<int>& words) {
  constexpr size_t most = 6;
  std::string text;
  for (size_t k = 0; k < std::min(places.size(), most); ++k) {
    const size_t processor = places[k] / words.size(), column = places[k] % words.size();
    text += fmt::format("{}{}", k == 0 ? "" : ", ", values[places[k]]);
    if (words.size() > 1) text += fmt::format(" in '{}'", program.words[words[column]].name);
    text += fmt::format(" of processor {}", processor);
  }
  if (places.size() > most) text += fmt::format(" and {} more", places.size() - most);
  return text;
}

std::string short_input(const CounterExample& example, const StaticProgram& program) {
  std::vector<size_t> given;
  for (size_t i = 0; i < example.input.size(); ++i) {
    if (example.input[i] != 0) given.push_back(i);
  }
  if (given.empty()) return "zeros";
  return numbers_at(example.input, given, program, program.inputs) + ", else zeros";
}

// The outputs that are wrong.
std::vector<size_t> wrong_outputs(const CounterExample& example) {
  std::vector<size_t> wrong;
  for (size_t i = 0; i < example.found.size(); ++i) {
    // Written so that a NaN is wrong.
    if (!(std::abs(example.found[i] - example.expected[i]) <= example.bounds[i])) {
      wrong.push_back(i);
    }
  }
  return wrong;
}

Error failure(const CounterExample& example, const StaticProgram& program,
              const std::string& model) {
  constexpr size_t most_in_full = 16;
  const bool few_outputs = example.found.size() <= most_in_full;
  const auto outputs = [&](const std::vector<double>& values) {
    return few_outputs ? numbers(values)
                       : numbers_at(values, wrong_outputs(example), program, program.outputs);
  };
  return {ExitCode::verification,
          fmt::format("{} does not compute what {} says", model, example.against),
          fmt::format("outputs {}", outputs(example.expected)),
          fmt::format("the simplest input found: {}\n        its outputs: {}",
                      example.input.size() <= most_in_full ? numbers(example.input)
                                                           : short_input(example, program),
                      outputs(example.found))};
}

Error undecided(const Verification& verification, const std::string& model) {
  const auto scale = std::ranges::find_if_not(verification.scales, &ScaleVerification::is_decided);
  if (scale == verification.scales.end()) {
    return {ExitCode::verification,
            fmt::format("{} is not what `posattn compile` makes of its program: it has {}", model,
                        verification.other_weights),
            "the compiler's weights, or inputs could not show that it is right",
            fmt::format("no mistake was found in {} inputs; --any-weights accepts that as evidence",
                        verification.inputs())};
  }
  return {
      ExitCode::verification,
      fmt::format("{} cannot be decided at c = {}: an output's error may reach {:.2g} of its size",
                  model, scale->c, scale->bound_share),
      "at most 0.01, or the output could be anything",
      "--double has smaller errors; so have closer tables (within ...) and shorter programs"};
}

std::string conclusion(const Verification& verification) {
  return fmt::format("no mistake in {} inputs; the weights are {}\n", verification.inputs(),
                     verification.other_weights.empty()
                         ? "those that `posattn compile` writes"
                         : "not the compiler's: it has other " + verification.other_weights);
}

Json as_json(const Verification& verification, const StaticProgram& program, bool in_double) {
  Json scales = Json::array();
  for (const ScaleVerification& scale : verification.scales) {
    scales.push_back({{"c", scale.c},
                      {"samples", scale.samples},
                      {"hard", scale.hard},
                      {"mismatches", scale.mismatches},
                      {"largest_error", scale.largest_error},
                      {"rounding_bound", scale.largest_bound},
                      {"bound_share", scale.bound_share},
                      {"mse", scale.mse},
                      {"mse_over_c2", scale.mse / scale.c / scale.c},
                      {"network_seconds", scale.seconds}});
  }
  Json document = {{"program", program.name},
                   {"length", program.length},
                   {"task", program.task},
                   {"precision", in_double ? "double" : "fp32"},
                   {"holds", verification.holds()},
                   {"inputs", verification.inputs()},
                   {"scales", scales}};
  if (!verification.other_weights.empty()) document["other_weights"] = verification.other_weights;
  if (const auto& example = verification.counter_example) {
    document["counter_example"] = {{"against", example->against},
                                   {"input", example->input},
                                   {"expected", example->expected},
                                   {"found", example->found},
                                   {"bounds", example->bounds}};
  }
  return document;
}

std::string as_text(const Verification& verification, const StaticProgram& program,
                    const Json& document) {
  std::vector<JsonColumn> columns = {{"inputs", "samples"},
                                     {"hard", "hard"},
                                     {"mismatches", "mismatches"},
                                     {"largest error", "largest_error"},
                                     {"rounding allows", "rounding_bound"}};
  if (!verification.whole) {
    columns.insert(columns.begin(), {"c", "c"});
    columns.push_back({"MSE / c^2", "mse_over_c2"});
  }
  return fmt::format("{}, n = {}, in {}: against the program{}\n{}{}", program.name, program.length,
                     document["precision"].get<std::string>(),
                     program.task.empty() ? "" : " and the exact answer of task " + program.task,
                     json_table(document["scales"], columns, 0),
                     verification.holds() ? conclusion(verification) : "");
}

ExitCode verify_model(const VerifyFlags& options) {
  VerifyRequest request;
  request.scales = parse_scales(options.scales);
  if (options.samples < 1 || options.samples > 100'000'000) {
    throw Error(ExitCode::usage, fmt::format("--samples {}", options.samples), "1 to 100000000");
  }
  const Model model = load_model(find_model(options.model));
  if (is_learning(model)) {
    const LearningProgram program = carried_learning(model, options.model);
    return verify_learning({.model = &model,
                            .program = &program,
                            .scales = request.scales,
                            .samples = options.samples,
                            .seed = static_cast<uint64_t>(options.seed),
                            .threads = thread_count(options.threads),
                            .in_double = options.in_double,
                            .any_weights = options.any_weights},
                           options.model, options.json);
  }
  const StaticProgram program = embedded_program(model, options.model);
  request.model = &model;
  request.program = &program;
  request.routing = embedded_routing(model);
  request.samples = options.samples;
  request.seed = static_cast<uint64_t>(options.seed);
  request.threads = thread_count(options.threads);
  request.in_double = options.in_double;
  request.any_weights = options.any_weights;
  const Verification verification = verify(request);
  const auto document = as_json(verification, program, options.in_double);
  write_output(options.json ? json_text(document) : as_text(verification, program, document));
  if (verification.holds()) return ExitCode::done;
  flush_output();
  if (!verification.counter_example) throw undecided(verification, options.model);
  throw failure(*verification.counter_example, program, options.model);
}

void add_verify_options(CLI::App& command, VerifyFlags& options) {
  argument(command, "MODEL", options.model, "A model file that `posattn compile` wrote")
      ->required();
  option(command, "--samples", options.samples, "INT [10000]",
         "Random inputs per scale, and hard ones");
  option(command, "--scales", options.scales, "LIST [1,10,1000]",
         "Real inputs in [-2c, 2c] for these c");
  command.add_flag(
      "--double", options.in_double,
      "The network in double precision instead of fp32 (routes and learning algorithms)");
  command.add_flag("--any-weights", options.any_weights,
                   "Accept weights that are not the compiler's if no input shows a mistake");
  option(command, "--seed", options.seed, "INT [0]", "Seed of the random inputs");
  add_threads_option(command, options.threads);
  add_json_flag(command, options.json);
}

const Command registered_verify(
    {.name = "verify",
     .group = Group::algorithms,
     .summary = "Check a compiled model against its program and the exact answers of its task",
     .examples = {"posattn verify sort.safetensors", "posattn verify sort.safetensors --double",
                  "posattn verify sort.safetensors --samples 100000 --scales 1,1000000"},
     .details =
         "The inputs are random ones and as many hard ones: equal numbers, both ends of each "
         "range, sorted orders, constants of the program, special permutations, long paths in "
         "graphs. An output is wrong when rounding cannot explain its error; whole numbers must be "
         "equal. Then the weights are compared with those that `posattn compile` writes. A model "
         "that passes is well tested, not proved for all inputs. A learning algorithm is compared "
         "with the same steps in plain double, on random regressions with y times c.\n\nThe exit "
         "code is 6 when an "
         "output is wrong (the simplest such input is printed), when rounding may change an output "
         "by more than a hundredth, and when the weights are not the compiler's."},
    add_verify_options, verify_model);

}  // namespace
}  // namespace posattn
