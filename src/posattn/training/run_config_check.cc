// What a run's settings mean together.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/kernels/cuda/device_info.h"
#include "posattn/model/plan.h"
#include "posattn/tasks/task.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

Error impossible(std::string what, std::string expected, std::string hint = {}) {
  return Error(ExitCode::configuration, std::move(what), std::move(expected), std::move(hint));
}

// Fields set in code rather than through set_field get the same checks.
void check_fields(const RunConfig& config) {
  RunConfig copy;
  for (const FieldInfo& field : config_fields()) {
    set_field(copy, field.name, get_field(config, field.name));
  }
}

void check_data(const RunConfig& config, const Task& task) {
  if (config.length < task.shortest_length()) {
    throw impossible(fmt::format("length = {}", config.length),
                     fmt::format("at least {} for {}", task.shortest_length(), task.name()));
  }
  if (config.variable_length && !task.supports_variable_length()) {
    throw impossible(fmt::format("variable-length with task {}", task.name()),
                     "a task whose samples of several lengths can share a model",
                     "leave variable-length out");
  }
  const int64_t shortest = config.shortest_length;
  if (shortest > 0 && !config.variable_length) {
    throw impossible(fmt::format("shortest-length = {} with samples of one length", shortest),
                     "with variable-length");
  }
  if (shortest > 0 && (shortest < task.shortest_length() || shortest > config.length)) {
    throw impossible(fmt::format("shortest-length = {}", shortest),
                     fmt::format("{} to {}", task.shortest_length(), config.length));
  }
  if (config.batch > config.samples) {
    throw impossible(fmt::format("batch = {} with samples = {}", config.batch, config.samples),
                     "a batch no larger than the training data",
                     fmt::format("lower batch to {} or less", config.samples));
  }
  if (config.integers && config.range < 1) {
    throw impossible(fmt::format("range = {} with integers", config.range), "at least 1");
  }
  const int64_t smallest_set = std::min(config.validation_samples, config.test_samples);
  const int64_t lengths = config.length - std::max<int64_t>(shortest, 1) + 1;
  if (config.variable_length && std::min(config.samples, smallest_set) < lengths) {
    throw impossible(fmt::format("variable-length with {} samples in a set",
                                 std::min(config.samples, smallest_set)),
                     fmt::format("at least one sample for each of {} lengths", lengths));
  }
  constexpr double most_numbers = 1e10;
  const TaskShape shape = task.shape(static_cast<int>(config.length));
  // A class is one number, however many there are.
  const int64_t answers =
      task.loss() == Loss::cross_entropy ? shape.real_nodes : shape.target_count();
  const double numbers = static_cast<double>(std::max(
                             {config.samples, config.validation_samples, config.test_samples})) *
                         static_cast<double>(shape.input_count() + answers +
                                             shape.pair_number_count() + shape.pair_class_count());
  if (config.fresh && static_cast<double>(config.samples) * config.epochs > 0x1p32) {
    throw impossible(
        fmt::format("fresh with {} samples in {} epochs", config.samples, config.epochs),
        "at most 2^32 samples in all", "lower samples or epochs");
  }
  if (numbers > most_numbers) {
    throw impossible(fmt::format("data of {:.3g} numbers", numbers),
                     fmt::format("at most {:.0e}", most_numbers), "lower samples or length");
  }
}

void check_test_axis(const RunConfig& config) {
  for (const AxisValues& tests : parse_several_axes(config.test_axis, "test-axis")) {
    for (const EvaluationAxis* known : evaluation_axes()) {
      if (known->name != tests.axis.name) continue;
      throw impossible(fmt::format("test-axis = {}", config.test_axis), "an axis of the task's own",
                       "use " + known->setting());
    }
    check_states_axis(task_of(config), tests.axis.name);
  }
}

void check_tests(const RunConfig& config) {
  try {
    training_range(config.range, config.integers);
    for (const double scale : parse_scales(config.test_scales, "test-scales")) {
      if (states_axis(task_of(config), "c")) test_range(config.range, scale, config.integers);
    }
    check_test_axis(config);
    if (!config.test_mixed_scales.empty()) {
      for (const double x : parse_numbers(config.test_mixed_scales, "test-mixed-scales")) {
        mixed_range(config.range, x, config.integers);
      }
      check_mixed_scales(task_of(config), static_cast<int>(config.length));
    }
    if (config.test_lengths.empty()) return;
    const ModelSpec spec = model_spec(config);
    for (const int length : parse_lengths(config.test_lengths, "test-lengths")) {
      check_test_length(spec, task_of(config),
                        {static_cast<int>(config.length), config.variable_length}, length);
    }
  } catch (const Error& error) {
    throw error.as(ExitCode::configuration);
  }
}

void check_clip(const RunConfig& config) {
  if (config.clip_relative == 0) return;
  if (config.clip > 0) {
    throw impossible(
        fmt::format("clip = {} with clip-relative = {}", config.clip, config.clip_relative),
        "one of the two");
  }
  if (!(config.clip_relative >
        1)) {  // earlier norms were clipped too, so that the limit only falls
    throw impossible(fmt::format("clip-relative = {}", config.clip_relative), "0, or above 1");
  }
}

void check_warmup(const RunConfig& config) {
  if (config.schedule != "warmup-linear") {
    if (config.warmup_steps == 0) return;
    throw impossible(
        fmt::format("warmup-steps = {} with schedule {}", config.warmup_steps, config.schedule),
        "schedule warmup-linear", "leave warmup-steps out, or set schedule to warmup-linear");
  }
  // A lower bound where lengths vary: each length may end in a smaller batch.
  const double steps =
      std::ceil(static_cast<double>(config.samples) / config.batch) * config.epochs;
  if (config.warmup_steps > steps) {
    throw impossible(fmt::format("warmup-steps = {}", config.warmup_steps),
                     fmt::format("at most {}, the steps of {} epochs", steps, config.epochs));
  }
}

// take_start checks the file itself: a run that continues from a checkpoint needs none.
void check_start(const RunConfig& config) {
  if (config.from.empty()) {
    if (!config.from_hash.empty()) {
      throw impossible("from-hash without from", "the model file whose hash it is");
    }
    if (config.from_noise > 0) {
      throw impossible(fmt::format("from-noise = {} without from", config.from_noise),
                       "a model file to start from", "add --from MODEL, or leave from-noise out");
    }
    return;
  }
  if (!is_file_hash(config.from_hash)) {
    throw impossible(
        fmt::format("from = '{}' with from-hash = '{}'", config.from, config.from_hash),
        "the file's hash, 16 hexadecimal digits", "posattn train --from FILE --dry-run prints it");
  }
}

void check_hints(const RunConfig& config) {
  if (config.hints.empty()) {
    if (!config.hints_hash.empty()) {
      throw impossible("hints-hash without hints", "the program whose text has that hash");
    }
    if (config.hint_weight != 1) {
      throw impossible(fmt::format("hint-weight = {} without hints", config.hint_weight),
                       "the program that gives hints", "add --hints PROGRAM, as --hints task");
    }
    return;
  }
  if (!is_file_hash(config.hints_hash)) {
    throw impossible(
        fmt::format("hints = '{}' with hints-hash = '{}'", config.hints, config.hints_hash),
        "the hash of its text, 16 hexadecimal digits",
        "posattn train --hints PROGRAM --dry-run prints it");
  }
  const Task& task = task_of(config);
  const auto refuse_with = [&](const std::string& what, const char* expected) {
    throw impossible(fmt::format("hints = '{}' with {}", config.hints, what), expected);
  };
  if (task.loss() != Loss::squared_error || task.shape(config.length).vocabulary > 0) {
    refuse_with("task " + config.task, "a task of numbers alone");
  }
  if (config.variable_length) refuse_with("variable-length", "samples of one length");
  if (config.loops != "1") {
    refuse_with("loops = " + config.loops, "loops = 1: each layer has labels of its own");
  }
  if (model_spec(config).two_streams()) {
    refuse_with("two streams", "a model whose layers have one state");
  }
  if (model_spec(config).spikes()) {
    refuse_with("a network that spikes",
                "a model whose layers have one state, not one by time step");
  }
  if (config.device == "cuda") {
    refuse_with("device = cuda", "device = cpu: the block executor there has the states");
  }
  training_spec(config);  // looks at the program
}

// Asked once: the answer takes a while, and does not change.
const DeviceInfo& gpu() {
  static const DeviceInfo info = device_info();
  return info;
}

void check_device(const RunConfig& config) {
  if (config.device == "cuda" && !gpu().usable) {
    throw Error(ExitCode::device, fmt::format("device 'cuda': {}", gpu().problem), "",
                gpu().hint + (gpu().hint.empty() ? "" : "; or ") + "use --device cpu");
  }
  if (config.precision == "tf32" && device_used(config) == "cpu") {
    throw impossible(fmt::format("precision = {} on the CPU", config.precision), "fp32",
                     "leave precision out, or use --device cuda");
  }
}

}  // namespace

void validate(const RunConfig& config) {
  check_fields(config);
  check_data(config, task_of(config));
  check_tests(config);
  plan_of(model_spec(config));  // throws where sizes or blocks do not fit together
  check_clip(config);
  check_warmup(config);
  check_start(config);
  check_hints(config);
  check_device(config);
}

const Task& task_of(const RunConfig& config) { return find_task(config.task, config.task_set); }

std::string device_used(const RunConfig& config) {
  if (config.device != "auto") return config.device;
  if (!config.hints.empty()) return "cpu";
  return gpu().usable ? "cuda" : "cpu";
}

std::string precision_used(const RunConfig& config) {
  if (config.precision != "auto") return config.precision;
  const bool of_numbers = task_of(config).loss() == Loss::squared_error;
  return device_used(config) == "cuda" && of_numbers && config.from.empty() ? "tf32" : "fp32";
}

ModelSpec model_spec(const RunConfig& config) {
  const int length = static_cast<int>(config.length);
  const Task& task = task_of(config);
  const TaskShape shape = task.shape(length);
  ModelSpec spec;
  static_cast<ModelSettings&>(spec) = config;
  spec.real_nodes = shape.real_nodes;
  spec.data_columns = shape.data_columns;
  spec.output_columns = shape.output_columns;
  spec.vocabulary = shape.vocabulary;
  spec.read_nodes = shape.read_nodes;
  spec.pair_columns = shape.pair_columns;
  spec.pair_classes = shape.pair_classes;
  spec.tokens_and_values = shape.tokens_and_values;
  spec.loss = task.loss();
  if (spec.depth == 0) spec.depth = default_depth(length);
  // Numbers are no row of the table.
  spec.tied_output = spec.tied_output || (spec.fixed_tokens && spec.loss == Loss::cross_entropy);
  apply_preset(config.architecture, spec);
  // An encoding that changes nothing would look like a result.
  if (spec.encoding != Encoding::automatic && !spec.uses_positions()) {
    throw Error(ExitCode::configuration,
                fmt::format("encoding '{}' for architecture '{}', which has no positions",
                            get_field(config, "encoding"), config.architecture),
                "an architecture that reads positions", "leave --encoding out");
  }
  return resolve(spec);
}

Path network_path(const RunConfig& config) {
  if (config.path == "plain") return Path::plain;
  return config.path == "folded" ? Path::folded : Path::automatic;
}

}  // namespace posattn
