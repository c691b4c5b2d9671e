// A learned score for every pair of nodes: the tensor is read and its gradient written in place.
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

void GeneralStep::share(const DirectScores& kind, int layer) {
  softmax(layer, 1, {parameter(kind.scores), parameter_stride(), layout_.nodes});
}

void GeneralStep::share_backward(const DirectScores& kind, int layer) {
  softmax_backward(layer, 1, {gradient(kind.scores), parameter_stride(), layout_.nodes});
}

}  // namespace posattn::cuda
