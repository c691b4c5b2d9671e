#include "posattn/kernels/cuda/graph.h"
#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

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
