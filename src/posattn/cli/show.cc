// posattn show
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "posattn/cli/commands.h"
#include "posattn/cli/output_file.h"
#include "posattn/cli/program_input.h"
#include "posattn/cli/terminal.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/report/svg/program_svg.h"

namespace posattn {
namespace {

struct ShowFlags {
  std::string program, settings, output;
  int64_t length = 8;
};

ExitCode show_program(const ShowFlags& options) {
  const ProgramInput input =
      read_program(options.program, options.length, parse_settings(options.settings));
  const std::string path = options.output.empty() ? input.program.name + ".svg" : options.output;
  write_result(path, program_svg(route_messages(input.program, Routing::automatic).program));
  if (is_standard_output(path)) return ExitCode::done;
  write_output(fmt::format("{} rounds of {} processors in {}\n", input.program.rounds.size(),
                           input.program.processors, path));
  return ExitCode::done;
}

}  // namespace

void add_show(CommandLine& command_line) {
  auto options = std::make_shared<ShowFlags>();
  CLI::App& command =
      add_command(command_line,
                  {.name = "show",
                   .description = "Draw who hears whom in every round of a parallel program",
                   .examples = {"posattn show sort --length 8 -o sort.svg",
                                "posattn show mine.par --length 16"}},
                  [options] { return show_program(*options); });
  command.add_option("PROGRAM", options->program, "A program's name or its .par file")
      ->required()
      ->type_name("");
  command.add_option("--length", options->length, "Numbers per input, n")->option_text("INT [8]");
  add_set_option(command, options->settings);
  add_output_option(command, options->output, "The picture; '-': standard output",
                    "FILE [PROGRAM.svg]");
}

}  // namespace posattn
