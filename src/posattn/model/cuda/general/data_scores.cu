// Attention from data: queries and keys from x, or from x and P, in chunks of
// samples (general/layout.h).
#include <algorithm>

#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

// What attention reads of samples first .. first + count - 1, as rows (node, sample).
Matrix<const float> GeneralStep::attention_rows(int layer, int64_t first, int64_t count) const {
  const auto [offset, stride] = layout_.layers[layer].attention_input;
  Matrix<float> m = matrix_at(offset + first * stride, stride);
  m.row = {stride, static_cast<int32_t>(count), layout_.samples * stride};
  return m;
}

void GeneralStep::attend_chunk(const DataScores& kind, int layer, int64_t first, int64_t count) {
  linear(part(kind.query_key, 0, spec_.width), layout_.nodes * count,
         attention_rows(layer, first, count),
         matrix_at(layout_.layers[layer].query_key, layout_.query_key_columns),
         kind.positions_joined ? Bias::node_table : Bias::parameter);
  scores(layer, count, kind.rope);
}

void GeneralStep::attend_chunk_backward(const DataScores& kind, int layer, Rows<float> dinput,
                                        const Product& end, int64_t first, int64_t count) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::LayerGradients& gradients = layout_.gradients(layer);
  Product dvalue = mixing(layout_.nodes, spec_.head_size(), layout_.nodes);
  dvalue.outer = static_cast<int32_t>(count);
  dvalue.a = transpose(attention_matrices(l.attention));
  dvalue.b = head_of_sample(gradients.mixed, first);
  dvalue.c = head_of_sample(gradients.value.offset, first);
  enqueue(dvalue);
  Product dattention = mixing(layout_.nodes, layout_.nodes, spec_.head_size());
  dattention.outer = static_cast<int32_t>(count);
  dattention.a = head_of_sample(gradients.mixed, first);
  dattention.b = transpose(head_of_sample(l.value.offset, first));
  dattention.c = attention_matrices(layout_.dattention);
  enqueue(dattention);
  scores_backward(layer, count, kind.rope);
  const LinearPart map = part(kind.query_key, 0, spec_.width);
  const Rows<float> dquery_key = rows_at(gradients.query_key, map.out);
  enqueue(weight_gradient(map, layout_.nodes * count, attention_rows(layer, first, count),
                          matrix(dquery_key), first > 0));
  Matrix<float> dchunk =
      matrix({dinput.data + first * dinput.stride, dinput.slot_stride, dinput.stride});
  dchunk.row = {dinput.stride, static_cast<int32_t>(count), layout_.samples * dinput.stride};
  input_gradient(map, layout_.nodes * count, matrix(dquery_key), dchunk, end);
  sum_samples(dquery_key, map.out, count, first > 0);
}

void GeneralStep::attend_from_data(const DataScores& kind, int layer) {
  if (layout_.fused) return attend_fused(kind, layer);
  const GeneralLayout::Layer& l = layout_.layers[layer];
  if (kind.positions_joined) {
    map_positions(part(kind.query_key, spec_.width, spec_.encoding_size));
  }
  for (int64_t first = 0; first < layout_.samples; first += layout_.chunk) {
    const int64_t count = std::min(layout_.chunk, layout_.samples - first);
    attend_chunk(kind, layer, first, count);
    Product p = mixing(layout_.nodes, spec_.head_size(), layout_.nodes);
    p.outer = static_cast<int32_t>(count);
    p.a = attention_matrices(l.attention);
    p.b = head_of_sample(l.value.offset, first);
    p.c = head_of_sample(l.mixed, first);
    enqueue(p);
  }
}

void GeneralStep::attend_from_data_backward(const DataScores& kind, int layer, Rows<float> dinput,
                                            const Product& end) {
  if (layout_.fused) return attend_fused_backward(kind, layer, dinput, end);
  Product chunk_end = end;
  if (end.added.data) {  // a chunk's rows are not evenly spaced, as an epilogue would need
    enqueue_spread(shape_.slots, layout_.rows, 1, spec_.width, end.added, dinput, false,
                   data_.slots, lane_.stream);
    chunk_end = added_to();
  }
  const LinearPart of_positions = part(kind.query_key, spec_.width, spec_.encoding_size);
  if (kind.positions_joined && !layout_.kept) map_positions(of_positions);
  for (int64_t first = 0; first < layout_.samples; first += layout_.chunk) {
    const int64_t count = std::min(layout_.chunk, layout_.samples - first);
    if (!layout_.kept) attend_chunk(kind, layer, first, count);
    attend_chunk_backward(kind, layer, dinput, chunk_end, first, count);
  }
  if (kind.positions_joined) {
    map_positions_gradient(of_positions);
  } else {
    vector_gradient(kind.query_key.bias);
  }
}

}  // namespace posattn::cuda
