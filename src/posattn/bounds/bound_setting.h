// The sizes and probabilities that a bound is computed for.
#pragma once

namespace posattn::bounds {

struct BoundSetting {
  double samples = 30000;  // m, independent; some bounds need more than integers hold
  double range = 2;        // R: |x_i| <= R, known and not estimated
  double clip = 1;         // b: the loss is the mean over nodes of min((f_i - y_i)^2, b^2)
  double delta = 0.05;     // the statement holds with probability 1 - delta
};

// Throws Error(usage), naming the flag of posattn bound.
void check(const BoundSetting& setting);

}  // namespace posattn::bounds
