// The paper's way of testing: values in [-range c, range c], where range is what the model was
// trained on (for c > 1 nothing that lies inside the training range).
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"

namespace posattn {
namespace {

TestSamples samples_in_range(const EvaluationRequest& request, double c) {
  const ModelOrigin& origin = request.model->origin;
  return stated_samples(request, c, test_range(origin.range, c, origin.integers));
}

}  // namespace

extern const EvaluationAxis value_range_axis;
const EvaluationAxis value_range_axis{.name = "c",
                                      .words = "scale c of the test values",
                                      .plural = "scales",
                                      .help = "Scales c, as 1..10,1000",
                                      .parse = parse_scales,
                                      .samples = samples_in_range};

}  // namespace posattn
