// The learning rate over time.
//   plateau        after each epoch: better means loss < best (1 - threshold); after more than
//                  `patience` epochs in a row without, rate = max(rate * factor, floor), skipped
//                  when the change is at most `epsilon`; then counting starts again
//   constant       lr
//   warmup-linear  lr * step / warmup_steps, then linearly to 0 when total_steps are done
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace posattn {

enum class ScheduleKind { plateau, constant, warmup_linear };
ScheduleKind schedule_kind_from(std::string_view name);  // throws unknown_name(configuration)

struct ScheduleOptions {
  ScheduleKind kind = ScheduleKind::plateau;
  double lr = 5e-4;
  int64_t patience = 50;
  double factor = 0.9, threshold = 1e-4, floor = 1e-6, epsilon = 1e-8;
  int64_t warmup_steps = 0, total_steps = 0;
};

struct ScheduleState {
  double rate = 0;  // the plateau's current rate
  double best = std::numeric_limits<double>::infinity();
  int64_t bad_epochs = 0;
  bool operator==(const ScheduleState&) const = default;
};

ScheduleState initial_schedule(const ScheduleOptions& options);

// The rate of the next step when `completed_steps` are done.
double learning_rate(const ScheduleOptions& options, const ScheduleState& state,
                     int64_t completed_steps);

// Call this after each epoch with the sum of its batch losses.
void after_epoch(const ScheduleOptions& options, double summed_loss, ScheduleState& state);

}  // namespace posattn
