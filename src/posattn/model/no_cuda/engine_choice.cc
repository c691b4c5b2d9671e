#include "posattn/model/cuda/step/engine_choice.h"

namespace posattn::cuda {

const char* engine_name(EngineKind /*kind*/) { return "none"; }

std::vector<EngineRange> paper_engines(const DeviceLimits& /*limits*/) { return {}; }

}  // namespace posattn::cuda
