// Bounds and certificates of trained models.
#include <chrono>

#include "model.h"
#include "posattn/base/error.h"
#include "posattn/bound.h"
#include "posattn/train.h"
#include "stop_flag.h"
#include "task_guard.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

std::optional<RunConfig> settings_of(const std::filesystem::path& run) {
  if (run.empty()) return {};
  return read_config_file(run / "config.toml").config;
}

// `run`: the folder whose training set is measured; empty for a model alone.
std::string bound(const HeldModel& held, const std::filesystem::path& run,
                  std::optional<int64_t> samples, std::optional<double> range, double clip,
                  double delta, int64_t fresh_samples, int threads) {
  const std::shared_ptr<Model> model = held.shared();
  const TasksInUse in_use;
  const Interruptible unlocked;
  return to_json(bounds::bound_report(*model, {.name = run.empty() ? "model" : run.string(),
                                               .run = settings_of(run),
                                               .samples = samples,
                                               .range = range,
                                               .clip = clip,
                                               .delta = delta,
                                               .fresh_samples = fresh_samples,
                                               .threads = checked_threads(threads)}));
}

// Nothing when it was stopped.
std::optional<std::string> certificate(const std::filesystem::path& run, double clip, double delta,
                                       int64_t steps, int64_t draws, int threads,
                                       const std::shared_ptr<StopFlag>& stop,
                                       const py::function& report) {
  constexpr int64_t most = 100'000'000;
  if (!(delta > 0 && delta < 1) || !(clip >= 1e-6 && clip <= 1e6) || steps < 0 || steps > most ||
      draws < 1 || draws > most) {
    throw Error(ExitCode::usage, "delta, clip, steps or draws out of range",
                "0 < delta < 1, 1e-6 <= clip <= 1e6, steps from 0 and draws from 1 to 1e8");
  }
  const bounds::CertifiedRun certified{run.string(), *settings_of(run),
                                       load_model(run / "model.safetensors")};
  if (model_spec(certified.config) != certified.model.spec) {
    throw Error(ExitCode::data,
                "'" + run.string() + "' holds another model than its config.toml says",
                "the folder as training left it");
  }
  bounds::CertifyOptions options;
  options.clip = clip;
  options.delta = delta;
  options.steps = steps;
  options.draws = draws;
  options.threads = checked_threads(threads);
  options.stop = &stop->is_set;
  options.progress = [&report](const bounds::PosteriorProgress& progress) {
    const py::gil_scoped_acquire locked;
    report("progress", progress.step);
  };
  check_certifiable(certified, options);
  const TasksInUse in_use;
  const Unlocked unlocked;
  const auto started = std::chrono::steady_clock::now();
  const std::optional<bounds::Certificate> found = certify(certified, options);
  if (!found) return {};
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  return to_json(certified, options, *found, took.count());
}

}  // namespace

void add_bounds(py::module_& module) {
  module.def("bound", &bound, py::arg("model"), py::arg("run"), py::arg("samples"),
             py::arg("range"), py::arg("clip"), py::arg("delta"), py::arg("fresh_samples"),
             py::arg("threads"));
  module.def("certify", &certificate, py::arg("run"), py::arg("clip"), py::arg("delta"),
             py::arg("steps"), py::arg("draws"), py::arg("threads"), py::arg("stop"),
             py::arg("report"));
}

}  // namespace posattn::python
