// posattn presets

#include "posattn/cli/commands.h"
#include "posattn/model/spec/spec.h"

namespace posattn {
namespace {

Json presets_document() {
  Json list = Json::array();
  for (const Preset& preset : presets()) {
    ModelSpec spec;
    apply_preset(preset.name, spec);
    list.push_back({{"name", preset.name},
                    {"description", preset.description},
                    {"attention", to_string(spec.attention)},
                    {"positions_in_input", spec.positions_in_input},
                    {"encoding", to_string(spec.encoding)},
                    {"rope", spec.rotation == Rotation::rope},
                    {"direct_attention", spec.scores == Scores::direct}});
  }
  return list;
}

ExitCode list_presets(const JsonFlag& flags) {
  const auto list = presets_document();
  write_output(
      flags.json ? json_text(list)
                 : json_table(list, {{"architecture", "name"}, {"description", "description"}}, 2));
  return ExitCode::done;
}

const Command registered_presets(
    {.name = "presets",
     .group = Group::train,
     .summary = "List the architectures that --architecture accepts",
     .examples = {"posattn presets", "posattn presets --json",
                  "posattn train --task sort --architecture m1,m3 --seeds 0..4"}},
    add_json_flag_alone, list_presets);

}  // namespace
}  // namespace posattn
