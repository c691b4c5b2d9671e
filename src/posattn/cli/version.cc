// posattn version
#include "posattn/base/version.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"

namespace posattn {
namespace {

std::string version_text(bool json) {
  const BuildInfo& build = build_info();
  if (json) {
    return nlohmann::ordered_json{{"version", build.version},
                                  {"commit", build.commit},
                                  {"compiler", build.compiler},
                                  {"flags", build.flags},
                                  {"build_type", build.build_type}}
               .dump(2) +
           "\n";
  }
  return fmt::format("posattn {} (commit {}, {}, {})\n", build.version, build.commit,
                     build.compiler, build.build_type);
}

}  // namespace

void add_version(CommandLine& command_line) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command = add_command(command_line,
                                  {.name = "version",
                                   .description = "Print the version, commit and compiler",
                                   .examples = {"posattn version", "posattn version --json"}},
                                  [json] {
                                    write_output(version_text(*json));
                                    return ExitCode::done;
                                  });
  add_json_flag(command, *json);
}

}  // namespace posattn
