#include "posattn/experiments/grid_progress.h"

namespace posattn {

// Until a run begins its steps are those of one length; several lengths may end in smaller batches.
GridSteps::GridSteps(const std::vector<RunConfig>& configs) {
  for (const RunConfig& config : configs) {
    const int64_t an_epoch = (config.samples + config.batch - 1) / config.batch;
    runs_.push_back({.of = an_epoch * config.epochs});
    of_ += runs_.back().of;
  }
}

void GridSteps::update(std::size_t run, const RunProgress& progress) {
  if (!started_) started_ = Clock::now();
  Steps& steps = runs_[run];
  if (!steps.seen) before_ += progress.step;
  // A run that ended early has no more to do.
  const int64_t of = progress.status == RunStatus::diverged || progress.status == RunStatus::failed
                         ? progress.step
                         : progress.steps;
  done_ += progress.step - steps.done;
  of_ += of - steps.of;
  steps = {progress.step, of, true};
}

GridProgress GridSteps::progress() const {
  GridProgress progress;
  progress.step = done_;
  progress.steps = of_;
  if (!started_) return progress;
  const double seconds = std::chrono::duration<double>(Clock::now() - *started_).count();
  if (done_ > before_ && seconds > 0) {
    progress.steps_per_second = static_cast<double>(done_ - before_) / seconds;
    progress.seconds_left = static_cast<double>(of_ - done_) / progress.steps_per_second;
  }
  return progress;
}

}  // namespace posattn
