// The fleet of a build without CUDA: there is none.
#include "posattn/training/device_fleet.h"

#include "posattn/base/error.h"

namespace posattn {
namespace {

[[noreturn]] void refuse() {
  throw Error(ExitCode::device, "this build has no CUDA engine", "",
              "build with the preset 'cuda', or use --device cpu");
}

}  // namespace

class DeviceFleet::Implementation {};

DeviceFleet::DeviceFleet(const std::vector<DeviceRun>&, int) { refuse(); }
DeviceFleet::~DeviceFleet() = default;
DeviceFleet::DeviceFleet(DeviceFleet&&) noexcept = default;
bool DeviceFleet::compatible(const RunConfig&, const RunConfig&) { return false; }
int64_t DeviceFleet::bytes_needed(const std::vector<RunConfig>&) { refuse(); }
int64_t DeviceFleet::bytes_free() { refuse(); }
const char* DeviceFleet::engine() const { refuse(); }
int64_t DeviceFleet::steps_per_epoch(int) const { refuse(); }
bool DeviceFleet::finished() const { refuse(); }
std::vector<EpochEnd> DeviceFleet::advance(const std::atomic<bool>*) { refuse(); }
void DeviceFleet::rest(int) { refuse(); }
RunState DeviceFleet::state(int, bool) { refuse(); }
ForwardPass& DeviceFleet::network() { refuse(); }
double DeviceFleet::time_steps(int) { refuse(); }

}  // namespace posattn
