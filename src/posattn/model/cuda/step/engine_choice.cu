#include <string>

#include "posattn/base/error.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/medium/engine.h"
#include "posattn/model/cuda/small_positional/engine.h"
#include "posattn/model/cuda/small_standard/engine.h"
#include "posattn/model/cuda/step/engine_choice.h"
#include "posattn/model/cuda/step/padded_engine.h"

namespace posattn::cuda {
namespace {

struct FusedEngine {
  EngineKind kind;
  bool (*supports)(const ModelSpec& spec, Precision precision);
  int64_t (*shared_bytes)(const ModelSpec& spec);
};

template <bool (*supports)(const ModelSpec& spec)>
bool in_any_precision(const ModelSpec& spec, Precision /*precision*/) {
  return supports(spec);
}

// The fastest first.
constexpr FusedEngine fused_engines[] = {
    {EngineKind::fused_positional, in_any_precision<fused_positional_supports>,
     fused_positional_shared_bytes},
    {EngineKind::fused_standard, in_any_precision<fused_standard_supports>,
     fused_standard_shared_bytes},
    {EngineKind::fused_medium, fused_medium_supports, fused_medium_shared_bytes},
};

}  // namespace

const char* engine_name(EngineKind kind) {
  switch (kind) {
    case EngineKind::fused_positional:
      return "fused-positional";
    case EngineKind::fused_standard:
      return "fused-standard";
    case EngineKind::fused_medium:
      return "fused-medium";
    case EngineKind::general:
      break;
  }
  return "general";
}

EngineKind choose_engine(const ModelSpec& spec, Precision precision, Path path,
                         const DeviceLimits& limits) {
  if (!general_supports(spec)) {  // nor does any other
    throw Error(ExitCode::configuration, "a routed model on the GPU", "a model with scores",
                "routes are not trained; use the CPU");
  }
  if (path == Path::plain) return EngineKind::general;
  const ModelSpec computed = padded_spec(spec);
  bool known = false;
  for (const FusedEngine& engine : fused_engines) {
    if (!engine.supports(computed, precision)) continue;
    known = true;
    if (engine.shared_bytes(computed) <= limits.shared_bytes) return engine.kind;
  }
  if (path == Path::automatic) return EngineKind::general;
  const char* const hint = "leave --path out: the general path takes every model";
  if (known) {
    throw Error(ExitCode::configuration,
                "path 'folded' for a model of this shape on a GPU with " +
                    std::to_string(limits.shared_bytes / 1024) + " KB of shared memory",
                "a smaller model, or a GPU with more", hint);
  }
  throw Error(ExitCode::configuration, "path 'folded' on the GPU for a model of this shape",
              "attention from positions, or from data without RoPE (in fp32 up to 8 nodes); up to "
              "79 nodes, width 64 and two heads; two linear maps in the MLP of up to 64 units, one "
              "input and one output number per node",
              hint);
}

bool is_padded(const ModelSpec& spec, EngineKind kind) {
  return kind != EngineKind::general && padded_spec(spec) != spec;
}

std::vector<EngineRange> paper_engines(const DeviceLimits& limits) {
  std::vector<EngineRange> ranges;
  for (const char* const preset : {"positional", "standard"}) {
    for (int nodes = 2; nodes <= 64; ++nodes) {
      ModelSpec spec;
      apply_preset(preset, spec);
      spec.real_nodes = nodes;
      const EngineKind kind =
          choose_engine(resolve(spec), Precision::tf32, Path::automatic, limits);
      if (nodes > 2 && ranges.back().kind == kind) {
        ranges.back().last_nodes = nodes;
      } else {
        ranges.push_back({preset, nodes, nodes, kind});
      }
    }
  }
  return ranges;
}

}  // namespace posattn::cuda
