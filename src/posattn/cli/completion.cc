// posattn completion: the scripts are made from the description of the commands, so they never go
// stale.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/completion_words.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

struct CompletionFlags {
  std::string shell;
  bool json = false;
};

ExitCode completion(const CompletionFlags& options, const CLI::App& app) {
  const std::string script = completion_script(options.shell, describe_commands(app));
  write_output(options.json
                   ? nlohmann::ordered_json{{"shell", options.shell}, {"script", script}}.dump(2) +
                         "\n"
                   : script);
  return ExitCode::done;
}

}  // namespace

void add_completion(CommandLine& command_line) {
  auto options = std::make_shared<CompletionFlags>();
  CLI::App& command = add_command(
      command_line,
      {.name = "completion",
       .description = "Print a completion script for bash, zsh or fish",
       .examples = {"source <(posattn completion bash)",
                    "posattn completion bash > ~/.local/share/bash-completion/completions/posattn",
                    "posattn completion zsh > ~/.zfunc/_posattn",
                    "posattn completion fish > ~/.config/fish/completions/posattn.fish"}},
      [options, &app = command_line.app] { return completion(*options, app); });
  command.add_option("SHELL", options->shell, "bash, zsh or fish")->required()->type_name("");
  add_json_flag(command, options->json);
}

}  // namespace posattn
