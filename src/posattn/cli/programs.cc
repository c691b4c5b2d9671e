// posattn programs
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/program_input.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

struct Options {
  int64_t length = 8;
  std::string show;
  bool json = false;
};

ExitCode list_programs(const Options& options) {
  if (!options.show.empty()) {
    write_output(find_program(options.show).text);
    return ExitCode::done;
  }
  TextTable table({"program", "rounds", "layers", "heads", "words", "hidden", "what it computes"},
                  1);
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string descriptions;
  for (const LibraryProgram& entry : library_programs()) {
    const NetworkPlan plan = plan_network(read_program(entry.name, options.length).program);
    table.add_row({entry.name, std::to_string(plan.program.rounds.size()),
                   std::to_string(plan.layers.size()), std::to_string(plan.heads),
                   std::to_string(plan.width), std::to_string(plan.hidden), entry.description});
    list.push_back({{"name", entry.name},
                    {"description", entry.description},
                    {"task", plan.program.task},
                    {"length", options.length},
                    {"processors", plan.program.processors},
                    {"rounds", plan.program.rounds.size()},
                    {"layers", plan.layers.size()},
                    {"heads", plan.heads},
                    {"words", plan.width},
                    {"hidden", plan.hidden},
                    {"constants", plan.constants}});
  }
  if (options.json) {
    write_output(list.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    write_output(
        fmt::format("length {}\n{}\nnext:  posattn programs --show sort\n"
                    "       posattn compile sort --length 8 -o sort.safetensors\n",
                    options.length, table.to_string()));
  }
  return ExitCode::done;
}

}  // namespace

void add_programs(Program& program) {
  auto options = std::make_shared<Options>();
  CLI::App& command = add_command(
      program,
      {.name = "programs",
       .description = "List the parallel programs that can be compiled, with their cost",
       .examples = {"posattn programs", "posattn programs --length 32",
                    "posattn programs --show sort > mine.par"}},
      [options] { return list_programs(*options); });
  command.add_option("--length", options->length, "Cost for this n")->option_text("INT [8]");
  command.add_option("--show", options->show, "Print the text of one of them")->option_text("NAME");
  add_json_flag(command, options->json);
}

}  // namespace posattn
