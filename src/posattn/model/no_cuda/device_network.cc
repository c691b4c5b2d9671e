// The GPU's network of a build without CUDA: there is none.
#include "posattn/model/device_network.h"

#include "posattn/base/error.h"

namespace posattn {
namespace {

[[noreturn]] void refuse_network() {
  throw Error(ExitCode::device, "this build has no CUDA engine", "",
              "build with the preset 'cuda'");
}

}  // namespace

class DeviceNetwork::Implementation {};

DeviceNetwork::DeviceNetwork(const ModelSpec&, int64_t) { refuse_network(); }
DeviceNetwork::~DeviceNetwork() = default;
int64_t DeviceNetwork::bytes_needed(const ModelSpec&, int64_t) { refuse_network(); }
void DeviceNetwork::forward(const Parameters<float>&, const Batch&, std::span<float>) {
  refuse_network();
}

}  // namespace posattn
