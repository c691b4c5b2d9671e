#include "posattn/model/cuda/step/engine_choice.h"

namespace posattn::cuda {

std::vector<EngineRange> paper_engines(const DeviceLimits& /*limits*/) { return {}; }

}  // namespace posattn::cuda
