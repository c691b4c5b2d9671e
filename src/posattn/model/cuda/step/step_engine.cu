#include "posattn/base/error.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/large/engine.h"
#include "posattn/model/cuda/medium/engine.h"
#include "posattn/model/cuda/small_positional/engine.h"
#include "posattn/model/cuda/small_standard/engine.h"
#include "posattn/model/cuda/step/step_engine.h"

namespace posattn::cuda {
namespace {

enum class Kind { general, fused_positional, fused_standard, fused_medium, fused_large };

Kind engine_kind(const ModelSpec& spec, Path path) {
  if (!general_supports(spec)) {  // nor does any other
    throw Error(ExitCode::configuration, "a routed model on the GPU", "a model with scores",
                "routes are not trained; use the CPU");
  }
  if (path == Path::plain) return Kind::general;
  if (fused_positional_supports(spec)) return Kind::fused_positional;
  if (fused_standard_supports(spec)) return Kind::fused_standard;
  if (fused_medium_supports(spec)) return Kind::fused_medium;
  if (fused_large_supports(spec)) return Kind::fused_large;
  if (path == Path::folded) {
    throw Error(ExitCode::configuration, "path 'folded' on the GPU for a model of this shape",
                "attention from positions, or from data without RoPE; up to 65 nodes, widths up to "
                "128 and 4 heads; two linear maps in the MLP, one input and one output number per "
                "node",
                "leave --path out: the general path takes every model");
  }
  return Kind::general;
}

}  // namespace

std::unique_ptr<StepEngine> make_step_engine(const FleetShape& shape, Path path) {
  switch (engine_kind(shape.spec, path)) {
    case Kind::fused_positional:
      return make_fused_positional(shape);
    case Kind::fused_standard:
      return make_fused_standard(shape);
    case Kind::fused_medium:
      return make_fused_medium(shape);
    case Kind::fused_large:
      return make_fused_large(shape);
    case Kind::general:
      break;
  }
  return make_general(shape);
}

int64_t step_engine_bytes(const FleetShape& shape, Path path) {
  switch (engine_kind(shape.spec, path)) {
    case Kind::fused_positional:
      return fused_positional_bytes(shape);
    case Kind::fused_standard:
      return fused_standard_bytes(shape);
    case Kind::fused_medium:
      return fused_medium_bytes(shape);
    case Kind::fused_large:
      return fused_large_bytes(shape);
    case Kind::general:
      break;
  }
  return general_bytes(shape);
}

}  // namespace posattn::cuda
