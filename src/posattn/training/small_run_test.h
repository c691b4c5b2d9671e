// For tests: a run that takes milliseconds.
#pragma once

#include "posattn/training/run_config.h"

namespace posattn {

inline RunConfig small_run() {
  RunConfig config;
  config.length = 3;
  config.width = 8;
  config.mlp_width = 8;
  config.depth = 1;
  config.samples = 50;
  config.batch = 20;
  config.validation_samples = 20;
  config.test_samples = 20;
  config.test_scales = "1,3";
  config.epochs = 6;
  config.validate_every = 2;
  config.test_every = 3;
  config.lr = 3e-3;
  config.checkpoint_every = 0;
  config.device = "cpu";
  config.precision = "fp32";
  return config;
}

}  // namespace posattn
