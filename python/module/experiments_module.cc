// Experiments: training what is missing, results, comparison with the published ones.
#include <algorithm>
#include <limits>

#include "arrays.h"
#include "posattn/base/error.h"
#include "posattn/experiment.h"
#include "stop_flag.h"
#include "task_guard.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

constexpr double absent = std::numeric_limits<double>::quiet_NaN();

// What decides which runs are meant, and where their results are.
struct Question {
  std::string experiment;
  bool quick = false;
  std::optional<int64_t> epochs;
  std::string precision;

  Experiment whole() const {
    return load_experiment(experiment, {.quick = quick, .epochs = epochs, .precision = precision});
  }
};

py::dict survey_facts(const GridSummary& summary) {
  py::list failures;
  for (const RunFailure& failure : summary.failures) {
    failures.append(py::make_tuple(failure.folder, text_of(failure.message)));
  }
  py::dict facts;
  facts["runs"] = summary.runs;
  facts["there"] = summary.there;
  facts["done"] = summary.done;
  facts["diverged"] = summary.diverged;
  facts["interrupted"] = summary.interrupted;
  facts["failures"] = failures;
  return facts;
}

py::dict reproduce(const Question& asked, const std::vector<std::string>& tasks,
                   const std::vector<std::string>& lines, const std::vector<uint64_t>& seeds,
                   const std::vector<double>& values, const std::string& device,
                   const std::filesystem::path& results, int threads,
                   const std::shared_ptr<StopFlag>& stop, const py::function& report) {
  const Experiment chosen = load_experiment(asked.experiment, {.quick = asked.quick,
                                                               .tasks = tasks,
                                                               .lines = lines,
                                                               .seeds = seeds,
                                                               .epochs = asked.epochs,
                                                               .values = values,
                                                               .device = device,
                                                               .precision = asked.precision});
  const Experiment whole = asked.whole();
  const std::vector<ExperimentRun> runs = runs_of(chosen);
  validate(runs.front().config);
  RunnerOptions options;
  options.results = results;
  options.threads = checked_threads(threads);
  options.command_line = "posattn.reproduce";
  options.stop = &stop->is_set;
  options.progress = [&report](const GridProgress& progress) {
    const py::gil_scoped_acquire locked;
    py::dict facts;
    facts["runs"] = progress.runs;
    facts["ended"] = progress.ended;
    facts["step"] = progress.step;
    facts["steps"] = progress.steps;
    facts["seconds_left"] = progress.seconds_left;
    report("progress", facts);
  };
  options.notice = [&report](const std::string& line) {
    const py::gil_scoped_acquire locked;
    report("notice", text_of(line));
  };
  GridSummary summary;
  ExperimentFiles files;
  {
    const TasksInUse in_use;
    const Unlocked unlocked;
    summary = run_experiment(runs, options);
    const ResultsDatabase database = open_results(results);
    if (!curves_of(whole, database).empty()) {
      files = write_experiment_files(results, whole, database, options.command_line);
    }
  }
  py::dict facts = survey_facts(summary);
  facts["csv"] = files.csv;
  facts["svg"] = files.svg;
  facts["problem"] = text_of(files.problem);
  return facts;
}

std::vector<Curve> curves(const Experiment& experiment, const std::filesystem::path& folder) {
  if (!has_results(folder)) {
    throw Error(ExitCode::data, "there are no results in '" + folder.string() + "'",
                "a folder that posattn.reproduce filled");
  }
  std::vector<Curve> found = curves_of(experiment, open_results(folder));
  if (found.empty()) {
    throw Error(ExitCode::data,
                "no results of " + experiment.output_name + " in '" + folder.string() + "'",
                "a finished run", "posattn.reproduce trains what is missing");
  }
  return found;
}

// Every run at every x, as columns.
py::dict results_of(const Question& asked, const std::filesystem::path& folder) {
  const Experiment experiment = asked.whole();
  py::list tasks, lines, splits;
  std::vector<double> xs, values;
  std::vector<int64_t> seeds;
  for (const Curve& curve : curves(experiment, folder)) {
    for (const CurvePoint& point : curve.points) {
      for (const auto& [seed, value] : point.runs) {
        tasks.append(curve.task);
        lines.append(curve.line);
        splits.append(std::string(to_string(curve.split)));
        xs.push_back(point.x.value_or(absent));
        seeds.push_back(static_cast<int64_t>(seed));
        values.push_back(value);
      }
    }
  }
  const auto count = static_cast<int64_t>(xs.size());
  py::dict columns;
  columns["task"] = tasks;
  columns["line"] = lines;
  columns["split"] = splits;
  columns["x"] = array_of({count}, std::move(xs));
  columns["seed"] = array_of({count}, std::move(seeds));
  columns["value"] = array_of({count}, std::move(values));
  return columns;
}

// Test points compared with the published ones or with another folder's.
py::dict compared(const Question& asked, const std::filesystem::path& folder,
                  const std::optional<std::filesystem::path>& with) {
  const Experiment experiment = asked.whole();
  const auto tests_of = [&](const std::filesystem::path& from) {
    std::vector<Curve> all = curves(experiment, from);
    std::erase_if(all, [](const Curve& curve) { return curve.split != Split::test; });
    return summarise(experiment, all);
  };
  std::vector<PublishedPoint> theirs;
  if (with) {
    for (PointSummary& point : tests_of(*with)) theirs.push_back({std::move(point), ""});
  } else {
    theirs = published_points(experiment);
    std::erase_if(theirs, [](const PublishedPoint& p) { return p.point.split != Split::test; });
  }
  const Comparison found =
      compare(tests_of(folder), theirs, with ? with->string() : "the published results");
  py::list tasks, lines, agrees;
  std::vector<double> xs, ours, others, ratios;
  for (const ComparedCurve& curve : found.curves) {
    for (const ComparedPoint& point : curve.points) {
      tasks.append(curve.task);
      lines.append(curve.line);
      agrees.append(point.agrees());
      xs.push_back(point.ours.x.value_or(absent));
      ours.push_back(point.ours.median);
      others.push_back(point.theirs.median);
      ratios.push_back(point.ratio);
    }
  }
  const auto count = static_cast<int64_t>(xs.size());
  py::dict columns;
  columns["task"] = tasks;
  columns["line"] = lines;
  columns["x"] = array_of({count}, std::move(xs));
  columns["ours"] = array_of({count}, std::move(ours));
  columns["theirs"] = array_of({count}, std::move(others));
  columns["ratio"] = array_of({count}, std::move(ratios));
  columns["agrees"] = agrees;
  py::dict facts;
  facts["with"] = found.with;
  facts["points"] = found.points;
  facts["agreeing"] = found.agreeing;
  facts["agrees"] = found.agrees();
  facts["columns"] = columns;
  return facts;
}

}  // namespace

void add_experiments(py::module_& module) {
  py::class_<Question>(module, "Question")
      .def(py::init([](std::string experiment, bool quick, std::optional<int64_t> epochs,
                       std::string precision) {
             return Question{std::move(experiment), quick, epochs, std::move(precision)};
           }),
           py::arg("experiment"), py::arg("quick"), py::arg("epochs"), py::arg("precision"));
  module.def("experiments", [] {
    std::vector<std::pair<std::string, std::string>> list;
    for (const std::string& name : experiment_names()) {
      list.emplace_back(name, load_experiment(name).title);
    }
    return list;
  });
  module.def("reproduce", &reproduce, py::arg("question"), py::arg("tasks"), py::arg("lines"),
             py::arg("seeds"), py::arg("values"), py::arg("device"), py::arg("results"),
             py::arg("threads"), py::arg("stop"), py::arg("report"));
  module.def("results", &results_of, py::arg("question"), py::arg("results"));
  module.def("compare", &compared, py::arg("question"), py::arg("results"), py::arg("other"));
}

}  // namespace posattn::python
