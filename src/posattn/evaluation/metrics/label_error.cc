// The share of wrong classes among the nodes that count, and that of right ones.
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {
namespace {

MetricSum measure_label_error(const Predictions& predictions) {
  const int64_t nodes = predictions.shape.real_nodes, classes = predictions.shape.output_columns;
  MetricSum sum;
  for (int64_t row = 0; row < predictions.samples * nodes; ++row) {
    const int32_t label = predictions.labels[static_cast<size_t>(row)];
    if (label < 0 || !predictions.counts(row % nodes * classes)) continue;
    sum.sum += decided_class(predictions.outputs.subspan(row * classes, classes)) == label ? 0 : 1;
    ++sum.count;
  }
  return sum;
}

}  // namespace

extern const Metric label_error, label_accuracy;
const Metric label_error{.name = "label_error",
                         .heading = "error",
                         .words = "share of wrong classes",
                         .note = "Error: the share of nodes whose class is wrong.",
                         .greatest = 1,
                         .logarithmic = false,
                         .percent = true,
                         .loss = Loss::cross_entropy,
                         .measure = measure_label_error};

const Metric label_accuracy{.name = "label_accuracy",
                            .heading = "accuracy",
                            .words = "share of right classes",
                            .note = "Accuracy: the share of nodes whose class is right.",
                            .better = Better::higher,
                            .greatest = 1,
                            .logarithmic = false,
                            .percent = true,
                            .loss = Loss::cross_entropy,
                            .derived_from = "label_error",
                            .derive = [](double error, double) { return 1 - error; }};

}  // namespace posattn
