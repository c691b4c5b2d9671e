#include "posattn/training/schedule.h"

#include <algorithm>

#include "posattn/base/error.h"

namespace posattn {

ScheduleKind schedule_kind_from(std::string_view name) {
  if (name == "plateau") return ScheduleKind::plateau;
  if (name == "constant") return ScheduleKind::constant;
  if (name == "warmup-linear") return ScheduleKind::warmup_linear;
  throw unknown_name(ExitCode::configuration, "schedule", name,
                     {"plateau", "constant", "warmup-linear"});
}

ScheduleState initial_schedule(const ScheduleOptions& options) {
  ScheduleState state;
  state.rate = options.lr;
  return state;
}

double learning_rate(const ScheduleOptions& options, const ScheduleState& state,
                     int64_t completed_steps) {
  if (options.kind != ScheduleKind::warmup_linear) return state.rate;
  if (completed_steps < options.warmup_steps) {
    return options.lr *
           (static_cast<double>(completed_steps) / static_cast<double>(options.warmup_steps));
  }
  const int64_t left = std::max<int64_t>(0, options.total_steps - completed_steps);
  const int64_t decay = std::max<int64_t>(1, options.total_steps - options.warmup_steps);
  return options.lr * (static_cast<double>(left) / static_cast<double>(decay));
}

void after_epoch(const ScheduleOptions& options, double summed_loss, ScheduleState& state) {
  if (options.kind != ScheduleKind::plateau) return;
  if (summed_loss < state.best * (1 - options.threshold)) {
    state.best = summed_loss;
    state.bad_epochs = 0;
    return;
  }
  if (++state.bad_epochs <= options.patience) return;
  state.bad_epochs = 0;
  const double lower = std::max(state.rate * options.factor, options.floor);
  if (state.rate - lower > options.epsilon) state.rate = lower;
}

}  // namespace posattn
