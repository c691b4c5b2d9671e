#include "posattn/experiments/grid_progress.h"

#include <algorithm>

#include "posattn/experiments/shards.h"

namespace posattn {

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
