// The measurements of `posattn bench` on the CPU: a training step (forward, backward, optimiser),
// inference, and the rows of the table of operations. Flops are nominal: the multiply-adds of the
// architecture as it is written (6 flops each for training, 2 for inference), so a cleverer
// algorithm may pass the hardware's peak.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "posattn/training/run_config.h"

namespace posattn {

// The median of repeated measurements with their spread.
struct Timing {
  double median = 0, lower_quartile = 0, upper_quartile = 0;  // seconds
  int repetitions = 0;
};

// Runs `action` a few times unmeasured, then `repetitions` times (more when `seconds` is not over).
Timing time_repeated(const std::function<void()>& action, int repetitions, double seconds);

// Fused multiply-adds in all threads at once for about `seconds`: GFLOP/s.
double measure_peak_gflops(int threads, double seconds);

// The most memory this process has held so far, in bytes.
double peak_memory_bytes();

struct StepRequest {
  RunConfig config;  // task, model, batch, optimiser and path of a training run
  int threads = 1;
  int tile = 0;
  int repetitions = 15;
  double seconds = 1;
};

struct StepResult {
  StepRequest request;
  Timing timing;
  double nominal_flops = 0;     // of the whole step
  double per_step_flops = 0;    // the part that does not grow with the batch
  double arithmetic_flops = 0;  // what the engine computes, folded
  double gflops() const { return nominal_flops / timing.median / 1e9; }
};

StepResult measure_training_step(const StepRequest& request);
StepResult measure_inference(const StepRequest& request);

struct OperationResult {
  std::string name, direction;  // "forward" or "gradient"
  double microseconds = 0, gflops = 0;
};
std::vector<OperationResult> measure_operations();

}  // namespace posattn
