// Cosines of queries and keys times a learned number of each head.
#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {
namespace {

KeyShape key_shape(const GeneralStep& step, int layer, int64_t count) {
  return {step.shape_.slots, step.layout_.nodes * count, step.spec_.heads,
          step.attention(layer).data->key_size};
}
SlotVector log_scale(const GeneralStep& step, int layer) {
  return {step.parameter(step.attention(layer).data->head_scale), step.parameter_stride()};
}

void prepare(GeneralStep& step, int layer, int64_t count) {
  const GeneralLayout::Layer& l = step.layout_.layers[layer];
  enqueue_unit_keys(key_shape(step, layer, count), log_scale(step, layer),
                    step.rows_at(l.query_key, l.query_key_columns),
                    step.rows_at(l.key_inverse, 2 * step.spec_.heads), step.data_.slots,
                    step.lane_.stream);
}

void gradient(GeneralStep& step, int layer, int64_t first, int64_t count) {
  const GeneralLayout::Layer& l = step.layout_.layers[layer];
  const GeneralLayout::LayerGradients& gradients = step.layout_.gradients(layer);
  const int32_t heads = step.spec_.heads;
  const Rows<float> along = step.rows_at(gradients.along, heads);
  enqueue_unit_keys_gradient(key_shape(step, layer, count), log_scale(step, layer),
                             step.rows_at(l.query_key, l.query_key_columns),
                             step.rows_at(l.key_inverse, 2 * heads),
                             step.rows_at(gradients.query_key, l.query_key_columns), along,
                             step.data_.slots, step.lane_.stream);
  enqueue_group_sums(step.shape_.slots, static_cast<int32_t>(step.layout_.nodes),
                     static_cast<int32_t>(count), heads, along,
                     step.rows_at(step.layout_.along_sums, heads), first > 0, step.data_.slots,
                     step.lane_.stream);
}

void finish(GeneralStep& step, int layer) {
  const int32_t heads = step.spec_.heads;
  enqueue_sum_parts(step.shape_.slots, static_cast<int32_t>(step.layout_.nodes), heads,
                    step.rows_at(step.layout_.along_sums, heads),
                    step.gradient(step.attention(layer).data->head_scale), step.parameter_stride(),
                    false, step.data_.slots, step.lane_.stream);
}

constexpr DataRow unit_row{prepare, gradient, finish};

}  // namespace

const DataRow* row_of(Scores kind) { return kind == Scores::unit ? &unit_row : nullptr; }

}  // namespace posattn::cuda
