// Attention from data: queries and keys from x, or from x and P, in chunks of samples
// (general/layout.h).
#include <algorithm>

#include "posattn/model/cuda/general/rows.h"

namespace posattn::cuda {

KeyPlace GeneralStep::data_keys(int layer) const {
  const DataTerm& term = *attention(layer).data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  return {l.query_key,   layout_.gradients(layer).query_key, l.query_key_columns,
          term.key_size, static_cast<float>(term.factor),    term.rope};
}

PartShape GeneralStep::parts(int32_t width, bool by_sample) const {
  return {shape_.slots,
          static_cast<int32_t>(layout_.nodes),
          static_cast<int32_t>(layout_.samples),
          width,
          spec_.real_nodes,
          by_sample};
}

PartShape GeneralStep::scaled_parts(int layer) const {
  return parts(spec_.width, attention(layer).data->scale == SourceScale::sample);
}

// What queries and keys of samples first .. first + count - 1 are made of, as rows (node, sample).
Matrix<const float> GeneralStep::source_rows(int layer, int64_t first, int64_t count) const {
  const auto [offset, stride] = layout_.layers[layer].source;
  Matrix<float> m = matrix_at(offset + first * stride, stride);
  m.row = {stride, static_cast<int32_t>(count), layout_.samples * stride};
  return m;
}

// Attention of a chunk: the scores of positions, if any, lie there before those of the data are
// added.
void GeneralStep::attend_chunk(int layer, int64_t first, int64_t count) {
  const AttentionBlock& block = attention(layer);
  const DataTerm& term = *block.data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const Rows<float> query_key = rows_at(l.query_key, l.query_key_columns);
  linear(part(term.query_key, 0, spec_.width + term.values_joined), layout_.nodes * count,
         source_rows(layer, first, count), matrix(query_key),
         term.positions_joined ? Bias::node_table : Bias::parameter);
  if (term.rope) rotate(query_key, count, 1);
  if (const DataRow* row = row_of(term.scores)) row->prepare(*this, layer, count);
  if (block.positions) {
    const int64_t size = spec_.heads * layout_.nodes * layout_.attention_stride;
    enqueue_spread(shape_.slots, count, static_cast<int32_t>(count), static_cast<int32_t>(size),
                   rows_at(l.position_scores, size), rows_at(l.attention, size), false, data_.slots,
                   lane_.stream);
  }
  query_key_scores(data_keys(layer), count, l.attention, block.positions.has_value());
  softmax(layer, count, attention_rows(l.attention));
  if (const WeightingRow* row = row_of(block.weighting)) row->weights(*this, layer, first, count);
}

void GeneralStep::attend_chunk_backward(int layer, Rows<float> dsource, const Product& end,
                                        int64_t first, int64_t count) {
  const AttentionBlock& block = attention(layer);
  const DataTerm& term = *block.data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::LayerGradients& gradients = layout_.gradients(layer);
  bool adds = false;
  for (const MixedPart& part : mixed_parts(layer)) {
    Product dvalue = mixing(layout_.nodes, part.head_size, layout_.nodes);
    dvalue.outer = static_cast<int32_t>(count);
    dvalue.a = transpose(attention_matrices(l.attention));
    dvalue.b = head_of_sample(part.dmixed, first, part.head_size);
    dvalue.c = head_of_sample(part.dvalue, first, part.head_size);
    enqueue(dvalue);
    Product dattention = mixing(layout_.nodes, layout_.nodes, part.head_size);
    dattention.outer = static_cast<int32_t>(count);
    dattention.a = head_of_sample(part.dmixed, first, part.head_size);
    dattention.b = transpose(head_of_sample(part.value, first, part.head_size));
    dattention.c = attention_matrices(layout_.dattention);
    dattention.accumulate = std::exchange(adds, true);  // one attention mixes both
    enqueue(dattention);
  }
  softmax_backward(layer, count, attention_rows(layout_.dattention));
  if (block.positions) {
    const int64_t size = spec_.heads * layout_.nodes * layout_.attention_stride;
    enqueue_sum_parts(shape_.slots, static_cast<int32_t>(count), size,
                      rows_at(layout_.dattention, size), at(gradients.position_scores),
                      layout_.floats, first > 0, data_.slots, lane_.stream);
  }
  query_key_scores_backward(data_keys(layer), count, layout_.dattention);
  if (const DataRow* row = row_of(term.scores)) row->gradient(*this, layer, first, count);
  const LinearPart map = part(term.query_key, 0, spec_.width + term.values_joined);
  const Rows<float> dquery_key = rows_at(gradients.query_key, map.out);
  if (term.rope) rotate(dquery_key, count, -1);
  enqueue(weight_gradient(map, layout_.nodes * count, source_rows(layer, first, count),
                          matrix(dquery_key), first > 0));
  Matrix<float> dchunk = matrix(
      Rows<float>{dsource.data + first * dsource.stride, dsource.slot_stride, dsource.stride});
  dchunk.row = {dsource.stride, static_cast<int32_t>(count), layout_.samples * dsource.stride};
  input_gradient(map, layout_.nodes * count, matrix(dquery_key), dchunk, end);
  sum_samples(dquery_key, map.out, count, first > 0);
}

void GeneralStep::attend_from_data(int layer) {
  if (layout_.fused) return attend_fused(layer);
  const DataTerm& term = *attention(layer).data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  if (term.scale != SourceScale::none) {
    enqueue_scale_parts(scaled_parts(layer), rows_of(l.attention_input), rows_of(l.source),
                        rows_at(l.source_inverse, 1), data_.slots, lane_.stream);
  }
  if (term.positions_joined) {
    map_positions(part(term.query_key, spec_.width + term.values_joined, spec_.encoding_size));
  }
  if (term.values_joined > 0)
    divide_by_size(layout_.v[layer], l.values.unit, l.values.unit_inverse);
  for (int64_t first = 0; first < layout_.samples; first += layout_.chunk) {
    const int64_t count = std::min(layout_.chunk, layout_.samples - first);
    attend_chunk(layer, first, count);
    for (const MixedPart& part : mixed_parts(layer)) {
      Product p = mixing(layout_.nodes, part.head_size, layout_.nodes);
      p.outer = static_cast<int32_t>(count);
      p.a = attention_matrices(l.attention);
      p.b = head_of_sample(part.value, first, part.head_size);
      p.c = head_of_sample(part.mixed, first, part.head_size);
      enqueue(p);
    }
  }
}

void GeneralStep::attend_from_data_backward(int layer, Rows<float> dinput, const Product& end) {
  if (layout_.fused) return attend_fused_backward(layer, dinput, end);
  const AttentionBlock& block = attention(layer);
  const DataTerm& term = *block.data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  Product chunk_end = end;
  if (end.added.data) {  // a chunk's rows are not evenly spaced, as an epilogue would need
    enqueue_spread(shape_.slots, layout_.rows, 1, spec_.width, end.added, dinput, false,
                   data_.slots, lane_.stream);
    chunk_end = added_to();
  }
  const bool scaled = term.scale != SourceScale::none;
  const Rows<float> dsource = scaled ? rows_at(layout_.dsource, spec_.width) : dinput;
  const LinearPart of_positions =
      part(term.query_key, spec_.width + term.values_joined, spec_.encoding_size);
  if (term.positions_joined && !layout_.kept) map_positions(of_positions);
  for (int64_t first = 0; first < layout_.samples; first += layout_.chunk) {
    const int64_t count = std::min(layout_.chunk, layout_.samples - first);
    if (!layout_.kept) attend_chunk(layer, first, count);
    attend_chunk_backward(layer, dsource, scaled ? Product() : chunk_end, first, count);
  }
  if (const DataRow* row = row_of(term.scores)) row->finish(*this, layer);
  if (term.positions_joined) {
    map_positions_gradient(of_positions);
  } else {
    vector_gradient(term.query_key.bias);
  }
  if (scaled) {
    enqueue_scale_parts_gradient(scaled_parts(layer), rows_of(l.source),
                                 rows_at(l.source_inverse, 1), dsource, dinput,
                                 chunk_end.accumulate, data_.slots, lane_.stream);
  }
  if (block.positions) {
    share_backward(layer, attention_rows(layout_.gradients(layer).position_scores));
  }
}

}  // namespace posattn::cuda
