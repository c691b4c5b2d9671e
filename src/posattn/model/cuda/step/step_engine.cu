#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/large/engine.h"
#include "posattn/model/cuda/medium/engine.h"
#include "posattn/model/cuda/small_positional/engine.h"
#include "posattn/model/cuda/small_standard/engine.h"
#include "posattn/model/cuda/step/engine_choice.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

std::unique_ptr<StepEngine> make_step_engine(const FleetShape& shape, Path path) {
  switch (choose_engine(shape.spec, shape.precision, path, device_limits())) {
    case EngineKind::fused_positional:
      return make_fused_positional(shape);
    case EngineKind::fused_standard:
      return make_fused_standard(shape);
    case EngineKind::fused_medium:
      return make_fused_medium(shape);
    case EngineKind::fused_large:
      return make_fused_large(shape);
    case EngineKind::general:
      break;
  }
  return make_general(shape);
}

int64_t step_engine_bytes(const FleetShape& shape, Path path) {
  switch (choose_engine(shape.spec, shape.precision, path, device_limits())) {
    case EngineKind::fused_positional:
      return fused_positional_bytes(shape);
    case EngineKind::fused_standard:
      return fused_standard_bytes(shape);
    case EngineKind::fused_medium:
      return fused_medium_bytes(shape);
    case EngineKind::fused_large:
      return fused_large_bytes(shape);
    case EngineKind::general:
      break;
  }
  return general_bytes(shape);
}

}  // namespace posattn::cuda
