// Streams, events and graphs that end with their scope. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "posattn/kernels/cuda/runtime.h"

namespace posattn::cuda {

class Event {
 public:
  Event() {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "cudaEventRecord"); }
  // Makes the host wait for the work before the latest record; none: at once.
  void wait() { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class Stream {
 public:
  // with_default: waits for copies and fills on the default stream, and they for it.
  enum Kind : unsigned { with_default = cudaStreamDefault, independent = cudaStreamNonBlocking };
  explicit Stream(Kind kind) {
    check(cudaStreamCreateWithFlags(&stream_, kind), "cudaStreamCreateWithFlags");
  }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void wait() { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  void wait_for(const Event& event) {
    check(cudaStreamWaitEvent(stream_, event.get(), 0), "cudaStreamWaitEvent");
  }
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// Records a sequence of kernels once and launches it as one.
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
