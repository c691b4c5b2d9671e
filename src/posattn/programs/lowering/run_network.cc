#include "posattn/programs/lowering/run_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/evaluation/predict.h"

namespace posattn {
namespace {

Error beyond_fp32(const std::string& what) {
  return Error(ExitCode::data, what,
               fmt::format("smaller numbers: a network computes in fp32, up to {:.2g}",
                           std::numeric_limits<float>::max()),
               "the level mpc computes in double");
}

bool is_held(float x) { return std::isfinite(x); }

}  // namespace

std::vector<double> run_network(const Model& model, const StaticProgram& routed,
                                std::span<const double> inputs, int64_t samples) {
  const std::vector<float> rows(inputs.begin(), inputs.end());
  const auto large = std::ranges::find_if_not(rows, is_held) - rows.begin();
  if (large < std::ssize(rows)) {
    const auto columns = std::ssize(routed.inputs);
    throw beyond_fp32(fmt::format("{} of '{}' on processor {}", inputs[large],
                                  routed.words[routed.inputs[large % columns]].name,
                                  large / columns % routed.processors));
  }
  const std::vector<float> outputs = predict_rows(model, rows, samples);
  if (!std::ranges::all_of(outputs, is_held)) {
    throw beyond_fp32(fmt::format("an overflow in the network of program '{}'", routed.name));
  }
  return {outputs.begin(), outputs.end()};
}

}  // namespace posattn
