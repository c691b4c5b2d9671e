// The paper's loss: over samples, the mean of the sample's squared errors divided by
// the nodes that are read x output_columns (as in Network::gradient: outputs outside the mask
// contribute nothing, but are in the denominator).
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {
namespace {

MetricSum measure_mean_squared_error(const Predictions& predictions) {
  const int nodes = predictions.shape.real_nodes, columns = predictions.shape.output_columns;
  MetricSum sum{.sum = 0, .count = predictions.samples};
  size_t at = 0;
  for (int64_t sample = 0; sample < predictions.samples; ++sample) {
    double squared = 0;
    int64_t output = 0;
    for (int node = 0; node < nodes; ++node) {
      double squared_at_node = 0;
      for (int column = 0; column < columns; ++column, ++at, ++output) {
        if (!predictions.counts(output)) continue;
        const double error = predictions.outputs[at] - static_cast<double>(predictions.targets[at]);
        squared_at_node += error * error;
      }
      squared += squared_at_node;
    }
    sum.sum += squared / (static_cast<double>(predictions.shape.nodes_read()) * columns);
  }
  return sum;
}

}  // namespace

extern const Metric mean_squared_error;
const Metric mean_squared_error{.name = "mse",
                                .heading = "MSE",
                                .words = "mean squared error",
                                .note = "MSE: the mean squared error of the outputs.",
                                .is_loss = true,
                                .measure = measure_mean_squared_error};

}  // namespace posattn
