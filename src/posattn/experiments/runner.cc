#include "posattn/experiments/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stop_token>
#include <thread>
#include <unordered_map>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/version.h"
#include "posattn/experiments/merge.h"
#include "posattn/experiments/recorded_runs.h"
#include "posattn/results/manifest.h"
#include "posattn/training/fleet.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_together = 256;  // each keeps a file open
constexpr std::chrono::milliseconds watch_interval{20};

fs::path folder_of(const fs::path& results, const std::string& key) {
  return results / "runs" / key;
}

using Statuses = std::unordered_map<std::string, RunStatus>;

// Adds the run to `found` and returns whether it is missing.
bool count(GridSurvey& found, const fs::path& results, const Statuses& statuses,
           const std::string& key) {
  ++found.runs;
  const auto known = statuses.find(key);
  if (known != statuses.end() && has_ended(known->second)) {
    ++(known->second == RunStatus::done ? found.done : found.diverged);
    return false;
  }
  if (known != statuses.end()) ++found.failed;
  if (fs::exists(folder_of(results, key) / "manifest.json")) ++found.begun;
  return true;
}

// The lines of its metrics.
int64_t recorded_epochs(const fs::path& folder) {
  std::ifstream metrics(folder / "metrics.jsonl", std::ios::binary);
  return std::count(std::istreambuf_iterator<char>(metrics), {}, '\n');
}

// Removes the manifest last: if the process is killed, the folder must still be recognised as a
// run.
void remove_run(const fs::path& folder) {
  const FolderLock lock(folder);
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename() != "manifest.json") fs::remove_all(entry.path());
  }
  fs::remove_all(folder);
}

// The device a run was started on; "auto": when there was no other than the CPU.
std::string recorded_device(const std::string& configuration, const fs::path& folder) {
  const std::string device = read_settings(configuration, folder.string()).value("device", "cpu");
  return device == "auto" ? "cpu" : device;
}

class Runner {
 public:
  // Looks in `folder`; a run that ended elsewhere is not missing.
  Runner(const RunnerOptions& options, fs::path folder, ResultsDatabase& database,
         const Statuses& elsewhere)
      : options_(options), folder_(std::move(folder)), database_(database), elsewhere_(elsewhere) {}

  GridSummary run(const std::vector<ExperimentRun>& wanted) {
    std::vector<ExperimentRun> missing;
    Statuses statuses = database_.statuses();
    for (const auto& [key, status] : elsewhere_) {
      if (has_ended(status)) statuses.insert_or_assign(key, status);
    }
    GridSurvey found;
    for (const ExperimentRun& run : each_once(wanted)) {
      if (count(found, folder_, statuses, run.key)) missing.push_back(run);
    }
    if (options_.found) options_.found(found);
    summary_.runs = found.runs;
    summary_.there = found.done + found.diverged;
    // The flag that fleets look at is also set from within.
    const std::jthread watcher([this](const std::stop_token& end) { watch(end); });
    for (ExperimentRun& run : missing) {
      if (stop_) break;
      try {
        if (needs_training(run)) to_train_.push_back(run);
      } catch (const Error& error) {
        fail(run, error.problem());  // its hint is about other commands
      } catch (const std::exception& error) {
        fail(run, error.what());
      }
    }
    std::vector<RunConfig> configs;
    for (const ExperimentRun& run : to_train_) configs.push_back(run.config);
    steps_.emplace(configs);
    statuses_.assign(configs.size(), RunStatus::running);
    for (const std::vector<std::size_t>& chunk : plan_chunks(configs, most_together)) {
      if (!stop_) train(chunk);
    }
    summary_.interrupted = summary_.runs - ended();
    return summary_;
  }

 private:
  void watch(const std::stop_token& end) {
    while (!end.stop_requested()) {
      if (options_.stop != nullptr && *options_.stop) stop_ = true;
      std::this_thread::sleep_for(watch_interval);
    }
  }

  int64_t ended() const {
    return summary_.there + summary_.done + summary_.diverged +
           static_cast<int64_t>(summary_.failures.size());
  }

  // Whether the run is to be trained; from what its folder holds, if that can be gone on with. A
  // run that ended there is recorded: its process was killed before it could do so.
  bool needs_training(ExperimentRun& run) {
    const fs::path folder = folder_of(folder_, run.key);
    if (!fs::exists(folder)) return true;
    if (fs::exists(folder / "manifest.json")) {
      const RunResult before = read_result(folder, run.key);
      const std::string device = recorded_device(before.configuration, folder);
      if (!has_ended(before.status) && !can_use(run.config, device)) {
        restart(run, folder, device);
        return true;
      }
      run.config.device = device;
    }
    // Any problem that would keep a fleet from taking the folder appears here, for this run alone.
    const RunFolder taken(folder, to_json(run.config), result_neutral_keys(), true);
    if (!taken.previous() || !has_ended(taken.previous()->status)) return true;
    database_.record(read_result(folder, run.key));
    ++summary_.there;
    return false;
  }

  static bool can_use(const RunConfig& config, const std::string& device) {
    const std::string wanted = device_used(config);
    return wanted == device || (config.device == "auto" && device == "cpu");
  }

  void restart(const ExperimentRun& run, const fs::path& folder, const std::string& device) const {
    if (options_.notice) {
      options_.notice(fmt::format(
          "{} was begun on device {}, which is not used now: it starts anew", run.key, device));
    }
    remove_run(folder);
  }

  void train(const std::vector<std::size_t>& chunk) {
    FleetOptions fleet;
    fleet.folder = [this](const RunConfig& config) { return folder_of(folder_, run_key(config)); };
    fleet.resume = true;
    fleet.threads = options_.threads;
    fleet.device_memory = options_.device_memory;
    fleet.command_line = options_.command_line;
    fleet.stop = &stop_;
    fleet.progress = [&](const RunProgress& progress) { follow(chunk[progress.run], progress); };
    fleet.notice = options_.notice;
    std::vector<RunConfig> configs;
    configs.reserve(chunk.size());
    for (const std::size_t run : chunk) configs.push_back(to_train_[run].config);
    const std::vector<RunOutcome> outcomes = train_fleet(configs, fleet);
    if (problem_) std::rethrow_exception(problem_);
    for (std::size_t i = 0; i < chunk.size(); ++i) end(chunk[i], outcomes[i]);
    report();
  }

  // A fleet's progress callback. An exception must not pass for a failure of the run.
  void follow(std::size_t run, const RunProgress& progress) {
    try {
      steps_->update(run, progress);
      if (has_ended(progress.status)) record(run);
      if (progress.status == RunStatus::failed && options_.fail_fast) stop_ = true;
      report();
    } catch (...) {
      if (!problem_) problem_ = std::current_exception();
      stop_ = true;
    }
  }

  void end(std::size_t run, const RunOutcome& outcome) {
    if (outcome.status == RunStatus::failed) fail(to_train_[run], outcome.message);
    if (has_ended(outcome.status) && !has_ended(statuses_[run])) record(run);
  }

  void record(std::size_t run) {
    const std::string& key = to_train_[run].key;
    const RunResult result = read_result(folder_of(folder_, key), key);
    database_.record(result);
    statuses_[run] = result.status;
    ++(result.status == RunStatus::done ? summary_.done : summary_.diverged);
  }

  void fail(const ExperimentRun& run, const std::string& message) {
    RunResult result;
    result.key = run.key;
    result.configuration = to_json(run.config);
    result.status = RunStatus::failed;
    result.message = message;
    result.version = build_info().version;
    result.commit = build_info().commit;
    result.ended = utc_now();
    database_.record(result);
    summary_.failures.push_back({run.key, folder_of(folder_, run.key), message});
    if (options_.fail_fast) stop_ = true;
  }

  void report() {
    if (!options_.progress) return;
    GridProgress progress = steps_->progress();
    progress.runs = summary_.runs;
    progress.ended = ended();
    progress.diverged = summary_.diverged;
    progress.failed = static_cast<int64_t>(summary_.failures.size());
    options_.progress(progress);
  }

  const RunnerOptions& options_;
  fs::path folder_;
  ResultsDatabase& database_;
  const Statuses& elsewhere_;
  std::atomic<bool> stop_ = false;
  std::vector<ExperimentRun> to_train_;
  std::vector<RunStatus> statuses_;  // of to_train_; other than running once recorded
  std::optional<GridSteps> steps_;   // of to_train_
  GridSummary summary_;
  std::exception_ptr problem_;
};

}  // namespace

GridSurvey& GridSurvey::operator+=(const GridSurvey& other) {
  runs += other.runs;
  done += other.done;
  diverged += other.diverged;
  failed += other.failed;
  begun += other.begun;
  epochs += other.epochs;
  return *this;
}

std::vector<PartSurvey> survey(const fs::path& results, const std::vector<ExperimentRun>& wanted,
                               const std::optional<Shard>& shard) {
  const Statuses statuses = has_results(results) ? open_results(results).statuses() : Statuses{};
  const fs::path folder = shard ? shard_folder(results, *shard) : results;
  std::vector<PartSurvey> parts;
  std::map<std::pair<std::string, std::string>, std::size_t> places;  // in `parts`
  for (const ExperimentRun& run : shard ? runs_of_shard(wanted, *shard) : each_once(wanted)) {
    const auto [place, is_new] = places.try_emplace({run.task, run.line}, parts.size());
    if (is_new) parts.push_back({run.task, run.line, {}});
    GridSurvey& found = parts[place->second].found;
    found.epochs += count(found, folder, statuses, run.key)
                        ? recorded_epochs(folder_of(folder, run.key))
                        : run.config.epochs;
  }
  return parts;
}

GridSurvey whole_of(const std::vector<PartSurvey>& parts) {
  GridSurvey whole;
  for (const PartSurvey& part : parts) whole += part.found;
  return whole;
}

GridSummary run_experiment(const std::vector<ExperimentRun>& wanted, const RunnerOptions& options) {
  const fs::path folder =
      options.shard ? shard_folder(options.results, *options.shard) : options.results;
  create_folder(folder);
  const FolderLock lock(folder,
                        "wait until it has ended; several processes share an experiment by --shard "
                        "K/M, and on a Slurm cluster 'posattn submit' starts them");
  ResultsDatabase database(folder, ResultsDatabase::Access::write);
  if (options.shard) {
    const Statuses elsewhere = open_results(options.results, options.notice).statuses();
    return Runner(options, folder, database, elsewhere).run(runs_of_shard(wanted, *options.shard));
  }
  import_recorded_runs(folder, database);
  const MergeSummary merged = merge_shards(folder, database);
  describe(merged.conflicts, merged.problems, options.notice);
  return Runner(options, folder, database, {}).run(wanted);
}

// Until a run begins its steps are those of one length; several lengths may end in smaller batches.
GridSteps::GridSteps(const std::vector<RunConfig>& configs) {
  for (const RunConfig& config : configs) {
    const int64_t an_epoch = (config.samples + config.batch - 1) / config.batch;
    const int64_t of = an_epoch * config.epochs;
    runs_.push_back(
        {.of = of, .cost = estimated_cost(config) / static_cast<double>(std::max<int64_t>(1, of))});
    of_ += of;
    cost_of_ += runs_.back().cost * static_cast<double>(of);
  }
}

void GridSteps::update(std::size_t run, const RunProgress& progress) {
  if (!started_) started_ = Clock::now();
  Steps& steps = runs_[run];
  if (!steps.seen) {
    before_ += progress.step;
    cost_before_ += steps.cost * static_cast<double>(progress.step);
  }
  // A run that ended early has no more to do.
  const int64_t of = progress.status == RunStatus::diverged || progress.status == RunStatus::failed
                         ? progress.step
                         : progress.steps;
  done_ += progress.step - steps.done;
  of_ += of - steps.of;
  cost_done_ += steps.cost * static_cast<double>(progress.step - steps.done);
  cost_of_ += steps.cost * static_cast<double>(of - steps.of);
  steps = {progress.step, of, true, steps.cost};
}

GridProgress GridSteps::progress() const {
  GridProgress progress;
  progress.step = done_;
  progress.steps = of_;
  progress.fraction = cost_of_ > 0 ? std::clamp(cost_done_ / cost_of_, 0.0, 1.0) : 0;
  if (!started_) return progress;
  const double seconds = std::chrono::duration<double>(Clock::now() - *started_).count();
  if (done_ > before_ && seconds > 0) {
    progress.steps_per_second = static_cast<double>(done_ - before_) / seconds;
    progress.seconds_left =
        seconds * std::max(0.0, cost_of_ - cost_done_) / (cost_done_ - cost_before_);
  }
  return progress;
}

}  // namespace posattn
