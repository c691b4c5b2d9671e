#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/medium/engine.h"
#include "posattn/model/cuda/small_positional/engine.h"
#include "posattn/model/cuda/small_standard/engine.h"
#include "posattn/model/cuda/step/engine_choice.h"
#include "posattn/model/cuda/step/padded_engine.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {

namespace {

std::unique_ptr<StepEngine> make_engine(EngineKind kind, const FleetShape& shape) {
  switch (kind) {
    case EngineKind::fused_positional:
      return make_fused_positional(shape);
    case EngineKind::fused_standard:
      return make_fused_standard(shape);
    case EngineKind::fused_medium:
      return make_fused_medium(shape);
    case EngineKind::general:
      break;
  }
  return make_general(shape);
}

int64_t engine_bytes(EngineKind kind, const FleetShape& shape) {
  switch (kind) {
    case EngineKind::fused_positional:
      return fused_positional_bytes(shape);
    case EngineKind::fused_standard:
      return fused_standard_bytes(shape);
    case EngineKind::fused_medium:
      return fused_medium_bytes(shape);
    case EngineKind::general:
      break;
  }
  return general_bytes(shape);
}

FleetShape padded(FleetShape shape) {
  shape.spec = padded_spec(shape.spec);
  return shape;
}

}  // namespace

std::unique_ptr<StepEngine> make_step_engine(const FleetShape& shape, Path path) {
  const EngineKind kind = choose_engine(shape.spec, shape.precision, path, device_limits());
  if (!is_padded(shape.spec, kind)) return make_engine(kind, shape);
  return make_padded(shape, make_engine(kind, padded(shape)));
}

int64_t step_engine_bytes(const FleetShape& shape, Path path) {
  const EngineKind kind = choose_engine(shape.spec, shape.precision, path, device_limits());
  if (!is_padded(shape.spec, kind)) return engine_bytes(kind, shape);
  return engine_bytes(kind, padded(shape)) + padding_bytes(shape);
}

}  // namespace posattn::cuda
