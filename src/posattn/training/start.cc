#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/hash.h"
#include "posattn/base/random.h"
#include "posattn/model/file/gpt2_weights.h"
#include "posattn/model/file/model_file.h"
#include "posattn/results/manifest.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

constexpr uint32_t noise_variant = 1;  // of initial values; random ones are drawn from variant 0

struct StartFile {
  Model model;
  std::string hash;
};

void check_hash(const RunConfig& config, const std::string& hash) {
  if (config.from_hash.empty() || config.from_hash == hash) return;
  throw Error(ExitCode::configuration,
              fmt::format("from = '{}' has the hash {}", config.from, hash),
              fmt::format("from-hash = {}: the file is another than it was", config.from_hash));
}

std::string hash_of_gpt2(const std::filesystem::path& folder) {
  uint64_t hash = hash_of("");
  for (const char* name : {"config.json", "vocab.json", "merges.txt", "model.safetensors"}) {
    const std::vector<std::byte> bytes = read_model_file(folder / name);
    hash = hash_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, hash);
  }
  return fmt::format("{:016x}", hash);
}

// The model of a GPT-2's folder is as long as the texts of the task.
StartFile read_gpt2_start(const RunConfig& config) {
  const std::filesystem::path folder = config.from;
  offer_gpt2_tasks(folder);
  const Task& task = task_of(config);
  const Gpt2Config sizes = read_gpt2_config(folder);
  const WrittenAnswers* written = task.written_answers();
  if (written == nullptr || written->tokeniser().vocabulary() == nullptr) {
    throw Error(ExitCode::configuration,
                fmt::format("task {} from a GPT-2 ('{}')", task.name(), config.from),
                "a task in GPT-2's tokens", "--task mixed-min-gpt2");
  }
  if (written->tokeniser().size() != sizes.vocabulary) {
    throw Error(
        ExitCode::data,
        fmt::format("'{}': vocab.json has {} tokens", config.from, written->tokeniser().size()),
        fmt::format("{}, as config.json says", sizes.vocabulary),
        "the files of the folder must be of one model");
  }
  const auto length = static_cast<int>(config.length);
  const ModelSpec spec = gpt2_spec(sizes, task.shape(length).real_nodes);
  return {.model = {spec,
                    read_gpt2_parameters(folder, spec),
                    {.task = config.task, .length = length, .range = config.range, .notes = {}}},
          .hash = hash_of_gpt2(folder)};
}

StartFile read_start(const RunConfig& config) {
  if (is_gpt2_folder(config.from)) {
    StartFile file = read_gpt2_start(config);
    check_hash(config, file.hash);
    return file;
  }
  const std::vector<std::byte> bytes = read_model_file(config.from);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  StartFile file{model_from_bytes(bytes, config.from), fmt::format("{:016x}", hash_of(text))};
  check_hash(config, file.hash);
  if (const Task* task = file.model.origin.own_task.get()) {
    offer_gpt2_tasks({file.model.origin.own_task, &task->written_answers()->tokeniser()});
  }
  if (file.model.spec.routed()) {
    throw Error(ExitCode::configuration,
                fmt::format("from = '{}': its attention is a table of routes", config.from),
                "queries and keys, which can be trained",
                "posattn compile PROGRAM --dense --sharpness 15");
  }
  return file;
}

std::string with_hyphens(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

void check_spec(const RunConfig& config, const ModelSpec& of_file) {
  const std::string difference =
      settings_difference(to_json(of_file), to_json(model_spec(config)), {});
  if (difference.empty()) return;
  throw Error(ExitCode::configuration,
              fmt::format("the model in '{}' is not that of the settings: {}", config.from,
                          with_hyphens(difference)),
              "settings that agree with the file", "leave them out: the file says what it is");
}

void add_noise(const RunConfig& config, Parameters<float>& parameters) {
  uint32_t index = 0;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    RandomStream random(config.weight_seed_used(), Purpose::initial_values, noise_variant, index++);
    if (!tensor.trained) continue;
    const std::span<float> values = parameters.slice(tensor);
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    const double scale =
        config.from_noise * std::sqrt(squares / static_cast<double>(values.size()));
    for (float& value : values) value = static_cast<float>(value + scale * random.normal());
  }
}

}  // namespace

void take_start(RunConfig& config, const std::set<std::string>& named) {
  if (!config.from_hash.empty() && !path_exists(config.from)) return;
  const auto [model, hash] = read_start(config);
  config.from_hash = hash;
  const auto take = [&](const char* key, const auto& value) {
    if (!named.contains(key)) set_field(config, key, fmt::format("{}", value));
  };
  const ModelSpec& spec = model.spec;
  const ModelOrigin& origin = model.origin;
  if (!origin.task.empty()) {
    take("task", task_named_in(config.from, origin.task).name());
    take("task-set", origin.task_set);
  } else if (!named.contains("task")) {
    throw Error(ExitCode::configuration, fmt::format("from = '{}' names no task", config.from),
                "--task", "`posattn tasks` lists them");
  }
  take("length", origin.length);
  // A model that no preset describes differs from any in a field that check_spec names.
  if (preset_name(spec) != "custom") take("architecture", preset_name(spec));
  RunConfig filed = config;
  static_cast<ModelSettings&>(filed) = spec;
  filed.tied_output = spec.tied_output && !spec.fixed_tokens;
  // Where a default means the same it stays, so that runs of one model have one key.
  if (spec.depth == default_depth(origin.length)) filed.depth = config.depth;
  if (!spec.uses_positions() || spec.encoding == Encoding::one_hot) {
    filed.encoding = config.encoding;
  }
  filed.encoding_size = config.encoding_size;
  for (const FieldInfo& field : config_fields()) {
    if (field.section == "model") take(field.name.c_str(), get_field(filed, field.name));
  }
  if (spec.encoding_size != model_spec(config).encoding_size) {
    take("encoding-size", spec.encoding_size);
  }
  check_spec(config, spec);
}

Parameters<float> start_parameters(const RunConfig& config) {
  StartFile file = read_start(config);
  check_spec(config, file.model.spec);
  if (config.from_noise > 0) add_noise(config, file.model.parameters);
  return std::move(file.model.parameters);
}

bool is_file_hash(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace posattn
