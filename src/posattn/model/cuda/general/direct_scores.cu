// A learned score for every pair of nodes.
#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {
namespace {

void copy(GeneralStep& step, Rows<const float> from, Rows<float> to) {
  const auto nodes = static_cast<int32_t>(step.layout_.nodes);
  enqueue_spread(step.shape_.slots, step.spec_.heads * step.layout_.nodes, 1, nodes, from, to,
                 false, step.data_.slots, step.lane_.stream);
}

void scores(GeneralStep& step, const PositionTerm& term, int, Rows<float> to) {
  copy(step, {step.parameter(term.tensors[0]), step.parameter_stride(), step.layout_.nodes}, to);
}

void gradient(GeneralStep& step, const PositionTerm& term, int, Rows<float> dscores) {
  copy(step, dscores,
       {step.gradient(term.tensors[0]), step.parameter_stride(), step.layout_.nodes});
}

}  // namespace

const PositionRow direct_row{scores, gradient};

}  // namespace posattn::cuda
