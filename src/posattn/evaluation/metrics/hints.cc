// How well linear maps read a program's words from the states between layers: measured by training
// (training/hints.h), which has the maps and the program.
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {

extern const Metric hint_squared_error;
const Metric hint_squared_error{
    .name = "hint_mse",
    .heading = "hint MSE",
    .words = "mean squared error of the hints",
    .note = "Hint MSE: the mean squared error of the program's words, read from the states.",
    .of_training = true};

}  // namespace posattn
