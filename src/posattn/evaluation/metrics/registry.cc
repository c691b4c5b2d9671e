#include <algorithm>
#include <string>

#include "posattn/base/error.h"
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {

extern const Metric mean_squared_error, squared_error_over_square, accuracy, cross_entropy,
    label_error, label_accuracy, answer_squared_error, unparsable_answers, hint_squared_error;

const std::vector<const Metric*>& metrics() {
  static const std::vector<const Metric*> all = {
      &mean_squared_error,
      &squared_error_over_square,
      &accuracy,
      &cross_entropy,
      &label_error,
      &label_accuracy,
      &answer_squared_error,
      &unparsable_answers,
      &hint_squared_error,
  };
  return all;
}

const Metric* known_metric(std::string_view name) {
  const auto at = std::ranges::find(metrics(), name, &Metric::name);
  return at == metrics().end() ? nullptr : *at;
}

const Metric& find_metric(std::string_view name) {
  if (const Metric* metric = known_metric(name)) return *metric;
  std::vector<std::string> known;
  for (const Metric* metric : metrics()) known.emplace_back(metric->name);
  throw unknown_name(ExitCode::usage, "metric", name, known);
}

const Metric& training_loss(Loss loss) {
  const auto at = std::ranges::find_if(
      metrics(), [loss](const Metric* metric) { return metric->is_loss && metric->loss == loss; });
  if (at != metrics().end()) return **at;
  throw Error(ExitCode::configuration, "no metric measures the loss of this task",
              "a task whose loss a metric measures");
}

double MetricSum::mean() const {
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

MetricSum& MetricSum::operator+=(const MetricSum& other) {
  sum += other.sum;
  count += other.count;
  return *this;
}

}  // namespace posattn
