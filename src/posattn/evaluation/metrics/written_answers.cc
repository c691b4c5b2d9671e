// What is measured of the numbers that a model writes as text. Both come from answer_errors
// (measure.h).
#include "posattn/evaluation/metrics/metric.h"

namespace posattn {

extern const Metric answer_squared_error, unparsable_answers;
const Metric answer_squared_error{
    .name = "answer_mse",
    .heading = "MSE of answers",
    .words = "mean squared error of written answers",
    .note = "MSE of answers: over the answers that are numbers; those that are not are left out.",
    .loss = Loss::cross_entropy,
    .of_answers = true};

const Metric unparsable_answers{.name = "unparsable",
                                .heading = "unparsable",
                                .words = "share of answers that are no number",
                                .note =
                                    "unparsable: the share of written answers that are no "
                                    "number.",
                                .greatest = 1,
                                .logarithmic = false,
                                .percent = true,
                                .loss = Loss::cross_entropy,
                                .of_answers = true};

}  // namespace posattn
