// posattn presets
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/model/spec.h"

namespace posattn {
namespace {

std::string presets_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Preset& preset : presets()) {
    ModelSpec spec;
    apply_preset(preset.name, spec);
    list.push_back({{"name", preset.name},
                    {"description", preset.description},
                    {"attention", to_string(spec.attention)},
                    {"positions_in_input", spec.positions_in_input},
                    {"encoding", to_string(spec.encoding)},
                    {"rope", spec.rope},
                    {"direct_attention", spec.direct_attention}});
  }
  return list.dump(2) + "\n";
}

std::string presets_text() {
  TextTable table({"architecture", "description"}, 2);
  for (const Preset& preset : presets()) table.add_row({preset.name, preset.description});
  return table.to_string();
}

}  // namespace

void add_presets(CommandLine& command_line) {
  auto json = std::make_shared<bool>(false);
  CLI::App& command =
      add_command(command_line,
                  {.name = "presets",
                   .description = "List the architectures that --architecture knows by name",
                   .examples = {"posattn presets", "posattn presets --json",
                                "posattn train --task sort --architecture m1,m3 --seeds 0..4"}},
                  [json] {
                    write_output(*json ? presets_json() : presets_text());
                    return ExitCode::done;
                  });
  add_json_flag(command, *json);
}

}  // namespace posattn
