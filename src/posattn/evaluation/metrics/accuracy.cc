// The share of accurate samples. An output is right when
// |output - target| <= absolute + relative |target|, and a sample is accurate when every output
// that counts is right.
#include <cmath>

#include "posattn/evaluation/metrics/metric.h"

namespace posattn {
namespace {

constexpr double relative_tolerance = 0.1;
constexpr double absolute_tolerance = 0.1;

// Written so that NaN is not right.
bool is_right(double output, double target) {
  return std::abs(output - target) <= absolute_tolerance + relative_tolerance * std::abs(target);
}

MetricSum measure_accuracy(const Predictions& predictions) {
  const int64_t outputs = predictions.shape.target_count();
  MetricSum sum{.sum = 0, .count = predictions.samples};
  for (int64_t sample = 0; sample < predictions.samples; ++sample) {
    bool accurate = true;
    for (int64_t output = 0; output < outputs && accurate; ++output) {
      const auto at = static_cast<size_t>(sample * outputs + output);
      accurate =
          !predictions.counts(output) || is_right(predictions.outputs[at], predictions.targets[at]);
    }
    sum.sum += accurate ? 1 : 0;
  }
  return sum;
}

}  // namespace

extern const Metric accuracy;
const Metric accuracy{.name = "accuracy",
                      .heading = "accuracy",
                      .words = "accuracy",
                      .note =
                          "Accuracy: the share of samples with every output within 0.1 + 0.1 "
                          "|target|.",
                      .better = Better::higher,
                      .greatest = 1,
                      .logarithmic = false,
                      .percent = true,
                      .measure = measure_accuracy};

}  // namespace posattn
