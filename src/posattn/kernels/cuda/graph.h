// Records a sequence of kernels once and launches it as one. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <functional>

namespace posattn::cuda {

class StepGraph {
 public:
  // Records what `enqueue` puts on `stream`, without running it. `stream` may not be the default
  // stream, and `enqueue` may neither allocate nor wait. Arguments of kernels are kept as they are
  // now: what changes between launches must lie in device memory.
  StepGraph(const std::function<void(cudaStream_t)>& enqueue, cudaStream_t stream);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  void launch(cudaStream_t stream);

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace posattn::cuda
