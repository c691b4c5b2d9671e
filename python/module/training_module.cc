// Fleets of runs, and what they leave in their folders.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "arrays.h"
#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/results/manifest.h"
#include "posattn/task.h"
#include "posattn/train.h"
#include "python_task.h"
#include "rows.h"
#include "settings.h"
#include "stop_flag.h"
#include "task_guard.h"
#include "unlocked.h"

namespace posattn::python {

RunConfig config_of(const GivenSettings& given) {
  RunConfig config;
  std::set<std::string> named;
  for (const auto& [key, value] : given) {
    set_field(config, key, value);
    named.insert(key);
  }
  if (!config.from.empty()) take_start(config, named);
  for (const auto& [key, value] : task_of(config).settings()) {
    if (!named.contains(key)) set_field(config, key, value);
  }
  take_hints(config);
  return config;
}

namespace {

constexpr uint64_t most_text = uint64_t{1} << 32;  // bytes of a file to read

py::dict progress_of(const RunProgress& progress) {
  py::dict facts;
  facts["run"] = progress.run;
  facts["architecture"] = progress.architecture;
  facts["seed"] = progress.seed;
  facts["epoch"] = progress.epoch;
  facts["epochs"] = progress.epochs;
  facts["step"] = progress.step;
  facts["steps"] = progress.steps;
  facts["train_loss"] = progress.train_loss;
  facts["validation_loss"] = progress.validation_loss;
  facts["steps_per_second"] = progress.steps_per_second;
  facts["seconds_left"] = progress.seconds_left;
  facts["status"] = std::string(to_string(progress.status));
  return facts;
}

py::dict outcome_of(const RunOutcome& outcome) {
  py::dict facts;
  facts["architecture"] = outcome.config.architecture;
  facts["seed"] = outcome.config.seed;
  facts["folder"] = outcome.folder;
  facts["status"] = std::string(to_string(outcome.status));
  facts["message"] = text_of(outcome.message);
  facts["epoch"] = outcome.epoch;
  return facts;
}

// `report` is called by the threads that train, one at a time, with a kind and what happened.
py::list train(const std::vector<GivenSettings>& runs, const std::filesystem::path& out,
               bool resume, int threads, const std::shared_ptr<StopFlag>& stop,
               const py::function& report) {
  std::vector<RunConfig> configs;
  configs.reserve(runs.size());
  for (const GivenSettings& run : runs) {
    configs.push_back(config_of(run));
    validate(configs.back());
  }
  FleetOptions options;
  options.out = out;
  options.resume = resume;
  options.threads = checked_threads(threads);
  options.command_line = "posattn.train";
  options.stop = &stop->is_set;
  options.progress = [&report](const RunProgress& progress) {
    const py::gil_scoped_acquire locked;
    report("progress", progress_of(progress));
  };
  options.notice = [&report](const std::string& line) {
    const py::gil_scoped_acquire locked;
    report("notice", text_of(line));
  };
  PythonTask::take_interrupt();  // none of this training
  std::vector<RunOutcome> outcomes;
  {
    const TasksInUse in_use;
    const Unlocked unlocked;
    outcomes = train_fleet(configs, options);
  }
  if (const auto interrupt = PythonTask::take_interrupt()) throw *interrupt;
  py::list facts;
  for (const RunOutcome& outcome : outcomes) facts.append(outcome_of(outcome));
  return facts;
}

// The epochs of metrics.jsonl as columns, and all tests as rows with their epoch.
py::dict history_of(const std::filesystem::path& metrics) {
  std::vector<int64_t> epochs, steps, test_epochs;
  std::vector<double> losses, validation, rates, seconds;
  std::vector<Measurement> tests;
  const std::string text =
      std::filesystem::exists(metrics) ? read_text_file(metrics, most_text) : "";
  int64_t line_number = 0;
  for (size_t first = 0; first < text.size();) {
    const size_t end = text.find('\n', first);
    if (end == std::string::npos) break;  // a line that was not finished
    const EpochRecord record =
        epoch_record_from_json(std::string_view(text).substr(first, end - first),
                               metrics.string() + ":" + std::to_string(++line_number));
    first = end + 1;
    epochs.push_back(record.epoch);
    steps.push_back(record.step);
    losses.push_back(record.train_loss);
    validation.push_back(record.validation_loss.value_or(std::numeric_limits<double>::quiet_NaN()));
    rates.push_back(record.lr);
    seconds.push_back(record.seconds);
    tests.insert(tests.end(), record.tests.begin(), record.tests.end());
    test_epochs.insert(test_epochs.end(), record.tests.size(), record.epoch);
  }
  const auto count = static_cast<int64_t>(epochs.size());
  py::dict history;
  history["epoch"] = array_of({count}, std::move(epochs));
  history["step"] = array_of({count}, std::move(steps));
  history["train_loss"] = array_of({count}, std::move(losses));
  history["validation_loss"] = array_of({count}, std::move(validation));
  history["lr"] = array_of({count}, std::move(rates));
  history["seconds"] = array_of({count}, std::move(seconds));
  py::dict rows = columns_of(tests);
  rows["epoch"] = array_of({static_cast<int64_t>(tests.size())}, std::move(test_epochs));
  history["tests"] = rows;
  return history;
}

py::dict manifest_of(const std::filesystem::path& path) {
  const Manifest manifest = manifest_from_json(read_text_file(path, most_text), path.string());
  py::dict facts;
  facts["status"] = std::string(to_string(manifest.status));
  facts["message"] = text_of(manifest.message);
  facts["epoch"] = manifest.epoch;
  facts["configuration"] = manifest.configuration;
  return facts;
}

}  // namespace

void add_training(py::module_& module) {
  py::class_<StopFlag, std::shared_ptr<StopFlag>>(module, "StopFlag")
      .def(py::init<>())
      .def("set", [](StopFlag& flag) { flag.is_set = true; })
      .def("is_set", [](const StopFlag& flag) { return flag.is_set.load(); });
  module.def("train", &train, py::arg("runs"), py::arg("out"), py::arg("resume"),
             py::arg("threads"), py::arg("stop"), py::arg("report"));
  module.def("history", &history_of, py::arg("metrics"));
  module.def("manifest", &manifest_of, py::arg("path"));
  module.def(
      "config_text", [](const GivenSettings& given) { return to_toml(config_of(given)); },
      py::arg("settings"));
  module.def(
      "config_json", [](const GivenSettings& given) { return to_json(config_of(given)); },
      py::arg("settings"));
  module.def(
      "config_file",
      [](const std::filesystem::path& path) { return to_json(read_config_file(path).config); },
      py::arg("path"));
  module.def("settings", [] {
    py::list fields;
    for (const FieldInfo& field : config_fields()) {
      fields.append(py::make_tuple(field.name, field.type, field.default_value, field.help));
    }
    return fields;
  });
}

}  // namespace posattn::python
