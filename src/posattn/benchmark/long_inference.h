// Inference over many nodes where attention need not be made as matrices: as the architecture is
// written, with them, and as the engine chooses (model/tiles/mixing.h, model/attention/kernel.h).
#pragma once

#include <string>

namespace posattn {

struct LongInferenceRequest {
  std::string positions;  // "relative", "kernel", or "sinusoidal": what scores are made of
  bool as_written = false;
  int length = 8;
  int threads = 1;
  double seconds = 0.2;
};

struct LongInference {
  double prepare_seconds = 0;  // once for any number of samples
  double sample_seconds = 0;
};

// Bytes of the attention matrices of the model as it is written.
double matrix_bytes(int length);

// One sample through four layers of the paper's sizes, at initial weights.
LongInference measure_long_inference(const LongInferenceRequest& request);

}  // namespace posattn
