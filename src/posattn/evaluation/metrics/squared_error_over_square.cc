// The squared error over c^2: constant over c for a model that scales with its input.
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {

extern const Metric squared_error_over_square;
const Metric squared_error_over_square{
    .name = "mse_over_c2",
    .heading = "MSE/c^2",
    .words = "mean squared error over c\u00b2",
    .note = "MSE / c\u00b2 stays constant for a model that scales with its input.",
    .derived_from = "mse",
    .derived_on = "c",
    .derive = [](double mse, double c) { return mse / (c * c); }};

}  // namespace posattn
