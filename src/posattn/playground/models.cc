// Models that a page trains or loads.
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/predict.h"
#include "posattn/playground/answer.h"
#include "posattn/playground/letters.h"
#include "posattn/playground/playground.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/run.h"

namespace posattn::playground {
namespace {

// A run on its way, or the model of a file.
struct PlayedModel {
  std::optional<Run> run;
  std::optional<Model> loaded;

  Model model() const { return run ? run->model() : *loaded; }
};

Handles<PlayedModel>& models() {
  static Handles<PlayedModel> all("model");
  return all;
}

struct Setting {
  std::string_view key, value;
};

std::vector<Setting> read_settings(std::string_view text) {
  std::vector<Setting> settings;
  for (const std::string_view line : split_lines(text)) {
    if (line.empty()) continue;
    const size_t sign = line.find('=');
    if (sign == std::string_view::npos) {
      throw Error(ExitCode::usage, "the setting '" + std::string(line) + "'", "key=value");
    }
    settings.push_back({line.substr(0, sign), line.substr(sign + 1)});
  }
  return settings;
}

// What suits the task first, then what the page says.
RunConfig config_of(std::string_view text) {
  const std::vector<Setting> settings = read_settings(text);
  RunConfig config;
  for (const auto& [key, value] : settings) {
    if (key == "task") set_field(config, key, value, "in the settings");
  }
  for (const auto& [key, value] : find_task(config.task).settings()) set_field(config, key, value);
  for (const auto& [key, value] : settings) set_field(config, key, value, "in the settings");
  config.device = "cpu";
  validate(config);
  return config;
}

std::string describe(const PlayedModel& played) {
  const Model model = played.model();
  const ModelSpec& spec = model.spec;
  const Task* task = task_of(model.origin);
  return nlohmann::ordered_json{
      {"task", model.origin.task},
      {"architecture", preset_name(spec)},
      {"length", model.origin.length},
      {"real_nodes", spec.real_nodes},
      {"scratch_nodes", spec.scratch_nodes},
      {"data_columns", spec.data_columns},
      {"output_columns", spec.output_columns},
      {"vocabulary", spec.vocabulary},
      {"letters",
       task == nullptr ? std::vector<std::string>() : letters_of(*task, model.origin.length)},
      {"classes", spec.loss == Loss::cross_entropy},
      {"depth", spec.depth},
      {"heads", spec.heads},
      {"width", spec.width},
      {"parameters", model.parameters.layout().parameter_count()},
      {"steps_per_epoch", played.run ? played.run->steps_per_epoch() : 0},
      {"loss", spec.loss == Loss::cross_entropy ? "cross_entropy" : "mse"}}
      .dump();
}

int32_t keep(PlayedModel played) {
  answer().text = describe(played);
  return models().add(std::make_unique<PlayedModel>(std::move(played)));
}

int32_t advance(PlayedModel& played, double milliseconds) {
  if (!played.run) {
    throw Error(ExitCode::usage, "training a model from a file", "a model of play_train");
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  int32_t epochs = 0;
  while (!played.run->finished()) {
    const std::optional<EpochRecord> record = played.run->advance_epoch();
    if (!record) break;
    ++epochs;
    for (const double number : {static_cast<double>(record->epoch),
                                static_cast<double>(record->step), record->train_loss, record->lr})
      answer().numbers.push_back(number);
    if (std::chrono::duration<double, std::milli>(Clock::now() - start).count() >= milliseconds) {
      break;
    }
  }
  answer().text = played.run->divergence();
  return epochs;
}

void add_errors(const Model& model, std::string_view axis_values, int64_t samples, uint64_t seed) {
  const AxisValues tests = parse_axis_values(axis_values, "the axis");
  const Evaluation found = evaluate({.model = &model,
                                     .task = &task_of(model.origin, "the model"),
                                     .axis = &tests.axis,
                                     .values = tests.values,
                                     .samples = samples,
                                     .seed = seed});
  const Metric& loss = loss_among(found.rows);
  for (const double x : tests.values) {
    const MeasuredPlace place{.axis = tests.axis.name, .x = x, .metric = loss.name};
    answer().numbers.push_back(x);
    answer().numbers.push_back(
        find_value(found.rows, place).value_or(std::numeric_limits<double>::quiet_NaN()));
  }
}

// What numbers hold at nodes that are not read is nothing to anybody.
void blank_unread(const ModelSpec& spec, std::span<float> outputs) {
  const int first = spec.first_read(spec.real_nodes), count = spec.nodes_read(spec.real_nodes);
  const int nodes = static_cast<int>(outputs.size()) / spec.output_columns;
  for (int node = 0; node < nodes; ++node) {
    if (node >= first && node < first + count) continue;
    std::fill_n(outputs.begin() + int64_t{1} * node * spec.output_columns, spec.output_columns,
                std::numeric_limits<float>::quiet_NaN());
  }
}

// As many numbers as outputs, NaN where the task has none.
std::vector<float> truth_of(const Model& model, const Batch& sample, size_t outputs) {
  std::vector<float> truth = lettered_answer(model.origin, sample.tokens, sample.inputs);
  if (truth.empty()) truth = exact_answer(model, sample, outputs);
  truth.resize(outputs, std::numeric_limits<float>::quiet_NaN());
  blank_unread(model.spec, truth);
  return truth;
}

// The same sample whatever c, so that it changes smoothly with it.
int32_t add_sample(const Model& model, double c, int32_t index, uint64_t seed) {
  const Task& task = task_of(model.origin, "the model");
  if (index < 0 || !std::isfinite(c)) {
    throw Error(ExitCode::usage, "a sample of a negative number, or c that is none", "from 0 on");
  }
  if (task.shape(length_of(model)).has_pairs()) {
    throw Error(ExitCode::usage, "a sample with pairs of nodes as one row",
                "a task of numbers or tokens alone");
  }
  Dataset set = make_dataset({.task = &task,
                              .length = length_of(model),
                              .samples = 1,
                              .range = training_range(model.origin.range, model.origin.integers),
                              .seed = seed,
                              .purpose = Purpose::evaluation_data,
                              .sets_before = index});
  for (float& number : set.inputs) number = static_cast<float>(number * c);
  std::vector<double>& row = answer().numbers;
  const int columns = set.shape.data_columns;
  for (int node = 0; node < set.shape.real_nodes; ++node) {
    if (set.shape.vocabulary > 0) row.push_back(set.tokens[node]);
    row.insert(row.end(), set.inputs.begin() + int64_t{1} * node * columns,
               set.inputs.begin() + (int64_t{1} * node + 1) * columns);
  }
  const auto count = static_cast<int32_t>(row.size());
  if (task.loss() == Loss::cross_entropy) {
    row.insert(row.end(), set.labels.begin(), set.labels.end());
  } else {
    const Batch sample{.inputs = set.inputs,
                       .samples = 1,
                       .real_nodes = set.shape.real_nodes,
                       .tokens = set.tokens};
    const std::vector<float> truth = truth_of(model, sample, set.targets.size());
    row.insert(row.end(), truth.begin(), truth.end());
  }
  return count;
}

Table table_of(const Model& model, const double* row, int32_t count) {
  Table table{.rows = 1, .columns = count, .pattern = row_pattern(model.spec)};
  for (int32_t i = 0; i < count; ++i) {
    if (!std::isfinite(row[i])) {
      throw Error(ExitCode::data, "number " + std::to_string(i + 1) + " of the input",
                  "a finite number");
    }
    if (table.pattern.is_whole(i)) {
      if (std::abs(row[i]) > 1e9) throw Error(ExitCode::data, "a token of the input", "below 1e9");
      table.whole.push_back(static_cast<int32_t>(row[i]));
    } else {
      table.values.push_back(static_cast<float>(row[i]));
    }
  }
  return table;
}

void add_answer(const Model& model, const double* row, int32_t count) {
  const Table table = table_of(model, row, count);
  const Batch sample = samples_of(model, table, "the input");
  std::vector<float> outputs = predict(model, sample);
  std::vector<double>& numbers = answer().numbers;
  if (model.spec.loss == Loss::cross_entropy) {
    const std::vector<int32_t> classes = decided_classes(outputs, model.spec.output_columns);
    numbers.assign(classes.begin(), classes.end());
    numbers.resize(2 * classes.size(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  const std::vector<float> truth = truth_of(model, sample, outputs.size());
  blank_unread(model.spec, outputs);
  numbers.assign(outputs.begin(), outputs.end());
  numbers.insert(numbers.end(), truth.begin(), truth.end());
}

void add_attention(const Model& model, const double* row, int32_t count) {
  const Table table = table_of(model, row, count);
  Inference inference(model);
  const std::vector<float> attention = inference.attention(samples_of(model, table, "the input"));
  answer().numbers.assign(attention.begin(), attention.end());
}

}  // namespace
}  // namespace posattn::playground

using namespace posattn;
using namespace posattn::playground;

int32_t play_train(const char* settings) {
  return answered([&] {
    PlayedModel played;
    played.run.emplace(config_of(settings), 1);
    return keep(std::move(played));
  });
}

int32_t play_load(const uint8_t* bytes, int32_t size, const char* name) {
  return answered([&] {
    PlayedModel played;
    played.loaded = model_from_bytes(
        std::as_bytes(std::span(bytes, static_cast<size_t>(std::max(size, 0)))), name);
    return keep(std::move(played));
  });
}

int32_t play_save(int32_t model) {
  return answered([&] {
    const std::vector<std::byte> bytes = model_bytes(models().at(model).model());
    answer().text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return 0;
  });
}

int32_t play_describe(int32_t model) {
  return answered([&] {
    answer().text = describe(models().at(model));
    return 0;
  });
}

int32_t play_advance(int32_t model, double milliseconds) {
  return answered([&] { return advance(models().at(model), milliseconds); });
}

int32_t play_errors(int32_t model, const char* axis_values, int32_t samples, int32_t seed) {
  return answered([&] {
    add_errors(models().at(model).model(), axis_values, samples, static_cast<uint64_t>(seed));
    return static_cast<int32_t>(answer().numbers.size() / 2);
  });
}

int32_t play_sample(int32_t model, double c, int32_t index, int32_t seed) {
  return answered([&] {
    return add_sample(models().at(model).model(), c, index, static_cast<uint64_t>(seed));
  });
}

int32_t play_answer(int32_t model, const double* row, int32_t count) {
  return answered([&] {
    add_answer(models().at(model).model(), row, count);
    return 0;
  });
}

int32_t play_attention(int32_t model, const double* row, int32_t count) {
  return answered([&] {
    add_attention(models().at(model).model(), row, count);
    return 0;
  });
}

void play_free_model(int32_t model) { models().remove(model); }
