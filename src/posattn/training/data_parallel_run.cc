#include "posattn/training/data_parallel_run.h"

#include <utility>

#include "posattn/kernels/cuda/device_info.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/run_evaluation.h"

namespace posattn {
namespace {

class RunOnCpu final : public DataParallelRun {
 public:
  RunOnCpu(const RunConfig& config, int threads, RunState state, DataParallelSteps& steps)
      : ranks_(steps.size()), run_(config, threads, std::move(state), &steps) {}

  std::map<std::string, std::string> engine() const override {
    return {{"path", run_.config().path}, {"device", "cpu"}, {"ranks", std::to_string(ranks_)}};
  }
  int64_t steps_per_epoch() const override { return run_.steps_per_epoch(); }
  bool finished() const override { return run_.finished(); }
  const std::string& divergence() const override { return run_.divergence(); }
  const RunState& state() const override { return run_.state(); }
  std::optional<EpochRecord> advance_epoch(const std::atomic<bool>* stop) override {
    return run_.advance_epoch(stop);
  }

 private:
  int ranks_;
  Run run_;
};

class RunOnDevice final : public DataParallelRun {
 public:
  RunOnDevice(const RunConfig& config, int threads, RunState state, DataParallelSteps& steps)
      : config_(config),
        threads_(threads),
        steps_(steps),
        state_(std::move(state)),
        fleet_({{config, state_}}, threads, &steps) {
    if (steps.is_first()) evaluation_.emplace(config, threads);
  }

  std::map<std::string, std::string> engine() const override {
    const DeviceInfo info = device_info();
    return {{"path", config_.path},
            {"device", "cuda"},
            {"gpu", info.name},
            {"driver", info.driver},
            {"toolkit", info.toolkit},
            {"engine", fleet_.engine()},
            {"precision", config_.precision},
            {"ranks", std::to_string(steps_.size())}};
  }
  int64_t steps_per_epoch() const override { return fleet_.steps_per_epoch(0); }
  bool finished() const override { return state_.epoch >= config_.epochs || !divergence_.empty(); }
  const std::string& divergence() const override { return divergence_; }
  const RunState& state() const override { return state_; }

  std::optional<EpochRecord> advance_epoch(const std::atomic<bool>* stop) override {
    const std::vector<EpochEnd> ends = fleet_.advance(stop);
    if (ends.empty()) return std::nullopt;
    divergence_ = ends.front().divergence;
    if (!divergence_.empty()) return std::nullopt;
    EpochRecord record = ends.front().record;
    const std::optional<double> last = state_.validation_loss, best = state_.best_validation_loss;
    state_ = fleet_.state(0);
    state_.validation_loss = last;
    state_.best_validation_loss = best;
    steps_.check_equal(state_.parameters);
    if (evaluation_) {
      ForwardPass& network = fleet_.network();
      evaluation_->evaluate_when_due(network, threads_, state_, record, &network);
    }
    return record;
  }

 private:
  RunConfig config_;
  int threads_;
  DataParallelSteps& steps_;
  RunState state_;
  DeviceFleet fleet_;
  std::optional<RunEvaluation> evaluation_;  // of the rank that measures
  std::string divergence_;
};

}  // namespace

std::unique_ptr<DataParallelRun> make_data_parallel_run(const RunConfig& config, int threads,
                                                        RunState state, DataParallelSteps& steps) {
  if (config.device == "cuda") {
    return std::make_unique<RunOnDevice>(config, threads, std::move(state), steps);
  }
  return std::make_unique<RunOnCpu>(config, threads, std::move(state), steps);
}

}  // namespace posattn
