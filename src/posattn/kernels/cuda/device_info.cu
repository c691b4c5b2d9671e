#include "posattn/base/error.h"
#include "posattn/kernels/cuda/device_info.h"
#include "posattn/kernels/cuda/device_limits.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn {
namespace {

// 12040 is version 12.4.
std::string version_text(int version) {
  return version == 0 ? ""
                      : std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// Exists for whichever cards the build has code for.
__global__ void probe_kernel() {}

void ask_device(DeviceInfo& info) {
  int driver = 0, toolkit = 0, devices = 0;
  cuda::check(cudaRuntimeGetVersion(&toolkit), "cudaRuntimeGetVersion");
  info.toolkit = version_text(toolkit);
  cuda::check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  info.driver = version_text(driver);
  if (driver == 0) {
    throw Error(ExitCode::device, "no NVIDIA driver was found", {},
                "CUDA needs an NVIDIA GPU and its driver");
  }
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver) {
    throw Error(ExitCode::device,
                "the NVIDIA driver is for CUDA " + info.driver + ", older than this build's CUDA " +
                    info.toolkit,
                {}, "update the NVIDIA driver");
  }
  cuda::check(status, "cudaGetDeviceCount");

  int device = 0;
  cudaDeviceProp properties = {};
  cuda::check(cudaGetDevice(&device), "cudaGetDevice");
  cuda::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  info.name = properties.name;
  info.multiprocessors = properties.multiProcessorCount;
  info.major = properties.major;
  info.minor = properties.minor;
  info.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  info.shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  const std::string capability = info.name + " has compute capability " +
                                 std::to_string(info.major) + "." + std::to_string(info.minor);
  if (info.major < 8) {
    throw Error(ExitCode::device, capability, "8.0 or newer",
                "use a GPU of the Ampere generation or newer");
  }
  cudaFuncAttributes attributes = {};
  const auto* kernel = reinterpret_cast<const void*>(probe_kernel);
  if (cudaFuncGetAttributes(&attributes, kernel) == cudaErrorNoKernelImageForDevice) {
    cudaGetLastError();
    throw Error(ExitCode::device, capability + ", for which this build has no code", {},
                "configure it on a machine with this GPU, or with -DPOSATTN_ALL_GPUS=ON");
  }
  size_t free_bytes = 0, total_bytes = 0;  // the first question that only a GPU we get answers
  cuda::check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
}

}  // namespace

DeviceInfo device_info() {
  DeviceInfo info;
  info.built = true;
  try {
    ask_device(info);
    info.usable = true;
  } catch (const Error& error) {
    info.problem = error.problem();
    if (!error.expected().empty()) info.problem += ", expected " + error.expected();
    info.hint = error.hint();
  } catch (const std::exception& error) {
    info.problem = error.what();
  }
  return info;
}

namespace cuda {

DeviceLimits device_limits() {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto ask = [device](cudaDeviceAttr attribute) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, attribute, device), "cudaDeviceGetAttribute");
    return value;
  };
  return {ask(cudaDevAttrComputeCapabilityMajor), ask(cudaDevAttrComputeCapabilityMinor),
          ask(cudaDevAttrMaxSharedMemoryPerBlockOptin)};
}

}  // namespace cuda
}  // namespace posattn
