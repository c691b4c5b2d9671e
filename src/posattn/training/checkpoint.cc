#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/model/file/safetensors.h"
#include "posattn/results/manifest.h"
#include "posattn/training/recording.h"

namespace posattn {
namespace {

constexpr const char* first_moment = "optimiser.first.";
constexpr const char* second_moment = "optimiser.second.";
constexpr const char* format_version = "1";
constexpr uint64_t largest_file = uint64_t{1} << 37;

Error bad_checkpoint(const std::filesystem::path& path, const std::string& why) {
  return Error(ExitCode::data, fmt::format("{} is no usable checkpoint: {}", path.string(), why),
               "", "start the run again in another folder");
}

using Metadata = std::map<std::string, std::string>;

// Shortest text that reads back as the same number.
std::string exact(double value) { return fmt::format("{}", value); }

class MetadataReader {
 public:
  MetadataReader(const Metadata& metadata, const std::filesystem::path& path)
      : metadata_(metadata), path_(path) {}

  bool has(const std::string& key) const { return metadata_.contains(key); }
  const std::string& text(const std::string& key) const {
    const auto found = metadata_.find(key);
    if (found == metadata_.end()) throw bad_checkpoint(path_, "it has no '" + key + "'");
    return found->second;
  }
  template <class T>
  T number(const std::string& key) const {
    const std::string& value = text(key);
    T result{};
    if (!parse_exactly(value, result)) {
      throw bad_checkpoint(path_, fmt::format("{} is '{}'", key, value));
    }
    return result;
  }
  int64_t count(const std::string& key) const {
    const auto value = number<int64_t>(key);
    if (value < 0) throw bad_checkpoint(path_, fmt::format("{} is {}", key, value));
    return value;
  }
  std::optional<double> optional_number(const std::string& key) const {
    return has(key) ? std::optional(number<double>(key)) : std::nullopt;
  }

 private:
  const Metadata& metadata_;
  const std::filesystem::path& path_;
};

void add_tensors(const std::string& prefix, const Parameters<float>& values,
                 std::vector<TensorView>& views) {
  for (const TensorInfo& tensor : values.layout().tensors()) {
    views.push_back(make_view<float>(prefix + tensor.name, tensor.shape, values.slice(tensor)));
  }
}

void read_tensors(const std::string& prefix, const SafetensorsFile& file,
                  const std::filesystem::path& path, Parameters<float>& values) {
  for (const TensorInfo& tensor : values.layout().tensors()) {
    const TensorView* view = file.find(prefix + tensor.name);
    if (view == nullptr || view->type != DataType::f32 || view->shape != tensor.shape) {
      throw bad_checkpoint(
          path, fmt::format("tensor '{}{}' is missing or of another shape", prefix, tensor.name));
    }
    std::ranges::copy(view->values<float>(), values.slice(tensor).begin());
  }
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const RunConfig& config,
                     const RunState& state) {
  write_file(path, checkpoint_bytes(config, state));
}

RunState load_checkpoint(const std::filesystem::path& path, const RunConfig& config) {
  return state_from_checkpoint(read_file(path, largest_file), config, path);
}

std::vector<std::byte> checkpoint_bytes(const RunConfig& config, const RunState& state) {
  Metadata metadata = {
      {"posattn.checkpoint", format_version},
      {"configuration", to_json(config)},
      {"epoch", std::to_string(state.epoch)},
      {"step", std::to_string(state.optimiser.step)},
      {"seconds", exact(state.seconds)},
      {"schedule.rate", exact(state.schedule.rate)},
      {"schedule.best", exact(state.schedule.best)},
      {"schedule.bad_epochs", std::to_string(state.schedule.bad_epochs)},
  };
  if (state.validation_loss) metadata["validation_loss"] = exact(*state.validation_loss);
  if (state.best_validation_loss) {
    metadata["best_validation_loss"] = exact(*state.best_validation_loss);
  }
  std::vector<TensorView> views;
  add_tensors("", state.parameters, views);
  add_tensors(first_moment, state.optimiser.first_moment, views);
  add_tensors(second_moment, state.optimiser.second_moment, views);
  return write_safetensors(metadata, views);
}

RunState state_from_checkpoint(std::span<const std::byte> bytes, const RunConfig& config,
                               const std::filesystem::path& path) {
  const SafetensorsFile file = parse_safetensors(bytes, path.string());
  const MetadataReader reader(file.metadata, path);
  if (reader.text("posattn.checkpoint") != format_version) {
    throw bad_checkpoint(path, "its version is " + reader.text("posattn.checkpoint"));
  }
  std::vector<std::string> may_differ = result_neutral_keys();
  if (can_be_extended(config)) may_differ.emplace_back("epochs");
  std::string difference;
  try {
    difference = settings_difference(reader.text("configuration"), to_json(config), may_differ);
  } catch (const Error& error) {
    throw bad_checkpoint(path, error.problem());
  }
  if (!difference.empty()) {
    throw Error(ExitCode::configuration,
                fmt::format("checkpoint {} is of another configuration", path.string()),
                "the same settings: " + difference, "choose another --out for the new settings");
  }
  RunState state(std::make_shared<const ParameterLayout>(training_spec(config)));
  if (file.tensors.size() != 3 * state.parameters.layout().tensors().size()) {
    throw bad_checkpoint(path, "it holds tensors of another model");
  }
  state.epoch = reader.count("epoch");
  state.optimiser.step = reader.count("step");
  state.seconds = reader.number<double>("seconds");
  state.schedule.rate = reader.number<double>("schedule.rate");
  state.schedule.best = reader.number<double>("schedule.best");
  state.schedule.bad_epochs = reader.count("schedule.bad_epochs");
  state.validation_loss = reader.optional_number("validation_loss");
  state.best_validation_loss = reader.optional_number("best_validation_loss");
  read_tensors("", file, path, state.parameters);
  read_tensors(first_moment, file, path, state.optimiser.first_moment);
  read_tensors(second_moment, file, path, state.optimiser.second_moment);
  return state;
}

}  // namespace posattn
