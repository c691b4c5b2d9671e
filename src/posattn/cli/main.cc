// The program: describes the commands, parses, runs the chosen one, and turns whatever goes wrong
// into one message and the documented exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <new>

#include "posattn/base/error.h"
#include "posattn/base/version.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/usage_errors.h"

namespace posattn {
namespace {

constexpr const char* welcome =
    R"(posattn {} trains, evaluates and analyses positional Transformers beside standard ones.

Try:
  posattn train --task cumulative-sum --architecture positional,standard --epochs 200
  posattn evaluate runs/cumulative-sum --scales 1..10
  posattn report runs/cumulative-sum

'posattn --help' lists all commands; 'posattn COMMAND --help' shows examples of each.
)";

void add_commands(Program& program) {
  add_train(program);
  add_evaluate(program);
  add_predict(program);
  add_inspect(program);
  add_report(program);
  add_experiments(program);
  add_reproduce(program);
  add_compare(program);
  add_programs(program);
  add_compile(program);
  add_run(program);
  add_verify(program);
  add_show(program);
  add_tasks(program);
  add_presets(program);
  add_doctor(program);
  add_bench(program);
  add_completion(program);
  add_version(program);
}

ExitCode run(int argc, char** argv) {
  const std::string version = build_info().version;
  CLI::App app("Positional Transformers: train, evaluate, analyse", "posattn");
  app.set_version_flag("--version", "posattn " + version, "Print the version and exit");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  app.get_formatter()->label("SUBCOMMAND", "COMMAND");
  app.get_formatter()->label("OPTIONS", "options");
  app.footer("'posattn COMMAND --help' shows the options of a command and examples to paste.");
  Program program{app, std::vector<std::string>(argv, argv + argc), {}};
  add_commands(program);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForVersion& call) {
    write_output(std::string(call.what()) + "\n");
    return ExitCode::done;
  } catch (const CLI::CallForHelp&) {
    write_output(app.help());
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    throw usage_error(app, error);
  }
  if (program.chosen) return program.chosen();
  write_output(fmt::format(fmt::runtime(welcome), version));
  return ExitCode::done;
}

ExitCode run_and_report(int argc, char** argv) {
  try {
    const ExitCode code = run(argc, argv);
    flush_output();
    return code;
  } catch (const Error& error) {
    print_error(error);
    return error.code();
  } catch (const ReaderGone&) {
    return ExitCode::failed;
  } catch (const std::bad_alloc&) {
    print_error(Error(ExitCode::failed, "not enough memory", "",
                      "try a smaller --batch, --samples, --width or --length"));
  } catch (const std::exception& error) {
    print_error(Error(ExitCode::failed, error.what()));
  }
  return ExitCode::failed;
}

}  // namespace
}  // namespace posattn

int main(int argc, char** argv) {
  posattn::secure_standard_streams();
  return static_cast<int>(posattn::run_and_report(argc, argv));
}
