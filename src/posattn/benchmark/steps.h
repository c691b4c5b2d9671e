// The measurements of `posattn bench` on the CPU: a training step (forward, backward, optimiser),
// inference, and the rows of the table of operations. Flops are nominal: the multiply-adds of the
// architecture as it is written (6 flops each for training, 2 for inference), so a cleverer
// algorithm may pass the hardware's peak.
#pragma once

#include <functional>

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

// How long a fleet's training step takes on the GPU.

struct DeviceTiming {
  std::string engine;  // "general", "fused-positional", ...
  int seeds = 0;
  Timing step;               // of all seeds together, in seconds
  double nominal_flops = 0;  // of that step, as the architecture is written
  double microseconds_per_seed() const { return step.median * 1e6 / seeds; }
  double gflops() const { return nominal_flops / step.median / 1e9; }
};

// Trains `seeds` runs of this configuration in lockstep for about `seconds`, the same epoch
// again and again. Throws Error(device) where there is no usable GPU, or too little memory.
DeviceTiming time_device_steps(RunConfig config, int seeds, double seconds);

// Measures the GPU's limits, with which a step's time is compared.
struct DeviceCeilings {
  double copy_bytes = 0;    // bytes read plus written per second, device memory to device memory
  double tensor_flops = 0;  // per second, tf32 products by mma.sync, nothing else running
  double fp32_flops = 0;    // per second, fused multiply-adds
};

// Throws Error(device) where there is no usable GPU.
DeviceCeilings measure_device_ceilings();

// Inference over many nodes where attention need not be made as matrices: as the architecture is
// written, with them, and as the engine chooses (model/tiles/mixing.h, model/attention/kernel.h).

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

// How long runs will take on this machine, from a short measurement of the paper's two models and
// the nominal work of each run.

struct MachineSpeed {
  // Nominal flops per second of training: attention from positions, attention from the data.
  double from_positions = 0, from_data = 0;
};

// Takes about two seconds. On the GPU: of fleets of ten runs.
MachineSpeed measure_speed(const std::string& device, const std::string& precision, int threads);

double estimated_seconds(const std::vector<RunConfig>& runs, const MachineSpeed& speed);

// Finds the programs of a benchmark. The peer runs in a process of its own: its threads and its
// memory allocator are tuned by environment variables that are read at start-up.

// bench/peer_torch.py, from the source tree or the installed data. Throws Error(data) with a hint
// where neither has it.
std::filesystem::path find_peer_script();

// This very program, for measuring a setting in a fresh process.
std::filesystem::path this_program();

}  // namespace posattn
