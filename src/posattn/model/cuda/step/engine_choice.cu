#include <string>

#include "posattn/base/error.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/step/engine_choice.h"
#include "posattn/model/cuda/step/engines.h"
#include "posattn/model/cuda/step/padded_engine.h"

namespace posattn::cuda {
namespace {

const EngineRow general = {
    "general", [](const ModelSpec& spec, Precision) { return general_supports(spec); },
    [](const ModelSpec&) { return int64_t{0}; },  // it takes what the card has
    general_bytes, [](const FleetShape& shape) { return make_general(shape); }};

// The fastest stands first.
const EngineRow* const fused_engines[] = {&fused_positional, &fused_standard, &fused_medium};

const EngineRow& choose(const ModelSpec& spec, Precision precision, Path path,
                        const DeviceLimits& limits) {
  if (!general.supports(spec, precision)) {  // nor does any other
    if (spec.routed()) {
      throw Error(ExitCode::configuration, "a routed model on the GPU", "a model with scores",
                  "routes are not trained; use the CPU");
    }
    if (spec.has_pairs()) {
      throw Error(ExitCode::configuration, "attention by pairs of nodes on the GPU",
                  "attention that reads no pairs", "use the CPU");
    }
    throw Error(ExitCode::configuration, "this combination of attention on the GPU",
                "RoPE of one size of queries and keys, and draws by scores of the data",
                "use the CPU");
  }
  if (path == Path::plain) return general;
  const ModelSpec computed = padded_spec(spec);
  bool known = false;
  for (const EngineRow* engine : fused_engines) {
    if (!engine->supports(computed, precision)) continue;
    known = true;
    if (engine->shared_bytes(computed) <= limits.shared_bytes) return *engine;
  }
  if (path == Path::automatic) return general;
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

// The engine for a model on the device in use, and the shape it computes.
struct Choice {
  Choice(const FleetShape& whole, Path path)
      : engine(choose(whole.spec, whole.precision, path, device_limits())), shape(whole) {
    if (&engine != &general) shape.spec = padded_spec(whole.spec);
    padded = shape.spec != whole.spec;
  }
  const EngineRow& engine;
  FleetShape shape;
  bool padded;
};

}  // namespace

std::string choose_engine(const ModelSpec& spec, Precision precision, Path path,
                          const DeviceLimits& limits) {
  return choose(spec, precision, path, limits).name;
}

std::unique_ptr<StepEngine> make_step_engine(const FleetShape& shape, Path path) {
  const Choice choice(shape, path);
  std::unique_ptr<StepEngine> engine = choice.engine.make(choice.shape);
  return choice.padded ? make_padded(shape, std::move(engine)) : std::move(engine);
}

int64_t step_engine_bytes(const FleetShape& shape, Path path) {
  const Choice choice(shape, path);
  return choice.engine.bytes(choice.shape) + (choice.padded ? padding_bytes(shape) : 0);
}

std::vector<EngineRange> paper_engines(const DeviceLimits& limits) {
  std::vector<EngineRange> ranges;
  for (const char* const preset : {"positional", "standard"}) {
    for (int nodes = 2; nodes <= 64; ++nodes) {
      ModelSpec spec;
      apply_preset(preset, spec);
      spec.real_nodes = nodes;
      const std::string engine =
          choose_engine(resolve(spec), Precision::tf32, Path::automatic, limits);
      if (nodes > 2 && ranges.back().engine == engine) {
        ranges.back().last_nodes = nodes;
      } else {
        ranges.push_back({preset, nodes, nodes, engine});
      }
    }
  }
  return ranges;
}

}  // namespace posattn::cuda
