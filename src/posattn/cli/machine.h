// What the program found on this machine.
#pragma once

#include <vector>

#include "posattn/cli/terminal.h"
#include "posattn/kernels/cuda/device_info.h"

namespace posattn {

struct Machine {
  std::string cpu;                    // the model as the system names it
  std::vector<std::string> features;  // vector instruction sets the CPU offers
  std::string instruction_set;        // the one the tile kernels use
  int cores = 1;                      // that this process may use
  std::string blas;                   // OpenBLAS's own description of its build
  std::string blas_kernel;            // its kernels for this CPU
  std::string blas_variant;           // "pthread", "openmp"
  std::string products;               // large ones in float: by "OpenBLAS", or our "own"
  std::string blas_problem;           // why it cannot be used, or ""
  DeviceInfo gpu;
};

Machine find_machine();

// "posattn 0.2.0 · CPU, 2 threads · OpenBLAS (pthread, SkylakeX kernels) · no CUDA (not built)";
// `device`: the one used, "cpu" or "cuda".
std::string machine_line(const Machine& machine, int threads, const std::string& device);

Json device_json(const DeviceInfo& gpu);

// The text of `gnuplot --version`, or "" when there is none.
std::string find_gnuplot();

// Where a program lies on the PATH, or "".
std::string find_on_path(const std::string& program);

// --threads as given: 0 means every core this process may use. Throws Error(usage) for others
// below 1 or beyond reason.
int thread_count(int requested);

}  // namespace posattn
