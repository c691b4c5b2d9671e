// posattn run

#include <algorithm>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

struct RunFlags {
  std::string program, settings, level = "network", routing = "auto";
  std::vector<std::string> inputs;  // one for each input of the program
  std::optional<int64_t> length;
  bool trace = false, json = false;
};

// The words of every processor after each round: all that the program names.
std::string trace_text(const StaticProgram& program, const std::vector<double>& input) {
  const std::vector<double> trace = trace_static(program, input);
  const size_t words = program.words.size();
  std::string text;
  for (size_t r = 0; r <= program.rounds.size(); ++r) {
    text += r == 0 ? std::string("start\n") : fmt::format("after round {}\n", r - 1);
    for (size_t w = 0; w < words; ++w) {
      if (program.words[w].name.find(' ') != std::string::npos) continue;
      text += fmt::format("  {:<8}", program.words[w].name);
      for (int i = 0; i < program.processors; ++i) {
        text +=
            fmt::format(" {:>9}", short_number(trace[(r * program.processors + i) * words + w]));
      }
      text += "\n";
    }
  }
  return text + "\n";
}

// The program with messages routed, in its interpreter or as a network.
std::vector<double> run_routed(const StaticProgram& program, const RunFlags& options,
                               const std::vector<double>& numbers) {
  const RoutedProgram routed = route_messages(program, parse_routing(options.routing));
  const std::vector<double> inputs = routed_inputs<double>(program, routed, numbers, 1);
  if (options.level == "static") return run_static<double>(routed.program, inputs, 1);
  return run_network(compile(routed.program), routed.program, inputs, 1);
}

ExitCode run_program(const RunFlags& options) {
  const std::vector<std::string> levels = {"mpc", "static", "network"};
  if (std::ranges::find(levels, options.level) == levels.end()) {
    throw unknown_name(ExitCode::usage, "level", options.level, levels);
  }
  const auto [input, length, numbers] = given_program(
      options.program, options.inputs, options.length, parse_settings(options.settings));
  // The interpreter refuses what the network could only guess.
  std::vector<double> outputs = run_static<double>(input.program, numbers, 1);
  if (options.level != "mpc") outputs = run_routed(input.program, options, numbers);
  if (options.json) {
    const Json document = {{"program", input.program.name},
                           {"length", length},
                           {"level", options.level},
                           {"input", numbers},
                           {"output", outputs}};
    write_output(document.dump() + "\n");
    return ExitCode::done;
  }
  std::string text;
  if (options.trace) {
    text = trace_text(compile_text(input.source.text, input.source.file, static_cast<int>(length),
                                   {.settings = parse_settings(options.settings), .whole = true}),
                      numbers);
  }
  const size_t columns = input.program.outputs.size();
  for (size_t column = 0; column < columns; ++column) {  // a line for each output
    for (size_t i = column; i < outputs.size(); i += columns) {
      // As many digits as the level has, so that levels compare.
      text += (i < columns ? "" : ",") + (options.level == "network"
                                              ? fmt::format("{}", static_cast<float>(outputs[i]))
                                              : fmt::format("{}", outputs[i]));
    }
    text += "\n";
  }
  write_output(text);
  return ExitCode::done;
}

void add_run_options(CLI::App& command, RunFlags& options) {
  argument(command, "PROGRAM", options.program, "A program's name or its .par file")->required();
  add_input_option(command, options.inputs,
                   "A number for each processor, once for each input of the program")
      ->required();
  option(command, "--length", options.length, "INT", "n, where it is not the count of numbers");
  add_set_option(command, options.settings);
  option(command, "--level", options.level, "TEXT [network]",
         "mpc: the program's interpreter; static: as mpc with its messages routed; network: the "
         "compiled Transformer");
  add_routing_option(command, options.routing);
  CLI::Option* trace =
      command.add_flag("--trace", options.trace, "Print every word after every round first");
  add_json_flag(command, options.json).excludes(trace);
}

const Command registered_run(
    {.name = "run",
     .group = Group::algorithms,
     .summary = "Run a parallel program on one input, at a level of the compiler",
     .examples = {"posattn run sort --input 3,1,2", "posattn run sort --input 3,1,2 --level static",
                  "posattn run cumulative-sum --input 1,2,3,4 --level static --trace"},
     .details = "The network computes in fp32. Inputs beyond 3.4e38, and outputs that overflow, "
                "end with exit code 4."},
    add_run_options, run_program);

}  // namespace
}  // namespace posattn
