// A learned score for every distance between nodes. Absent nodes have scores too, which
// attention ignores and whose gradients are zero.
#include "posattn/kernels/cuda/relative.h"
#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {
namespace {

generic::RelativeShape relative_shape(const GeneralStep& step, const PositionTerm& term) {
  return {step.spec_.real_nodes, step.spec_.scratch_nodes, term.reach};
}

void scores(GeneralStep& step, const PositionTerm& term, int, Rows<float> to) {
  const float* scratch = term.tensors.size() < 2 ? nullptr : step.parameter(term.tensors[1]);
  enqueue_relative_scores(step.shape_.slots, step.spec_.heads, relative_shape(step, term),
                          {step.parameter(term.tensors[0]), scratch, step.parameter_stride()}, to,
                          step.data_.slots, step.lane_.stream);
}

void gradient(GeneralStep& step, const PositionTerm& term, int, Rows<float> dscores) {
  float* scratch = term.tensors.size() < 2 ? nullptr : step.gradient(term.tensors[1]);
  enqueue_relative_scores_gradient(
      step.shape_.slots, step.spec_.heads, relative_shape(step, term), dscores,
      {step.gradient(term.tensors[0]), scratch, step.parameter_stride()}, step.data_.slots,
      step.lane_.stream);
}

}  // namespace

const PositionRow distance_row{scores, gradient};

}  // namespace posattn::cuda
