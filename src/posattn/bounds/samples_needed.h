// How many training samples a bound needs to promise a gap: the inverse of norm_bound and
// count_bound in m.
#pragma once

#include "posattn/bounds/bound_setting.h"
#include "posattn/bounds/network_norms.h"

namespace posattn::bounds {

struct SamplesNeeded {
  double gap = 0;  // eps: what is to be promised, of |risk - training loss|
  // ln of the smallest m with a bound of at most eps, found to a thousandth of m.
  double log_by_norms = 0, log_by_count = 0;
};

// The setting's own m does not matter. Throws Error(usage) for a gap that is no number above 0.
SamplesNeeded samples_needed(const NetworkNorms& norms, const BoundSetting& setting, double gap);

}  // namespace posattn::bounds
