#include <string>

#include "posattn/base/error.h"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"

namespace posattn::cuda {
namespace {

std::string hint_for(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation:
      return "the GPU's memory is full: train fewer runs at once or with a smaller batch, or end "
             "other programs on this GPU";
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
      return "no GPU is free for this program; `nvidia-smi` lists them";
    case cudaErrorInsufficientDriver:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorUnsupportedPtxVersion:
      return "the NVIDIA driver is older than the CUDA toolkit of this build: update the driver";
    case cudaErrorNoKernelImageForDevice:
      return "this build has no code for this GPU: configure it on a machine with this GPU, or "
             "with -DPOSATTN_ALL_GPUS=ON";
    default:
      return "";
  }
}

}  // namespace

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the runtime keeps it otherwise, and the next call would report it again
  throw Error(ExitCode::device,
              std::string("CUDA: ") + what + " failed: " + cudaGetErrorString(status), {},
              hint_for(status));
}

StepGraph::StepGraph(const std::function<void(cudaStream_t)>& enqueue, cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  try {
    enqueue(stream);
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  const cudaError_t status = cudaGraphInstantiate(&executable_, graph, 0);
  cudaGraphDestroy(graph);
  check(status, "cudaGraphInstantiate");
}

StepGraph::~StepGraph() { cudaGraphExecDestroy(executable_); }

void StepGraph::launch(cudaStream_t stream) {
  check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
}

}  // namespace posattn::cuda
