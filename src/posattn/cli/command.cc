#include <algorithm>
#include <tuple>

#include "posattn/cli/commands.h"

namespace posattn {
namespace {

std::vector<RegisteredCommand>& all_commands() {
  static std::vector<RegisteredCommand> commands;
  return commands;
}

}  // namespace

std::string_view to_string(Group group) {
  constexpr std::string_view names[] = {"Train and use models", "The paper's experiments",
                                        "Parallel algorithms", "Theory", "This machine"};
  return names[static_cast<int>(group)];
}

void Command::enter(RegisteredCommand command) { all_commands().push_back(std::move(command)); }

const std::vector<RegisteredCommand>& registered_commands() {
  static const std::vector<RegisteredCommand> sorted = [] {
    std::vector<RegisteredCommand> commands = all_commands();
    std::ranges::sort(commands, {}, [](const RegisteredCommand& command) {
      return std::tie(command.text.group, command.text.name);
    });
    return commands;
  }();
  return sorted;
}

CLI::Option& add_json_flag(CLI::App& command, bool& json) {
  return *command.add_flag("--json", json, "Print the result as JSON (shapes: docs/files.md)");
}

CLI::Option& add_threads_option(CLI::App& command, int& threads) {
  return *command.add_option("--threads", threads, "Threads to use; 0: one per core")
              ->option_text("INT [0]");
}

}  // namespace posattn
