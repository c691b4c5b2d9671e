// The forward pass of any ModelSpec but a routed one on a GPU, in fp32, by the general engine: for
// tests of runs that train there. Threads may share one; they take turns.
#pragma once

#include <cstdint>
#include <memory>

#include "posattn/model/network.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

class DeviceNetwork final : public ForwardPass {
 public:
  // For batches of any size; one of at most `samples` is computed at once if memory allows. Throws
  // Error(device) where the GPU or its memory do not allow it.
  DeviceNetwork(const ModelSpec& spec, int64_t samples);
  ~DeviceNetwork() override;

  // Device memory, in bytes.
  static int64_t bytes_needed(const ModelSpec& spec, int64_t samples);

  void forward(const Parameters<float>& parameters, const Batch& batch,
               std::span<float> outputs) override;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace posattn
