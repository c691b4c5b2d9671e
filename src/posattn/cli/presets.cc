// posattn presets
#include <CLI/CLI.hpp>
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
  return json_text(list);
}

std::string presets_text() {
  TextTable table({"architecture", "description"}, 2);
  for (const Preset& preset : presets()) table.add_row({preset.name, preset.description});
  return table.to_string();
}

ExitCode list_presets(const JsonFlag& flags) {
  write_output(flags.json ? presets_json() : presets_text());
  return ExitCode::done;
}

const Command presets_command(
    {.name = "presets",
     .group = Group::train,
     .summary = "List the architectures that --architecture accepts",
     .examples = {"posattn presets", "posattn presets --json",
                  "posattn train --task sort --architecture m1,m3 --seeds 0..4"}},
    add_json_flag_alone, list_presets);

}  // namespace
}  // namespace posattn
