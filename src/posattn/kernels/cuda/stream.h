// Streams and events that end with their scope. For .cu files.
#pragma once

#include <cuda_runtime.h>

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

}  // namespace posattn::cuda
