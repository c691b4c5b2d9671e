// Every setting of one training run. visit_config (run_config_fields.h) names each field once, and
// those of the model come from model/spec/spec_fields.h; the defaults, TOML, JSON, the command
// line, its help and the documentation all come from these lists.
#pragma once

#include <filesystem>
#include <set>

#include "posattn/base/error.h"
#include "posattn/model/network.h"
#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

class Task;

// The settings of the model, with depth 0 for floor(log2 length) + 1, and those of the run.
struct RunConfig : ModelSettings {
  RunConfig() {
    depth = 0;
    encoding = Encoding::automatic;
  }

  std::string task = "cumulative-sum";
  std::string task_set;                     // since 0.3.0
  std::string architecture = "positional";  // a preset; comma lists are the command line's affair
  int64_t seed = 0;

  int64_t length = 8;
  bool variable_length = false;
  int64_t shortest_length = 0;  // of variable lengths; 0: the task's. Since 0.3.0

  // Data. A seed of -1 is the run's own.
  int64_t samples = 30000, validation_samples = 1000, test_samples = 1000;
  double range = 2;
  bool integers = false;
  int64_t data_seed = -1, weight_seed = -1;
  bool fresh = false;  // new training samples every epoch. Since 0.2.0

  // Weights to start from, instead of random ones. Since 0.2.0.
  std::string from, from_hash;
  double from_noise = 0;
  std::string initial = "paper";  // since 0.2.0

  // Labels of the states between layers: the words of a parallel program (training/hints.h). Since
  // 0.3.0.
  std::string hints, hints_hash;
  double hint_weight = 1;

  // Training
  int64_t epochs = 2001, batch = 1000;
  double lr = 5e-4;
  std::string optimiser = "adam";
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  std::string decay = "all";  // since 0.2.0
  double clip = 0;            // 0: off
  double clip_relative = 0;   // the same. Since 0.3.0
  std::string schedule = "plateau";
  int64_t plateau_patience = 50;
  double plateau_factor = 0.9, plateau_threshold = 1e-4, plateau_floor = 1e-6;
  double plateau_epsilon = 1e-8;
  int64_t warmup_steps = 0;

  // Evaluation, in epochs; 0: only at the end
  int64_t validate_every = 10, test_every = 100;
  std::string test_scales = "1..10";
  std::string test_lengths, test_axis;        // since 0.2.0
  std::string test_loops, test_mixed_scales;  // since 0.3.0

  double checkpoint_every = 30;  // seconds; 0: after every epoch
  std::string path = "auto";
  std::string device = "auto";
  std::string precision = "auto";  // of products on the GPU

  bool operator==(const RunConfig&) const = default;

  uint64_t data_seed_used() const {
    return static_cast<uint64_t>(data_seed < 0 ? seed : data_seed);
  }
  uint64_t weight_seed_used() const {
    return static_cast<uint64_t>(weight_seed < 0 ? seed : weight_seed);
  }
};

// One field as --help and the documentation show it.
struct FieldInfo {
  std::string name;           // "batch": the TOML key, and --batch
  std::string section;        // "training"
  std::string type;           // "integer", "number", "text" or "flag"
  std::string default_value;  // as set_field reads it
  std::string help;
  std::string accepts;  // "at least 1", "one of: adam, adamw" or ""
  std::vector<std::string> choices;
};
const std::vector<FieldInfo>& config_fields();

// Sets one field from text, for --set key=value and the command line's own options.
// `where` ends the message of an unknown key or a bad value ("in --set"). Throws
// Error(configuration), but `unreadable` for what is no value of the field's type at all: on a
// command line that is usage.
void set_field(RunConfig& config, std::string_view key, std::string_view value,
               std::string_view where = {}, ExitCode unreadable = ExitCode::configuration);
std::string get_field(const RunConfig& config, std::string_view key);

// "positional,standard": names separated by commas, each once. Throws Error(usage).
std::vector<std::string> split_architectures(std::string_view list);

// A TOML file of flat keys: those of RunConfig, and `seeds` ("0..9", or one integer), which the
// command line spreads over runs, as it does with an `architecture` of several (a list, or one text
// with commas). What is wrong with a value is an Error(configuration) with file and line. Keys that
// are absent keep their value in `defaults`; in a file that names all settings of 0.1.0, which the
// program wrote, newer ones have the default that they came with.
struct ConfigFile {
  RunConfig config;
  std::optional<std::string> seeds;  // as parse_seeds reads it
  std::set<std::string> named = {};  // the keys that stand in the file; never written
  bool complete = false;             // it names all settings of 0.1.0, so that nothing is left open
};
ConfigFile read_config_file(const std::filesystem::path& path, const RunConfig& defaults = {});
ConfigFile read_config_text(std::string_view toml, const std::string& name,
                            const RunConfig& defaults = {});

// Every field of 0.1.0, and newer ones unless at the default they came with: with its section as a
// comment, and as one flat object.
std::string to_toml(const RunConfig& config);
std::string to_json(const RunConfig& config);
std::string to_toml(const ConfigFile& file);  // `seeds`, if any, in the place of `seed`
std::string to_json(const ConfigFile& file);

// Throws Error(configuration) where the settings cannot work together (batch larger than the data,
// a task that has no variable length, ...), unknown_name for task and architecture, and
// Error(device) for a device that cannot be used.
void validate(const RunConfig& config);

// The task with the parameters of task-set; throws as find_task.
const Task& task_of(const RunConfig& config);

// "cpu" or "cuda": what `device` means on this machine ("auto": cuda where it can be used).
std::string device_used(const RunConfig& config);
// "fp32" or "tf32": what `precision` means there ("auto": tf32 on the GPU for models of numbers
// that start from random weights, which train to the same figures; else fp32).
std::string precision_used(const RunConfig& config);

// The model the run trains (resolved); validate first.
ModelSpec model_spec(const RunConfig& config);
// The same with the maps of its hints (training/hints.h): what a step computes.
ModelSpec training_spec(const RunConfig& config);
Path network_path(const RunConfig& config);

// Keys that change how a run is carried out, never its result; a resumed run may change them.
const std::vector<std::string>& result_neutral_keys();

// Whether a run of fewer epochs can go on to config.epochs as if it had been meant to: not where
// the learning rates were chosen for a number of steps.
bool can_be_extended(const RunConfig& config);

// Training that starts from the weights of a model file (`from`), a compiled program's first of
// all, instead of random ones. What decides the result is what the file holds, so its hash
// (`from-hash`) is a setting and part of the run's key; where it lies is not. A run that goes on
// from a checkpoint does not read the file again. `from` may also be a folder with a GPT-2 as it is
// distributed (config.json, model.safetensors, vocab.json, merges.txt), for tasks in its tokens.

// Sets from-hash and, but for the settings in `named`, what the file says of its model: task,
// length, architecture and sizes. Throws Error(data) for a file that cannot be read and
// Error(configuration) for one that cannot be trained or has another hash than from-hash.
// Where from-hash is there but the file is not, it leaves everything as it is.
void take_start(RunConfig& config, const std::set<std::string>& named);

// The weights that a run of these (valid) settings starts from: the file's, each tensor with
// Gaussian noise of from-noise times its root mean square, drawn from the weight seed. A tensor of
// zeros stays one. Throws as take_start, and Error(configuration), naming the fields, where the
// file's model is not that of the settings.
Parameters<float> start_parameters(const RunConfig& config);

// Of settings with hints: the program's name where they say `task`, hints-hash, and where depth is
// 0 the program's rounds, unless a file says what the model is. Throws as find_program, and
// Error(configuration) for another text than that of hints-hash.
void take_hints(RunConfig& config);

bool is_file_hash(std::string_view text);  // 16 hexadecimal digits

}  // namespace posattn
