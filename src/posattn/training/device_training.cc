#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "posattn/base/error.h"
#include "posattn/kernels/cuda/device_info.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/fleet_folders.h"
#include "posattn/training/ordered_workers.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

using Clock = std::chrono::steady_clock;

// Tasks that may wait: a few epochs' worth, so that a long test of one run does not stop the GPU.
constexpr std::size_t least_queue = 64;

// One run of a wave. While the workers are there, `ended` and `checkpointed` belong to the thread
// that drives the GPU, the rest to the run's lane.
struct WaveRun {
  WaveRun(const FolderRun& run, RecordingOptions options)
      : config(*run.config), recording(*run.config, *run.folder, std::move(options)) {}

  const RunConfig& config;
  Recording recording;
  std::optional<RunEvaluation> evaluation;
  std::optional<double> validation_loss, best_validation_loss;
  std::atomic<bool> failed = false;
  bool ended = false;  // its last task has been handed out
  Clock::time_point checkpointed;
};

class Wave {
 public:
  Wave(const std::vector<FolderRun>& runs, const FleetOptions& options, std::mutex& progress)
      : options_(options) {
    for (const FolderRun& run : runs) {
      runs_.push_back(
          std::make_unique<WaveRun>(run, recording_options(run, options, "cuda", progress)));
    }
  }

  void train() {
    try {
      start();
      if (!fleet_) return;
      const auto threads = static_cast<std::size_t>(std::max(1, options_.threads));
      const std::size_t lanes = slots_.size(), workers_wanted = std::min(threads, lanes);
      threads_each_ = static_cast<int>(threads / workers_wanted);
      OrderedWorkers workers(workers_wanted, lanes, std::max(least_queue, 2 * lanes));
      prepare_evaluations(workers);
      while (!fleet_->finished() && !stopped()) {
        for (EpochEnd& end : fleet_->advance(options_.stop)) hand_out(std::move(end), workers);
        for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
          if (slots_[slot]->failed) fleet_->rest(static_cast<int>(slot));
        }
      }
      if (stopped()) interrupt(workers);
    } catch (const std::exception& error) {  // the GPU's; what befalls one run is caught there
      for (const auto& run : runs_) {
        if (run->recording.outcome().status == RunStatus::running) {
          run->recording.fail(error);
        }
      }
      throw;
    }
  }

  const RunOutcome& outcome(std::size_t run) const { return runs_[run]->recording.outcome(); }

 private:
  bool stopped() const {
    return options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed);
  }

  // Does `action` for one run; if it cannot be done, that run has failed.
  template <class Action>
  static void attempt(WaveRun& run, const Action& action) {
    if (run.failed) return;
    try {
      action();
    } catch (const std::exception& error) {
      run.recording.fail(error);
      run.failed = true;
    }
  }

  void start() {
    std::vector<DeviceRun> on_device;
    for (const auto& run : runs_) {
      if (stopped()) {
        run->recording.interrupt_before_start();
        continue;
      }
      attempt(*run, [&] {
        on_device.push_back({run->config, run->recording.start()});
        slots_.push_back(run.get());
      });
    }
    if (slots_.empty()) return;
    fleet_.emplace(on_device, options_.threads);
    const DeviceInfo info = device_info();
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      WaveRun& run = *slots_[slot];
      run.recording.set_engine({{"path", run.config.path},
                                {"device", "cuda"},
                                {"gpu", info.name},
                                {"driver", info.driver},
                                {"toolkit", info.toolkit},
                                {"engine", fleet_->engine()},
                                {"precision", run.config.precision}});
      run.validation_loss = on_device[slot].state.validation_loss;
      run.best_validation_loss = on_device[slot].state.best_validation_loss;
      run.checkpointed = Clock::now();
      attempt(run, [&] {
        run.recording.begin(on_device[slot].state, fleet_->steps_per_epoch(static_cast<int>(slot)));
        if (on_device[slot].state.epoch < run.config.epochs) return;
        run.recording.finish(on_device[slot].state, "");  // only its model file was missing
        run.ended = true;
      });
    }
  }

  void prepare_evaluations(OrderedWorkers& workers) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      workers.add(slot, [&run = *slots_[slot]] {
        attempt(run, [&] { run.evaluation.emplace(run.config, 1); });
      });
    }
  }

  // Hands out what the end of an epoch asks for besides the GPU's work.
  void hand_out(EpochEnd end, OrderedWorkers& workers) {
    WaveRun& run = *slots_[end.slot];
    if (!end.divergence.empty()) {
      finish(end.slot, end.divergence, workers);
      return;
    }
    const bool last = end.record.epoch == run.config.epochs;
    const std::chrono::duration<double> since = Clock::now() - run.checkpointed;
    const bool checkpoint = !last && since.count() >= run.config.checkpoint_every;
    if (checkpoint) run.checkpointed = Clock::now();
    std::shared_ptr<RunState> state;
    const bool validated = end.record.validation_loss.has_value();
    if (last || checkpoint || RunEvaluation::tests_due(run.config, end.record.epoch) ||
        (RunEvaluation::validation_due(run.config, end.record.epoch) && !validated)) {
      state = std::make_shared<RunState>(fleet_->state(end.slot, last || checkpoint));
    }
    run.ended = last;
    workers.add(
        end.slot, [this, &run, record = std::move(end.record), state, last, checkpoint]() mutable {
          attempt(run, [&] {
            if (state) {
              evaluate(run, *state, record);
            } else if (const std::optional<double> loss = record.validation_loss) {
              run.validation_loss = loss;
              run.best_validation_loss = std::min(*loss, run.best_validation_loss.value_or(*loss));
            }
            run.recording.record_epoch(record);
            if (checkpoint) run.recording.checkpoint(*state);
            if (last) run.recording.finish(*state, "");
          });
        });
  }

  void evaluate(WaveRun& run, RunState& state, EpochRecord& record) {
    state.validation_loss = run.validation_loss;
    state.best_validation_loss = run.best_validation_loss;
    ForwardPass& network = fleet_->network();
    run.evaluation->evaluate_when_due(network, threads_each_, state, record, &network);
    run.validation_loss = state.validation_loss;
    run.best_validation_loss = state.best_validation_loss;
  }

  // The run ends after its last completed epoch.
  void finish(int slot, const std::string& divergence, OrderedWorkers& workers) {
    WaveRun& run = *slots_[slot];
    run.ended = true;
    const auto state = std::make_shared<RunState>(fleet_->state(slot));
    workers.add(slot, [&run, state, divergence] {
      attempt(run, [&] {
        state->validation_loss = run.validation_loss;
        state->best_validation_loss = run.best_validation_loss;
        run.recording.finish(*state, divergence);
      });
    });
  }

  void interrupt(OrderedWorkers& workers) {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot]->ended) finish(static_cast<int>(slot), "", workers);
    }
  }

  const FleetOptions& options_;
  std::vector<std::unique_ptr<WaveRun>> runs_;
  std::vector<WaveRun*> slots_;
  std::optional<DeviceFleet> fleet_;
  int threads_each_ = 1;  // of a worker
};

std::string gigabytes(int64_t bytes) {
  return fmt::format("{:.3g} GB", static_cast<double>(bytes) / 1e9);
}

// Groups of runs that may share a fleet, in the order of their first runs.
std::vector<std::vector<std::size_t>> group(const std::vector<PlannedRun>& planned) {
  std::vector<std::vector<std::size_t>> groups;
  for (std::size_t run = 0; run < planned.size(); ++run) {
    const auto found = std::ranges::find_if(groups, [&](const std::vector<std::size_t>& known) {
      return DeviceFleet::compatible(*planned[known.front()].config, *planned[run].config);
    });
    if (found == groups.end()) {
      groups.push_back({run});
    } else {
      found->push_back(run);
    }
  }
  return groups;
}

// More runs than this hardly use a GPU better.
constexpr std::size_t busy_runs = 32;

// Each group in parts of runs that end at about the same time, the longest first: in lockstep, runs
// that have ended leave the GPU to the few that have not. Lengths with few runs share a part, and
// the last few join longer ones where `fit` says that both have enough memory.
template <class Fit>
std::vector<std::vector<std::size_t>> by_length(std::vector<std::vector<std::size_t>> groups,
                                                const std::vector<PlannedRun>& planned,
                                                const Fit& fit) {
  const auto length = [&](std::size_t run) {
    return (planned[run].config->epochs - planned[run].epoch) * planned[run].config->samples;
  };
  std::vector<std::vector<std::size_t>> parts;
  for (std::vector<std::size_t>& runs : groups) {
    std::ranges::stable_sort(runs, std::ranges::greater(), length);
    const std::size_t first = parts.size();
    parts.emplace_back();
    for (const std::size_t run : runs) {
      const std::vector<std::size_t>& part = parts.back();
      if (part.size() >= busy_runs && length(run) != length(part.back())) parts.emplace_back();
      parts.back().push_back(run);
    }
    if (parts.size() - first < 2 || parts.back().size() >= busy_runs) continue;
    std::vector<std::size_t> both = parts[parts.size() - 2];
    both.insert(both.end(), parts.back().begin(), parts.back().end());
    if (!fit(both)) continue;
    parts.pop_back();
    parts.back() = std::move(both);
  }
  return parts;
}

// `runs` in parts of `size` runs, the last with what remains.
std::vector<std::vector<std::size_t>> split(const std::vector<std::size_t>& runs,
                                            std::size_t size) {
  std::vector<std::vector<std::size_t>> parts;
  for (std::size_t begin = 0; begin < runs.size(); begin += size) {
    const auto first = runs.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last =
        runs.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, runs.size()));
    parts.emplace_back(first, last);
  }
  return parts;
}

// The epochs of an earlier run in the folder. The manifest of a killed run does not tell them, so
// its metrics are counted.
int64_t epochs_of(const RunFolder& folder) {
  const std::optional<Manifest>& previous = folder.previous();
  if (!previous) return 0;
  if (previous->status != RunStatus::running) return previous->epoch;
  return static_cast<int64_t>(folder.metrics_lines().size());
}

}  // namespace

std::vector<std::vector<std::size_t>> plan_waves(
    const std::vector<PlannedRun>& planned, int64_t bytes_free,
    const std::function<void(const std::string&)>& notice) {
  const int64_t budget = bytes_free / 10 * 9;  // allocations are rounded up, and graphs take some
  const auto needed = [&](const std::vector<std::size_t>& runs) {
    std::vector<RunConfig> chosen;
    chosen.reserve(runs.size());
    for (const std::size_t run : runs) chosen.push_back(*planned[run].config);
    return DeviceFleet::bytes_needed(chosen);
  };
  std::vector<std::vector<std::size_t>> waves;
  const auto fit = [&](const std::vector<std::size_t>& runs) { return needed(runs) <= budget; };
  for (const std::vector<std::size_t>& runs : by_length(group(planned), planned, fit)) {
    std::size_t parts = 1, size = runs.size();
    while (!std::ranges::all_of(split(runs, size), fit)) {
      if (size == 1) {
        throw Error(ExitCode::device,
                    fmt::format("one run of architecture '{}' needs {} of GPU memory, {} are free",
                                planned[runs.front()].config->architecture,
                                gigabytes(needed({runs.front()})), gigabytes(bytes_free)),
                    "",
                    "lower batch or samples, end other programs on this GPU, or use "
                    "--device cpu");
      }
      size = (runs.size() + parts) / (parts + 1);
      ++parts;
    }
    const auto chosen = split(runs, size);
    if (chosen.size() > 1 && notice) {
      notice(fmt::format("{} runs need {} of GPU memory, {} are free: trained in {} waves of {}",
                         runs.size(), gigabytes(needed(runs)), gigabytes(bytes_free), chosen.size(),
                         size));
    }
    waves.insert(waves.end(), chosen.begin(), chosen.end());
  }
  return waves;
}

void train_on_device(const std::vector<FolderRun>& runs, const FleetOptions& options,
                     std::vector<RunOutcome>& outcomes) {
  std::vector<FolderRun> to_train;
  std::vector<PlannedRun> planned;
  std::mutex progress;
  for (const FolderRun& run : runs) {
    Recording recording(*run.config, *run.folder,
                        recording_options(run, options, "cuda", progress));
    try {
      if (!recording.ended_before()) {
        to_train.push_back(run);
        planned.push_back({run.config, epochs_of(*run.folder)});
      }
    } catch (const std::exception& error) {
      recording.fail(error);
    }
    outcomes[run.place] = recording.outcome();
  }
  if (to_train.empty()) return;
  const int64_t memory =
      options.device_memory > 0 ? options.device_memory : DeviceFleet::bytes_free();
  for (const auto& wave : plan_waves(planned, memory, options.notice)) {
    std::vector<FolderRun> together;
    together.reserve(wave.size());
    for (const std::size_t run : wave) together.push_back(to_train[run]);
    Wave training(together, options, progress);
    training.train();
    for (std::size_t i = 0; i < together.size(); ++i) {
      outcomes[together[i].place] = training.outcome(i);
    }
  }
}

}  // namespace posattn
