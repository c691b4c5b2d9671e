#include "posattn/benchmark/long_inference.h"

#include <chrono>
#include <vector>

#include "posattn/benchmark/steps.h"
#include "posattn/model/network.h"

namespace posattn {
namespace {

ModelSpec long_model(const std::string& positions, int length) {
  ModelSpec spec;
  apply_preset(positions == "sinusoidal" ? "positional" : positions, spec);
  if (positions == "sinusoidal") spec.encoding = Encoding::sinusoidal;
  spec.real_nodes = length;
  return resolve(spec);
}

}  // namespace

double matrix_bytes(int length) {
  const ModelSpec spec = long_model("relative", length);
  const double nodes = spec.nodes();
  return sizeof(float) * nodes * nodes * spec.heads * spec.depth;
}

LongInference measure_long_inference(const LongInferenceRequest& request) {
  const ModelSpec spec = long_model(request.positions, request.length);
  Parameters<float> parameters(spec);
  initialise(parameters, 0);
  std::vector<float> input(request.length), output(request.length);
  for (int i = 0; i < request.length; ++i) input[i] = static_cast<float>(i % 7 - 3);
  Network network(spec, {.path = request.as_written ? Path::plain : Path::automatic,
                         .threads = request.threads});
  LongInference result;
  const auto start = std::chrono::steady_clock::now();
  network.prepare(parameters, request.length);
  result.prepare_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Batch batch{.inputs = input, .samples = 1, .real_nodes = request.length};
  result.sample_seconds =
      time_repeated([&] { network.run(batch, output); }, 3, request.seconds).median;
  return result;
}

}  // namespace posattn
