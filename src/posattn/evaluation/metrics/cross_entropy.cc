// The loss of tasks with classes: the mean of -log p(label) over the nodes that count (as in
// Network::gradient: label >= 0, and mask != 0 in the node's first column).
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/kernels/generic/rows.h"

namespace posattn {
namespace {

MetricSum measure_cross_entropy(const Predictions& predictions) {
  const int64_t nodes = predictions.shape.real_nodes, classes = predictions.shape.output_columns;
  std::vector<float> unused(static_cast<size_t>(classes));
  MetricSum sum;
  for (int64_t row = 0; row < predictions.samples * nodes; ++row) {
    const int32_t label = predictions.labels[static_cast<size_t>(row)];
    if (label < 0 || !predictions.counts(row % nodes * classes)) continue;
    generic::cross_entropy(1, classes, 0.0f, predictions.outputs.data() + row * classes, &label,
                           unused.data(), sum.sum);
    ++sum.count;
  }
  return sum;
}

}  // namespace

extern const Metric cross_entropy;
const Metric cross_entropy{.name = "cross_entropy",
                           .heading = "cross-entropy",
                           .words = "cross-entropy",
                           .note = "Cross-entropy: the mean of -log p of the right class.",
                           .loss = Loss::cross_entropy,
                           .is_loss = true,
                           .measure = measure_cross_entropy};

}  // namespace posattn
