// posattn verify
#include "posattn/programs/checking/verify.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/cli/program_input.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

struct VerifyFlags {
  std::string model, scales = "1,10,1000";
  int64_t samples = 10000, seed = 0;
  int threads = 0;
  bool in_double = false, json = false;
};

std::string numbers(const std::vector<double>& values) {
  return fmt::format("{}", fmt::join(values, ", "));
}

// Of many numbers those that matter: "1 of processor 37, 2 of processor 40".
std::string numbers_at(const std::vector<double>& values, const std::vector<int>& places) {
  constexpr size_t most = 6;
  std::string text;
  for (size_t k = 0; k < std::min(places.size(), most); ++k) {
    text += fmt::format("{}{} of processor {}", k == 0 ? "" : ", ", values[places[k]], places[k]);
  }
  if (places.size() > most) text += fmt::format(" and {} more", places.size() - most);
  return text;
}

Error failure(const CounterExample& example, const std::string& model) {
  constexpr int most_in_full = 16;
  const auto count = static_cast<int>(example.input.size());
  std::string input = numbers(example.input), expected = numbers(example.expected),
              found = numbers(example.found);
  if (count > most_in_full) {
    std::vector<int> given, wrong;
    for (int i = 0; i < count; ++i) {
      if (example.input[i] != 0) given.push_back(i);
      // Written so that a NaN is wrong.
      if (!(std::abs(example.found[i] - example.expected[i]) <= example.bounds[i])) {
        wrong.push_back(i);
      }
    }
    input = given.empty() ? "zeros" : numbers_at(example.input, given) + ", else zeros";
    expected = numbers_at(example.expected, wrong);
    found = numbers_at(example.found, wrong);
  }
  return {ExitCode::verification,
          fmt::format("{} does not compute what {} says", model, example.against),
          fmt::format("outputs {}", expected),
          fmt::format("the simplest input found: {}\n        its outputs: {}", input, found)};
}

Error undecided(const Verification& verification, const std::string& model) {
  const auto scale = std::ranges::find_if_not(verification.scales, &ScaleVerification::is_decided);
  return {
      ExitCode::verification,
      fmt::format("{} cannot be decided at c = {}: errors may reach {:.2g} of the outputs' size",
                  model, scale->c, scale->bound_share),
      "at most 0.01, or the outputs could be anything",
      "--double has smaller errors; so have closer tables (within ...) and shorter programs"};
}

std::string as_text(const Verification& verification, const StaticProgram& program,
                    bool in_double) {
  TextTable table({"c", "inputs", "mismatches", "largest error", "rounding allows", "MSE / c^2"},
                  0);
  for (const ScaleVerification& scale : verification.scales) {
    table.add_row({fmt::format("{}", scale.c), std::to_string(scale.samples),
                   std::to_string(scale.mismatches), short_number(scale.largest_error),
                   short_number(scale.largest_bound), short_number(scale.mse / scale.c / scale.c)});
  }
  return fmt::format("{}, n = {}, in {}: against the program{}\n{}{}", program.name, program.length,
                     in_double ? "double" : "fp32",
                     program.task.empty() ? "" : " and the exact answer of task " + program.task,
                     table.to_string(), verification.holds() ? "every output is right\n" : "");
}

nlohmann::ordered_json as_json(const Verification& verification, const StaticProgram& program,
                               bool in_double) {
  nlohmann::ordered_json scales = nlohmann::ordered_json::array();
  for (const ScaleVerification& scale : verification.scales) {
    scales.push_back({{"c", scale.c},
                      {"samples", scale.samples},
                      {"mismatches", scale.mismatches},
                      {"largest_error", scale.largest_error},
                      {"rounding_bound", scale.largest_bound},
                      {"bound_share", scale.bound_share},
                      {"mse", scale.mse},
                      {"mse_over_c2", scale.mse / scale.c / scale.c},
                      {"network_seconds", scale.seconds}});
  }
  nlohmann::ordered_json document = {
      {"program", program.name},       {"length", program.length},
      {"task", program.task},          {"precision", in_double ? "double" : "fp32"},
      {"holds", verification.holds()}, {"scales", scales}};
  if (const auto& example = verification.counter_example) {
    document["counter_example"] = {{"against", example->against},
                                   {"input", example->input},
                                   {"expected", example->expected},
                                   {"found", example->found},
                                   {"bounds", example->bounds}};
  }
  return document;
}

ExitCode verify_model(const VerifyFlags& options) {
  VerifyRequest request;
  request.scales = parse_scales(options.scales);
  if (options.samples < 1 || options.samples > 100'000'000) {
    throw Error(ExitCode::usage, fmt::format("--samples {}", options.samples), "1 to 100000000");
  }
  const Model model = load_model(find_model(options.model));
  const StaticProgram program = embedded_program(model, options.model);
  request.model = &model;
  request.program = &program;
  request.routing = embedded_routing(model);
  request.samples = options.samples;
  request.seed = static_cast<uint64_t>(options.seed);
  request.threads = thread_count(options.threads);
  request.in_double = options.in_double;
  const Verification verification = verify(request);
  if (options.json) {
    write_output(as_json(verification, program, options.in_double)
                     .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                 "\n");
  } else {
    write_output(as_text(verification, program, options.in_double));
  }
  if (verification.holds()) return ExitCode::done;
  flush_output();
  if (!verification.counter_example) throw undecided(verification, options.model);
  throw failure(*verification.counter_example, options.model);
}

}  // namespace

void add_verify(CommandLine& command_line) {
  auto options = std::make_shared<VerifyFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "verify",
       .description = "Check a compiled model against its program and its task's exact answer",
       .examples = {"posattn verify sort.safetensors", "posattn verify sort.safetensors --double",
                    "posattn verify sort.safetensors --samples 100000 --scales 1,1000000"},
       .details =
           "An output counts as wrong when it is further from the exact one than rounding can\n"
           "explain (a bound that is computed along with each input); whole numbers must be\n"
           "equal. Exit code 6, and the simplest input found, when something is wrong; exit code\n"
           "6 too where the bound is above a hundredth of the outputs and decides nothing."},
      [options] { return verify_model(*options); });
  command.add_option("MODEL", options->model, "A model file that `posattn compile` wrote")
      ->required()
      ->type_name("");
  command.add_option("--samples", options->samples, "Random inputs per scale")
      ->option_text("INT [10000]");
  command.add_option("--scales", options->scales, "Inputs in [-2c, 2c] for these c")
      ->option_text("LIST [1,10,1000]");
  command.add_flag("--double", options->in_double,
                   "The network in double precision instead of fp32 (routes only)");
  command.add_option("--seed", options->seed, "Of the random inputs")->option_text("INT [0]");
  command.add_option("--threads", options->threads, "Threads to use; 0: one per core")
      ->option_text("INT [0]");
  add_json_flag(command, options->json);
}

}  // namespace posattn
