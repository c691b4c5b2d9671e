#include "posattn/cli/machine.h"

#include <fmt/format.h>
#include <omp.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "posattn/base/command.h"
#include "posattn/base/error.h"
#include "posattn/base/version.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/model/cuda/step/engine_choice.h"

namespace posattn {
namespace {

// The value of the first line "name : value" of /proc/cpuinfo.
std::string cpu_field(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(name)) continue;
    const size_t start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? "" : line.substr(start);
  }
  return "";
}

std::vector<std::string> vector_features() {
  constexpr std::array wanted = {"sse4_2",   "avx",      "avx2",        "fma",
                                 "avx512f",  "avx512bw", "avx512_vnni", "avx512_bf16",
                                 "amx_bf16", "asimd",    "sve"};
  std::istringstream flags(cpu_field("flags") + cpu_field("Features"));  // of x86, of ARM
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;) {
    if (std::find(wanted.begin(), wanted.end(), flag) != wanted.end()) found.push_back(flag);
  }
  return found;
}

}  // namespace

Machine find_machine() {
  Machine machine;
  machine.cpu = cpu_field("model name");
  if (utsname system; machine.cpu.empty() && ::uname(&system) == 0) machine.cpu = system.machine;
  machine.features = vector_features();
  machine.instruction_set = instruction_set();
  machine.cores = omp_get_num_procs();
  try {
    const BlasInfo& blas = blas_info();
    machine.blas = blas.configuration;
    machine.blas_kernel = blas.kernel;
    machine.blas_variant = blas.variant;
    machine.products = blas.products;
  } catch (const Error& error) {
    machine.blas_problem = error.problem() + "; " + error.hint();
  }
  machine.gpu = device_info();
  return machine;
}

std::string machine_line(const Machine& machine, int threads, const std::string& device) {
  std::string gpu;
  if (!machine.gpu.built) {
    gpu = "no CUDA (not built)";
  } else if (!machine.gpu.usable) {
    gpu = fmt::format("no CUDA ({})", machine.gpu.problem);
  } else {
    const bool tried = cuda::tried_on_hardware(machine.gpu.major, machine.gpu.minor);
    gpu = fmt::format("{}{}, {:.0f} GB{}", device == "cuda" ? "on " : "on the CPU, not on ",
                      machine.gpu.name, static_cast<double>(machine.gpu.memory_bytes) / 1e9,
                      tried ? "" : " (such a card is untried)");
  }
  const std::string products =
      fmt::format("{} ({}, {} kernels)",
                  machine.products == "own" ? "our own products, not OpenBLAS's" : "OpenBLAS",
                  machine.blas_variant, machine.blas_kernel);
  return fmt::format("posattn {} · {}, {} thread{}, {} · {} · {}", build_info().version,
                     machine.cpu, threads, threads == 1 ? "" : "s", machine.instruction_set,
                     products, gpu);
}

Json device_json(const DeviceInfo& gpu) {
  auto engines = Json::array();
  if (gpu.usable) {
    for (const auto& range : cuda::paper_engines({gpu.major, gpu.minor, gpu.shared_bytes})) {
      engines.push_back({{"model", range.preset},
                         {"nodes", {range.first_nodes, range.last_nodes}},
                         {"engine", range.engine}});
    }
  }
  return {{"built", gpu.built},
          {"usable", gpu.usable},
          {"name", gpu.name},
          {"driver", gpu.driver},
          {"toolkit", gpu.toolkit},
          {"compute_capability", gpu.major > 0 ? fmt::format("{}.{}", gpu.major, gpu.minor) : ""},
          {"multiprocessors", gpu.multiprocessors},
          {"memory_gb", static_cast<double>(gpu.memory_bytes) / 1e9},
          {"tried", cuda::tried_on_hardware(gpu.major, gpu.minor)},
          {"engines", engines},
          {"problem", gpu.problem},
          {"hint", gpu.hint}};
}

std::string find_gnuplot() {
  try {
    std::string text = run_to_end({"gnuplot", "--version"}).output;
    text.erase(std::min(text.size(), text.find('\n')));
    return text;
  } catch (const Error&) {  // there is none
    return "";
  }
}

std::string find_on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = folder + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

int thread_count(int requested) {
  constexpr int most = 1024;
  if (requested < 0 || requested > most) {
    throw Error(ExitCode::usage, fmt::format("--threads {} is out of range", requested),
                fmt::format("1 to {}, or 0 for every core", most));
  }
  return requested == 0 ? omp_get_num_procs() : requested;
}

}  // namespace posattn
