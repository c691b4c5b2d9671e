// Adam (Kingma and Ba, arXiv 1412.6980) and AdamW (Loshchilov and Hutter, arXiv 1711.05101) with
// PyTorch's formulas: Adam adds the weight decay to the gradient, AdamW shrinks the weights first.
// Every operation is per element, so the result does not depend on how the work is split.
#pragma once

#include <limits>

#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/spec/parameters.h"

namespace posattn {

enum class OptimiserKind { adam, adamw };
OptimiserKind optimiser_kind_from(std::string_view name);  // throws unknown_name(configuration)

// What weight decay pulls on: everything, or the matrices of linear maps alone (no biases, gains
// and tables), as GPT does.
enum class Decay { all, maps };
Decay decay_from(std::string_view name);  // throws unknown_name(configuration)

struct OptimiserOptions {
  OptimiserKind kind = OptimiserKind::adam;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  Decay decay = Decay::all;
};

template <class T>
struct OptimiserState {
  explicit OptimiserState(const std::shared_ptr<const ParameterLayout>& layout)
      : first_moment(layout), second_moment(layout) {}
  int64_t step = 0;  // completed steps
  Parameters<T> first_moment, second_moment;
};

// The numbers of step `step` (from 1) at rate `lr`.
template <class T>
AdamNumbers<T> adam_numbers(const OptimiserOptions& options, double lr, int64_t step);

// One step: state and parameters are updated in place; tensors that are not trained stay as is.
template <class T>
void optimiser_step(const OptimiserOptions& options, double lr, const Parameters<T>& gradient,
                    OptimiserState<T>& state, Parameters<T>& parameters);

// Scales the gradient of the model's trained tensors by min(1, max_norm / (norm + slack)), norm
// being their joint Euclidean norm, which is returned.
template <class T>
double clip_gradient(double max_norm, Parameters<T>& gradient, double slack = 1e-6);

// A largest norm that grows with the gradients: `times` the norm that they had lately,
//   limit = times sqrt(sum_i v_i / (1 - beta2^t)),   v Adam's second moments after t steps
// Gradients k times as large make v k^2 times and the limit k times as large. So clipping with
// slack 0 is the same, for k = 2^j to the bit: training does not see the unit of the data. Nothing
// is clipped in the first step, nor before any gradient was other than 0.
template <class T>
double relative_limit(const OptimiserOptions& options, double times,
                      const OptimiserState<T>& state);
// times / sqrt(1 - beta2^t) of step t + 1, what sqrt(sum_i v_i) is multiplied by; 0 in the first.
double relative_clip(const OptimiserOptions& options, double times, int64_t step);

// The learning rate over time.
//   plateau        after each epoch: better means loss < best (1 - threshold); after more than
//                  `patience` epochs in a row without, rate = max(rate * factor, floor), skipped
//                  when the change is at most `epsilon`; then counting starts again
//   constant       lr
//   warmup-linear  lr * step / warmup_steps, then linearly to 0 when total_steps are done

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
