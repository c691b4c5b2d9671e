// The layers applied another number of times than in training, on samples like those of training.
#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

std::vector<double> parse_loops(std::string_view text, std::string_view flag) {
  const std::vector<int> loops = parse_lengths(text, flag);
  return {loops.begin(), loops.end()};
}

TestSamples samples_of_training(const EvaluationRequest& request, double) {
  return find_evaluation_axis("length").samples(request, length_of(*request.model));
}

ModelSpec with_loops(const ModelSpec& spec, double x) {
  if (spec.routed()) {
    throw Error(ExitCode::data, "loops of a compiled model", "a model that was trained",
                "its layers are the steps of its program");
  }
  ModelSpec looped = spec;
  looped.loops = fmt::format("{}", static_cast<int>(x));
  return resolve(looped);
}

}  // namespace

extern const EvaluationAxis loops_axis;
const EvaluationAxis loops_axis{.name = "loops",
                                .words = "times that the layers are applied",
                                .plural = "loops",
                                .help = "Apply the layers so many times instead, as 1..16",
                                .logarithmic = true,
                                .whole = true,
                                .parse = parse_loops,
                                .samples = samples_of_training,
                                .model = with_loops};

}  // namespace posattn
