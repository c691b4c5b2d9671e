// Samples with their answers, as a certificate reads them.
#pragma once

#include <cstdint>
#include <span>

namespace posattn::bounds {

struct LabelledSamples {
  std::span<const float> inputs, targets;  // [samples, real nodes]
  int64_t samples = 0;
};

}  // namespace posattn::bounds
