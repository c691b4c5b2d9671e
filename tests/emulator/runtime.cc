// The host side of the emulated CUDA runtime.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "emulator.h"

using Work = std::vector<std::function<void()>>;

struct CUstream_st {};
struct CUevent_st {
  std::chrono::steady_clock::time_point time;
  // Recorded in a capture: after so much of a stream's work.
  cudaStream_t stream = nullptr;
  size_t work = 0;
};
struct CUgraph_st {
  Work work;
};
struct CUgraphExec_st {
  Work work;
};

namespace {

constexpr size_t device_bytes = size_t{2} << 30;
constexpr size_t default_shared_bytes = 48 << 10;  // without asking
constexpr posattn::cuda::DeviceLimits usual_limits{9, 0, 227 << 10};

struct Device {
  std::mutex mutex;
  std::map<uintptr_t, size_t> allocations;
  size_t used = 0;
  std::map<const void*, size_t> shared_limits;
  posattn::cuda::DeviceLimits limits = usual_limits;

  size_t most_shared_bytes() const { return static_cast<size_t>(limits.shared_bytes); }
};
Device& device() {
  static Device the_device;
  return the_device;
}

// The graph that this thread captures, and its stream; one at a time is enough.
thread_local Work* capture = nullptr;
thread_local cudaStream_t captured_stream = nullptr;

// Streams that joined the capture by waiting for an event of it. Their work becomes part of the
// graph as late as they may do it, when somebody waits for it: what the captured stream does too
// early is then seen.
struct Fork {
  Work work;
  size_t moved = 0;  // of it, into the graph
};
thread_local std::map<cudaStream_t, Fork> forks;

void move_work(Fork& fork, size_t end) {
  for (; fork.moved < end; ++fork.moved) capture->push_back(fork.work[fork.moved]);
}

// What makes the host wait cannot be part of a graph.
cudaError_t blocking() {
  return capture == nullptr ? cudaSuccess : cudaErrorStreamCaptureUnsupported;
}

bool on_device(const void* pointer, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(pointer);
  const std::lock_guard lock(device().mutex);
  auto next = device().allocations.upper_bound(address);
  if (next == device().allocations.begin()) return false;
  --next;
  return address - next->first + bytes <= next->second;
}

// Whether a pointer lies where the copy's kind says; host memory is whatever is not the device's.
bool as_said(const void* pointer, size_t bytes, bool said_device) {
  return on_device(pointer, said_device ? bytes : 1) == said_device;
}

cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0 || kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  return as_said(to, bytes, to_device) && as_said(from, bytes, from_device) ? cudaSuccess
                                                                            : cudaErrorInvalidValue;
}

}  // namespace

namespace posattn::emulator {

PretendedCard::PretendedCard(const cuda::DeviceLimits& limits) { device().limits = limits; }
PretendedCard::~PretendedCard() { device().limits = usual_limits; }

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  if (capture == nullptr) {
    work();
  } else if (stream == captured_stream) {
    capture->push_back(std::move(work));
  } else if (const auto fork = forks.find(stream); fork != forks.end()) {
    fork->second.work.push_back(std::move(work));
  } else {
    return cudaErrorStreamCaptureUnsupported;
  }
  return cudaSuccess;
}

cudaError_t launch_kernel(const cudaLaunchConfig_t& configuration, const void* kernel,
                          std::function<void()> thread) {
  const dim3 grid = configuration.gridDim, block = configuration.blockDim;
  const size_t shared_bytes = configuration.dynamicSmemBytes;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 || grid.y == 0 || grid.z == 0 ||
      grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return cudaErrorInvalidConfiguration;
  }
  size_t limit = default_shared_bytes;
  {
    const std::lock_guard lock(device().mutex);
    const auto asked = device().shared_limits.find(kernel);
    if (asked != device().shared_limits.end()) limit = std::max(limit, asked->second);
    limit = std::min(limit, device().most_shared_bytes());
  }
  if (shared_bytes > limit) return cudaErrorInvalidValue;
  return enqueue(configuration.stream, [grid, block, shared_bytes, thread = std::move(thread)] {
    run_grid({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, thread);
  });
}

}  // namespace posattn::emulator

using posattn::emulator::enqueue;

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection:
      return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorDevicesUnavailable:
      return "cudaErrorDevicesUnavailable";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    case cudaErrorUnsupportedPtxVersion:
      return "cudaErrorUnsupportedPtxVersion";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorSystemDriverMismatch:
      return "cudaErrorSystemDriverMismatch";
    case cudaErrorStreamCaptureUnsupported:
      return "cudaErrorStreamCaptureUnsupported";
    case cudaErrorStreamCaptureUnjoined:
      return "cudaErrorStreamCaptureUnjoined";
  }
  return "unknown error";
}
const char* cudaGetErrorString(cudaError_t error) { return cudaGetErrorName(error); }
cudaError_t cudaGetLastError() { return cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* number) {
  *number = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) { return number == 0 ? cudaSuccess : cudaErrorNoDevice; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated CUDA device");
  properties->totalGlobalMem = device_bytes;
  properties->sharedMemPerBlockOptin = device().most_shared_bytes();
  properties->major = device().limits.major;
  properties->minor = device().limits.minor;
  properties->multiProcessorCount = 2;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const posattn::cuda::DeviceLimits& limits = device().limits;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = limits.major;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = limits.minor;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(limits.shared_bytes);
      return cudaSuccess;
  }
  return cudaErrorInvalidValue;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  const std::lock_guard lock(device().mutex);
  *total = device_bytes;
  *free = device_bytes - device().used;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return blocking(); }

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return blocking(); }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (capture != nullptr) {
    event->stream = stream;
    if (stream == captured_stream) return cudaSuccess;
    const auto fork = forks.find(stream);
    if (fork == forks.end()) return cudaErrorStreamCaptureUnsupported;
    event->work = fork->second.work.size();
    return cudaSuccess;
  }
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return blocking(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return blocking(); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (capture == nullptr) return cudaSuccess;
  if (event->stream != captured_stream) {
    const auto fork = forks.find(event->stream);
    if (fork == forks.end()) return cudaErrorStreamCaptureUnsupported;
    move_work(fork->second, event->work);
  }
  if (stream != captured_stream) forks[stream];
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  if (capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  const std::lock_guard lock(device().mutex);
  if (bytes > device_bytes - device().used || posix_memalign(pointer, 256, bytes) != 0) {
    return cudaErrorMemoryAllocation;
  }
  std::memset(*pointer, 0xff, bytes);
  device().allocations[reinterpret_cast<uintptr_t>(*pointer)] = bytes;
  device().used += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const std::lock_guard lock(device().mutex);
  const auto found = device().allocations.find(reinterpret_cast<uintptr_t>(pointer));
  if (found == device().allocations.end()) return cudaErrorInvalidValue;
  device().used -= found->second;
  device().allocations.erase(found);
  free(pointer);
  return cudaSuccess;
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return posix_memalign(pointer, 256, bytes) == 0 ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return cudaMallocHost(pointer, bytes);
}
cudaError_t cudaFreeHost(void* pointer) {
  free(pointer);
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  return cudaMemcpyAsync(to, from, bytes, kind);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  const cudaError_t status = check_copy(to, from, bytes, kind);
  if (status != cudaSuccess || bytes == 0) return status;
  return enqueue(stream, [=] { std::memcpy(to, from, bytes); });
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  if (capture != nullptr) return cudaErrorStreamCaptureUnsupported;
  return cudaMemsetAsync(to, value, bytes);
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (!on_device(to, bytes)) return cudaErrorInvalidValue;
  return enqueue(stream, [=] { std::memset(to, value, bytes); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream == nullptr) return cudaErrorStreamCaptureUnsupported;
  if (capture != nullptr) return cudaErrorInvalidValue;
  capture = new Work;
  captured_stream = stream;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t* graph) {
  if (capture == nullptr) return cudaErrorInvalidValue;
  bool joined = true;
  for (const auto& [stream, fork] : forks) joined = joined && fork.moved == fork.work.size();
  *graph = joined ? new CUgraph_st{std::move(*capture)} : nullptr;
  delete capture;
  capture = nullptr;
  forks.clear();
  return joined ? cudaSuccess : cudaErrorStreamCaptureUnjoined;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable = new CUgraphExec_st{graph->work};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return enqueue(stream, [executable] {
    for (const auto& work : executable->work) work();
  });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || static_cast<size_t>(value) > device().most_shared_bytes()) {
    return cudaErrorInvalidValue;
  }
  const std::lock_guard lock(device().mutex);
  device().shared_limits[kernel] = static_cast<size_t>(value);
  return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  return cudaSuccess;
}
