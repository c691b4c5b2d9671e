// One node is read: drawn by the softmax in training, that of the largest score in tests.
#include "posattn/kernels/cuda/choose.h"
#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {
namespace {

void weights(GeneralStep& step, int layer, int64_t first, int64_t count) {
  const GeneralLayout::Layer& l = step.layout_.layers[layer];
  const ChoiceShape shape{.slots = step.shape_.slots,
                          .nodes = static_cast<int32_t>(step.layout_.nodes),
                          .heads = step.spec_.heads,
                          .samples = count,
                          .first_sample = first,
                          .layers = step.spec_.depth,
                          .layer = layer,
                          .drawn = step.gradients_ != nullptr};
  enqueue_choose(shape, step.attention_rows(l.softmax), step.attention_rows(l.attention),
                 step.data_.slots, step.lane_.stream);
}

constexpr WeightingRow hard_row{weights};

}  // namespace

const WeightingRow* row_of(Weighting kind) { return kind == Weighting::hard ? &hard_row : nullptr; }

}  // namespace posattn::cuda
