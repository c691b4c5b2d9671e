// What a page does to a program's weights: try them against the program, and break them.
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/playground/played_program.h"
#include "posattn/playground/playground.h"
#include "posattn/programs/checking/verify.h"

namespace posattn::playground {
namespace {

int32_t verify_program(const PlayedProgram& played, int32_t samples, int32_t seed) {
  VerifyRequest request;
  request.model = &played.model;
  request.program = &played.written;
  request.samples = samples;
  request.seed = static_cast<uint64_t>(seed);
  request.any_weights = true;  // a page adds noise to them
  const Verification found = verify(request);
  nlohmann::ordered_json json = {{"holds", found.holds()}, {"decided", found.is_decided()}};
  int64_t mismatches = 0;
  for (const ScaleVerification& scale : found.scales) {
    mismatches += scale.mismatches;
    json["scales"].push_back({{"c", scale.c},
                              {"samples", scale.samples},
                              {"mismatches", scale.mismatches},
                              {"largest_error", scale.largest_error},
                              {"largest_bound", scale.largest_bound},
                              {"mse", scale.mse}});
  }
  json["counter_example"] = nullptr;
  if (const auto& example = found.counter_example) {
    json["counter_example"] = {{"c", example->c},
                               {"input", example->input},
                               {"expected", example->expected},
                               {"found", example->found},
                               {"against", example->against}};
  }
  answer().text = json.dump();
  return static_cast<int32_t>(mismatches);
}

// Zeros stay, and with them what is connected to what.
void set_noise(PlayedProgram& played, double noise, int32_t seed) {
  if (!(noise >= 0) || noise > 100) throw Error(ExitCode::usage, "the noise", "from 0 to 100");
  played.model = played.compiled;
  if (noise == 0) return;
  Parameters<float>& parameters = played.model.parameters;
  uint32_t index = 0;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    RandomStream random(static_cast<uint64_t>(seed), Purpose::initial_values, 2, index++);
    if (!tensor.trained) continue;
    for (float& value : parameters.slice(tensor)) {
      if (value != 0) value = static_cast<float>(value * (1 + noise * random.normal()));
    }
  }
}

}  // namespace
}  // namespace posattn::playground

using namespace posattn::playground;

int32_t play_verify(int32_t program, int32_t samples, int32_t seed) {
  return answered([&] { return verify_program(programs().at(program), samples, seed); });
}

int32_t play_noise(int32_t program, double noise, int32_t seed) {
  return answered([&] {
    set_noise(programs().at(program), noise, seed);
    return 0;
  });
}
