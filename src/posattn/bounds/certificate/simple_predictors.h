// Predictors without a network, with which a certificate is to be compared. Losses are clipped and
// in units of b^2.
#pragma once

#include "posattn/bounds/certificate/collapsed_engine.h"

namespace posattn::bounds {

struct SimplePredictors {
  double constant = 0;  // of each node: the mean or the median, whichever is better
  double linear = 0;    // of each node: affine in all inputs, by least squares
};

// Fitted to `training`, measured on `fresh`.
SimplePredictors simple_predictors(const LabelledSamples& training, const LabelledSamples& fresh,
                                   double clip);

}  // namespace posattn::bounds
