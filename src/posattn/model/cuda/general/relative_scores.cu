// A learned score for every distance between nodes. Absent nodes have scores too, which
// attention ignores and whose gradients are zero.
#include "posattn/kernels/cuda/relative.h"
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

void GeneralStep::share(const RelativeScores& kind, int layer) {
  const generic::RelativeShape shape{spec_.real_nodes, spec_.scratch_nodes, kind.reach};
  const Rows<float> scores = attention_rows(layout_.layers[layer].attention);
  const float* scratch = kind.scratch == no_tensor ? nullptr : parameter(kind.scratch);
  enqueue_relative_scores(shape_.slots, spec_.heads, shape,
                          {parameter(kind.distances), scratch, parameter_stride()}, scores,
                          data_.slots, lane_.stream);
  softmax(layer, 1, scores);
}

void GeneralStep::share_backward(const RelativeScores& kind, int layer) {
  const generic::RelativeShape shape{spec_.real_nodes, spec_.scratch_nodes, kind.reach};
  const Rows<float> dscores = attention_rows(layout_.dattention);
  float* scratch = kind.scratch == no_tensor ? nullptr : gradient(kind.scratch);
  softmax_backward(layer, 1, dscores);
  enqueue_relative_scores_gradient(shape_.slots, spec_.heads, shape, dscores,
                                   {gradient(kind.distances), scratch, parameter_stride()},
                                   data_.slots, lane_.stream);
}

}  // namespace posattn::cuda
