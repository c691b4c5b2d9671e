// Models, their files and measurements.
#include "model.h"
#include "posattn/base/error.h"
#include "posattn/evaluate.h"
#include "posattn/task.h"
#include "posattn/train.h"
#include "rows.h"
#include "settings.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

std::unique_ptr<HeldModel> loaded(const std::filesystem::path& path, const ModelHints& hints) {
  const Interruptible unlocked;
  return std::make_unique<HeldModel>(load_model(path, hints));
}

std::unique_ptr<HeldModel> from_bytes(const py::bytes& bytes, const std::string& name,
                                      const ModelHints& hints) {
  const std::string_view view(bytes);
  return std::make_unique<HeldModel>(
      model_from_bytes(std::as_bytes(std::span(view.data(), view.size())), name, hints));
}

ModelHints hints_of(std::optional<std::string> architecture, std::optional<std::string> task,
                    std::optional<int> length, std::optional<int> heads,
                    std::optional<std::string> vocabulary) {
  return {std::move(architecture), std::move(task), length, heads, std::move(vocabulary)};
}

// With the first weights of a run of these settings.
std::unique_ptr<HeldModel> untrained(
    const std::vector<std::pair<std::string, std::string>>& given) {
  const RunConfig config = config_of(given);
  validate(config);
  return std::make_unique<HeldModel>(trained_model(config, initial_state(config)));
}

py::dict facts_of(const HeldModel& held) {
  const std::shared_ptr<Model> model = held.shared();
  py::dict facts;
  facts["spec"] = to_json(model->spec);
  facts["architecture"] = preset_name(model->spec);
  facts["task"] = model->origin.task;
  facts["task_set"] = model->origin.task_set;
  facts["length"] = model->origin.length;
  facts["variable_length"] = model->origin.variable_length;
  facts["range"] = model->origin.range;
  facts["integers"] = model->origin.integers;
  facts["notes"] = model->origin.notes;
  facts["compiled"] = is_compiled(*model);
  facts["parameter_count"] = model->parameters.layout().parameter_count();
  return facts;
}

py::bytes bytes_of(const HeldModel& held) {
  const std::vector<std::byte> bytes = model_bytes(*held.shared());
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void save(const HeldModel& held, const std::filesystem::path& path) {
  const std::shared_ptr<Model> model = held.shared();
  const Interruptible unlocked;
  save_model(path, *model);
}

// Rows as columns, of tests at `values` on an axis.
py::dict evaluated(const HeldModel& held, const std::string& task, const std::string& axis,
                   const std::vector<double>& values, int64_t samples, uint64_t seed, int threads) {
  if (samples < 1) {
    throw Error(ExitCode::usage, "samples = " + std::to_string(samples), "at least 1");
  }
  const std::shared_ptr<Model> model = held.shared();
  if (task.empty() && model->origin.task.empty()) {
    throw Error(ExitCode::usage, "the model does not say which task it was trained on", "a task",
                "task=NAME; posattn.tasks() lists them");
  }
  Evaluation evaluation;
  {
    const Interruptible unlocked;
    const EvaluationAxis tested = axis_named(axis);
    const bool own = task.empty() || task == model->origin.task;
    evaluation = evaluate({.model = model.get(),
                           .task = own ? &task_of(model->origin, "the model") : &find_task(task),
                           .axis = &tested,
                           .values = values,
                           .samples = samples,
                           .seed = seed,
                           .threads = checked_threads(threads)});
  }
  return columns_of(evaluation.rows);
}

}  // namespace

void add_models(py::module_& module) {
  py::class_<HeldModel>(module, "Model")
      .def("run", &HeldModel::run, py::arg("x"), py::arg("given"), py::arg("threads"))
      .def("attention", &HeldModel::attention, py::arg("x"), py::arg("given"))
      .def("activations", &HeldModel::activations, py::arg("x"), py::arg("given"))
      .def("run_with_hook", &HeldModel::run_with_hook, py::arg("x"), py::arg("given"),
           py::arg("hook"))
      .def("steps", &HeldModel::steps, py::arg("x"), py::arg("given"))
      .def("gradient", &HeldModel::gradient, py::arg("x"), py::arg("y"), py::arg("given"),
           py::arg("mask"), py::arg("threads"))
      .def("shapes", &HeldModel::shapes)
      .def("copy",
           [](const HeldModel& held) { return std::make_unique<HeldModel>(*held.shared()); })
      .def("parameter", &HeldModel::parameter, py::arg("name"))
      .def("set_parameter", &HeldModel::set_parameter, py::arg("name"), py::arg("values"))
      .def("facts", &facts_of)
      .def("to_bytes", &bytes_of)
      .def("save", &save, py::arg("path"))
      .def("evaluate", &evaluated, py::arg("task"), py::arg("axis"), py::arg("values"),
           py::arg("samples"), py::arg("seed"), py::arg("threads"))
      .def("close", &HeldModel::close)
      .def_property_readonly("is_closed", &HeldModel::is_closed);
  module.def(
      "load",
      [](const std::filesystem::path& path, std::optional<std::string> architecture,
         std::optional<std::string> task, std::optional<int> length, std::optional<int> heads,
         std::optional<std::string> vocabulary) {
        return loaded(path, hints_of(std::move(architecture), std::move(task), length, heads,
                                     std::move(vocabulary)));
      },
      py::arg("path"), py::arg("architecture"), py::arg("task"), py::arg("length"),
      py::arg("heads"), py::arg("vocabulary"));
  module.def(
      "from_bytes",
      [](const py::bytes& bytes, const std::string& name, std::optional<std::string> architecture,
         std::optional<std::string> task, std::optional<int> length, std::optional<int> heads,
         std::optional<std::string> vocabulary) {
        return from_bytes(bytes, name,
                          hints_of(std::move(architecture), std::move(task), length, heads,
                                   std::move(vocabulary)));
      },
      py::arg("data"), py::arg("name"), py::arg("architecture"), py::arg("task"), py::arg("length"),
      py::arg("heads"), py::arg("vocabulary"));
  module.def("floats", &floats_of, py::arg("array"), py::arg("what"));
  module.def("untrained", &untrained, py::arg("settings"));
  module.def("presets", [] {
    std::vector<std::pair<std::string, std::string>> list;
    for (const Preset& preset : presets()) list.emplace_back(preset.name, preset.description);
    return list;
  });
}

}  // namespace posattn::python
