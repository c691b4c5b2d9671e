// What a page can choose from.
#include <nlohmann/json.hpp>

#include "posattn/base/version.h"
#include "posattn/bounds/bias_scaling.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/spec.h"
#include "posattn/playground/answer.h"
#include "posattn/playground/letters.h"
#include "posattn/playground/playground.h"
#include "posattn/programs/language/language.h"
#include "posattn/tasks/task.h"
#include "posattn/training/run_config.h"

namespace posattn::playground {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Task& task) {
  Json axes = Json::array(), settings = Json::object();
  for (const TestAxis& axis : task.test_axes()) {
    axes.push_back({{"name", axis.name}, {"description", axis.description}, {"whole", axis.whole}});
  }
  for (const auto& [key, value] : task.settings()) settings[key] = value;
  return {{"name", task.name()},
          {"description", task.description()},
          {"axes", axes},
          {"settings", settings},
          {"letters", has_letters(task)}};
}

std::string catalogue() {
  Json all = {{"version", build_info().version}, {"instruction_set", instruction_set()}};
  // On a page a sample is one row, without pairs of nodes.
  for (const Task* task : tasks()) {
    if (!task->shape(task->shortest_length()).has_pairs()) all["tasks"].push_back(json_of(*task));
  }
  for (const Preset& preset : presets()) {
    ModelSpec spec;
    apply_preset(preset.name, spec);
    if (spec.reads_pairs()) continue;
    all["architectures"].push_back(
        {{"name", preset.name},
         {"description", preset.description},
         {"broken_by", bounds::scaling_broken_by(resolve(spec)).value_or("")}});
  }
  for (const LibraryProgram& program : library_programs()) {
    all["programs"].push_back({{"name", program.name}, {"description", program.description}});
  }
  for (const FieldInfo& field : config_fields()) {
    all["settings"].push_back({{"name", field.name},
                               {"section", field.section},
                               {"type", field.type},
                               {"default", field.default_value},
                               {"help", field.help},
                               {"accepts", field.accepts}});
  }
  return all.dump();
}

}  // namespace
}  // namespace posattn::playground

using namespace posattn;

int32_t play_catalogue() {
  return playground::answered([] {
    playground::answer().text = playground::catalogue();
    return 0;
  });
}

int32_t play_program_text(const char* name) {
  return playground::answered([&] {
    playground::answer().text = find_program(name).text;
    return 0;
  });
}
