#include "posattn/training/optimiser.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"

namespace posattn {
namespace {

// With g the gradient, t the step:
//   m = beta1 m + (1 - beta1) g        v = beta2 v + (1 - beta2) g^2
//   w = w - lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon)
// A weight whose gradient was always 0 stays without an epsilon too: m / 0 = 0.
void update(const AdamNumbers<float>& n, std::span<const float> gradient, std::span<float> first,
            std::span<float> second, std::span<float> weights) {
  tile_kernels().adam(n, static_cast<int64_t>(weights.size()), gradient.data(), first.data(),
                      second.data(), weights.data());
}

// The plain form of the kernel, for comparison in double.
void update(const AdamNumbers<double>& n, std::span<const double> gradient, std::span<double> first,
            std::span<double> second, std::span<double> weights) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const double g = gradient[i] + n.decay_to_gradient * weights[i];
    const double m = n.beta1 * first[i] + n.rest1 * g;
    const double v = n.beta2 * second[i] + n.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    const double root = std::sqrt(v) / n.root_correction2 + n.epsilon;
    weights[i] = n.keep * weights[i] - n.step_size * (root != 0 ? m / root : 0);
  }
}

}  // namespace

OptimiserKind optimiser_kind_from(std::string_view name) {
  if (name == "adam") return OptimiserKind::adam;
  if (name == "adamw") return OptimiserKind::adamw;
  throw unknown_name(ExitCode::configuration, "optimiser", name, {"adam", "adamw"});
}

Decay decay_from(std::string_view name) {
  if (name == "all") return Decay::all;
  if (name == "linear") return Decay::maps;
  throw unknown_name(ExitCode::configuration, "decay", name, {"all", "linear"});
}

template <class T>
AdamNumbers<T> adam_numbers(const OptimiserOptions& options, double lr, int64_t step) {
  const double correction1 = 1 - std::pow(options.beta1, static_cast<double>(step));
  const double correction2 = 1 - std::pow(options.beta2, static_cast<double>(step));
  const bool decoupled = options.kind == OptimiserKind::adamw;
  return {
      .decay_to_gradient = static_cast<T>(decoupled ? 0 : options.weight_decay),
      .keep = static_cast<T>(decoupled ? 1 - lr * options.weight_decay : 1),
      .beta1 = static_cast<T>(options.beta1),
      .rest1 = static_cast<T>(1 - options.beta1),
      .beta2 = static_cast<T>(options.beta2),
      .rest2 = static_cast<T>(1 - options.beta2),
      .root_correction2 = static_cast<T>(std::sqrt(correction2)),
      .epsilon = static_cast<T>(options.epsilon),
      .step_size = static_cast<T>(lr / correction1),
  };
}

template <class T>
void optimiser_step(const OptimiserOptions& options, double lr, const Parameters<T>& gradient,
                    OptimiserState<T>& state, Parameters<T>& parameters) {
  const auto numbers = adam_numbers<T>(options, lr, ++state.step);
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    if (!tensor.trained) continue;
    AdamNumbers<T> its = numbers;
    if (options.decay == Decay::maps && !tensor.maps) {
      its.decay_to_gradient = 0;
      its.keep = 1;
    }
    update(its, gradient.slice(tensor), state.first_moment.slice(tensor),
           state.second_moment.slice(tensor), parameters.slice(tensor));
  }
}

template <class T>
double clip_gradient(double max_norm, Parameters<T>& gradient, double slack) {
  double sum = 0;
  for (const TensorInfo& tensor : gradient.layout().tensors()) {
    if (!tensor.trained || tensor.of_training) continue;
    for (const double g : gradient.slice(tensor)) sum += static_cast<double>(g) * g;
  }
  const double norm = std::sqrt(sum);
  const double scale = max_norm / (norm + slack);
  if (scale < 1) {
    for (const TensorInfo& tensor : gradient.layout().tensors()) {
      if (!tensor.trained || tensor.of_training) continue;
      for (T& g : gradient.slice(tensor)) g *= static_cast<T>(scale);
    }
  }
  return norm;
}

double relative_clip(const OptimiserOptions& options, double times, int64_t step) {
  return step == 1 ? 0
                   : times / std::sqrt(1 - std::pow(options.beta2, static_cast<double>(step - 1)));
}

template <class T>
double relative_limit(const OptimiserOptions& options, double times,
                      const OptimiserState<T>& state) {
  double sum = 0;
  for (const T v : state.second_moment.values()) sum += v;
  const double limit = relative_clip(options, times, state.step + 1) * std::sqrt(sum);
  return limit > 0 ? limit : std::numeric_limits<double>::infinity();
}

template AdamNumbers<float> adam_numbers(const OptimiserOptions&, double, int64_t);
template AdamNumbers<double> adam_numbers(const OptimiserOptions&, double, int64_t);
template void optimiser_step(const OptimiserOptions&, double, const Parameters<float>&,
                             OptimiserState<float>&, Parameters<float>&);
template void optimiser_step(const OptimiserOptions&, double, const Parameters<double>&,
                             OptimiserState<double>&, Parameters<double>&);
template double clip_gradient(double, Parameters<float>&, double);
template double clip_gradient(double, Parameters<double>&, double);
template double relative_limit(const OptimiserOptions&, double, const OptimiserState<float>&);
template double relative_limit(const OptimiserOptions&, double, const OptimiserState<double>&);

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
