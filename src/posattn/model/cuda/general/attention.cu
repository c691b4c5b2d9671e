// Attention of the general engine. Queries and keys lie [node, sample of the chunk, head, query |
// key], attention [sample of the chunk, head, node, node]; attention from positions is a chunk of
// one, whose queries and keys are what a linear map makes of P.
#include <algorithm>
#include <cmath>

#include "posattn/model/cuda/general/step.h"
#include "posattn/model/tensor_names.h"

namespace posattn::cuda {

Matrix<float> GeneralStep::query_key_heads(int64_t offset, int64_t count, bool keys) const {
  const int64_t columns = layout_.query_key_columns, size = spec_.key_size();
  return row_major(at(offset) + (keys ? size : 0), count * columns, layout_.floats, columns,
                   2 * size);
}

Matrix<float> GeneralStep::attention_matrices(int64_t offset) const {
  const int64_t size = layout_.nodes * layout_.attention_stride;
  return row_major(at(offset), layout_.attention_stride, layout_.floats, spec_.heads * size, size);
}

// Activations [R, d] as a matrix [nodes, (sample, column of the head)] for each head.
Matrix<float> GeneralStep::head_columns(int64_t offset) const {
  const int64_t size = spec_.head_size(), width = spec_.width;
  Matrix<float> m = row_major(at(offset), layout_.samples * width, layout_.floats, 0, size);
  m.column = {1, static_cast<int32_t>(size), width};
  return m;
}

// Activations [R, d] as a matrix [nodes, column of the head] for each sample and head.
Matrix<float> GeneralStep::head_of_sample(int64_t offset, int64_t first) const {
  const int64_t width = spec_.width;
  return row_major(at(offset) + first * width, layout_.samples * width, layout_.floats, width,
                   spec_.head_size());
}

// x of samples first .. first + count - 1, as rows (node, sample).
Matrix<const float> GeneralStep::layer_input(int layer, int64_t first, int64_t count) const {
  const int64_t stride = 2 * spec_.width;
  Matrix<float> m = matrix_at(layout_.layers[layer].joined + first * stride, stride);
  m.row = {stride, static_cast<int32_t>(count), layout_.samples * stride};
  return m;
}

// A product for each sample (outer) and head (inner) of a chunk; the caller sets outer.
Product GeneralStep::mixing(int64_t rows, int64_t columns, int64_t depth) const {
  Product p;
  p.rows = static_cast<int32_t>(rows);
  p.columns = static_cast<int32_t>(columns);
  p.depth = static_cast<int32_t>(depth);
  p.inner = spec_.heads;
  return p;
}

void GeneralStep::rotate(int64_t offset, int64_t count, float sign) {
  if (!spec_.rope) return;
  enqueue_rotate(shape_.slots, layout_.nodes * count, static_cast<int32_t>(count), 2 * spec_.heads,
                 spec_.key_size(), memory_.rotation, sign,
                 rows_at(offset, layout_.query_key_columns), data_.slots, stream_);
}

// Rotates queries and keys, then attention = softmax(Q K^T / sqrt(d_k)).
void GeneralStep::scores(int layer, int64_t count) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  rotate(l.query_key, count, 1);
  Product p = mixing(layout_.nodes, layout_.nodes, spec_.key_size());
  p.outer = static_cast<int32_t>(count);
  p.a = query_key_heads(l.query_key, count, false);
  p.b = transpose(query_key_heads(l.query_key, count, true));
  p.c = attention_matrices(l.attention);
  p.alpha = 1 / std::sqrt(static_cast<float>(spec_.key_size()));
  enqueue(p);
  const Rows<float> rows = rows_at(l.attention, layout_.attention_stride);
  softmax(layer, count, {rows.data, rows.slot_stride, rows.stride});
}

// From dattention the gradient of queries and keys: dQ = dS K / sqrt(d_k), dK = dS^T Q / sqrt(d_k).
void GeneralStep::scores_backward(int layer, int64_t count) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  softmax_backward(layer, count, rows_at(layout_.dattention, layout_.attention_stride));
  Product p = mixing(layout_.nodes, spec_.key_size(), layout_.nodes);
  p.outer = static_cast<int32_t>(count);
  p.alpha = 1 / std::sqrt(static_cast<float>(spec_.key_size()));
  const Matrix<const float> dscores = attention_matrices(layout_.dattention);
  for (const bool keys : {false, true}) {
    p.a = keys ? transpose(dscores) : dscores;
    p.b = query_key_heads(l.query_key, count, !keys);
    p.c = query_key_heads(layout_.dquery_key, count, keys);
    enqueue(p);
  }
  rotate(layout_.dquery_key, count, -1);
}

void GeneralStep::softmax(int layer, int64_t count, Rows<const float> from) {
  enqueue_softmax(shape_.slots, count * spec_.heads * layout_.nodes,
                  static_cast<int32_t>(layout_.nodes), from,
                  rows_at(layout_.layers[layer].attention, layout_.attention_stride),
                  {spec_.real_nodes}, data_.slots, stream_);
}

void GeneralStep::softmax_backward(int layer, int64_t count, Rows<float> dscores) {
  const int64_t stride = layout_.attention_stride;
  enqueue_softmax_gradient(shape_.slots, count * spec_.heads * layout_.nodes,
                           static_cast<int32_t>(layout_.nodes),
                           {at(layout_.layers[layer].attention), layout_.floats, stride},
                           {at(layout_.dattention), layout_.floats, stride}, dscores,
                           {spec_.real_nodes}, data_.slots, stream_);
}

void GeneralStep::attend_from_positions(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  if (spec_.direct_attention) {
    const int64_t offset = parameter_layout_.at(names::of_layer(layer, names::scores)).offset;
    softmax(layer, 1, {parameters_ + offset, parameter_layout_.buffer_size(), layout_.nodes});
  } else {
    linear(whole(names::of_layer(layer, names::query_key)), layout_.nodes, positions(),
           matrix_at(l.query_key, layout_.query_key_columns), Bias::parameter);
    scores(layer, 1);
  }
  Product p = mixing(layout_.nodes, layout_.samples * spec_.head_size(), layout_.nodes);
  p.a = attention_matrices(l.attention);
  p.b = head_columns(l.value);
  p.c = head_columns(l.mixed);
  enqueue(p);
}

void GeneralStep::attend_from_positions_backward(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  Product dvalue = mixing(layout_.nodes, layout_.samples * spec_.head_size(), layout_.nodes);
  dvalue.a = transpose(attention_matrices(l.attention));
  dvalue.b = head_columns(layout_.dmixed);
  dvalue.c = head_columns(layout_.dvalue);
  enqueue(dvalue);
  Product dattention = mixing(layout_.nodes, layout_.nodes, layout_.samples * spec_.head_size());
  dattention.a = head_columns(layout_.dmixed);
  dattention.b = transpose(head_columns(l.value));
  dattention.c = attention_matrices(layout_.dattention);
  enqueue(dattention);
  if (spec_.direct_attention) {
    const int64_t offset = parameter_layout_.at(names::of_layer(layer, names::scores)).offset;
    softmax_backward(layer, 1,
                     {gradients_ + offset, parameter_layout_.buffer_size(), layout_.nodes});
    return;
  }
  scores_backward(layer, 1);
  const LinearPart map = whole(names::of_layer(layer, names::query_key));
  sum_samples(rows_at(layout_.dquery_key, map.out), map.out, 1);
  map_positions_gradient(map);
}

void GeneralStep::attend_from_data(int layer, int64_t first, int64_t count) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  linear(part(names::of_layer(layer, names::query_key), 0, spec_.width), layout_.nodes * count,
         layer_input(layer, first, count), matrix_at(l.query_key, layout_.query_key_columns),
         spec_.attention == AttentionSource::data ? Bias::parameter : Bias::node_table);
  scores(layer, count);
}

void GeneralStep::attend_from_data_backward(int layer, Rows<float> dx, int64_t first,
                                            int64_t count) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  Product dvalue = mixing(layout_.nodes, spec_.head_size(), layout_.nodes);
  dvalue.outer = static_cast<int32_t>(count);
  dvalue.a = transpose(attention_matrices(l.attention));
  dvalue.b = head_of_sample(layout_.dmixed, first);
  dvalue.c = head_of_sample(layout_.dvalue, first);
  enqueue(dvalue);
  Product dattention = mixing(layout_.nodes, layout_.nodes, spec_.head_size());
  dattention.outer = static_cast<int32_t>(count);
  dattention.a = head_of_sample(layout_.dmixed, first);
  dattention.b = transpose(head_of_sample(l.value, first));
  dattention.c = attention_matrices(layout_.dattention);
  enqueue(dattention);
  scores_backward(layer, count);
  const LinearPart map = part(names::of_layer(layer, names::query_key), 0, spec_.width);
  const Rows<float> dquery_key = rows_at(layout_.dquery_key, map.out);
  weight_gradient(map, layout_.nodes * count, layer_input(layer, first, count), matrix(dquery_key),
                  first > 0);
  Matrix<float> dinput = matrix({dx.data + first * dx.stride, dx.slot_stride, dx.stride});
  dinput.row = {dx.stride, static_cast<int32_t>(count), layout_.samples * dx.stride};
  input_gradient(map, layout_.nodes * count, matrix(dquery_key), dinput, true);
  sum_samples(dquery_key, map.out, count, nullptr, first > 0);
}

void GeneralStep::attend(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  if (spec_.attention == AttentionSource::positions) return attend_from_positions(layer);
  if (spec_.attention == AttentionSource::data_and_positions) {
    map_positions(part(names::of_layer(layer, names::query_key), spec_.width, spec_.encoding_size));
  }
  for (int64_t first = 0; first < layout_.samples; first += layout_.chunk) {
    const int64_t count = std::min(layout_.chunk, layout_.samples - first);
    attend_from_data(layer, first, count);
    Product p = mixing(layout_.nodes, spec_.head_size(), layout_.nodes);
    p.outer = static_cast<int32_t>(count);
    p.a = attention_matrices(l.attention);
    p.b = head_of_sample(l.value, first);
    p.c = head_of_sample(l.mixed, first);
    enqueue(p);
  }
}

void GeneralStep::attend_backward(int layer, Rows<float> dx) {
  if (spec_.attention == AttentionSource::positions) return attend_from_positions_backward(layer);
  const std::string name = names::of_layer(layer, names::query_key);
  const bool with_positions = spec_.attention == AttentionSource::data_and_positions;
  const LinearPart of_positions = part(name, spec_.width, spec_.encoding_size);
  if (with_positions && !layout_.kept) map_positions(of_positions);
  for (int64_t first = 0; first < layout_.samples; first += layout_.chunk) {
    const int64_t count = std::min(layout_.chunk, layout_.samples - first);
    if (!layout_.kept) attend_from_data(layer, first, count);
    attend_from_data_backward(layer, dx, first, count);
  }
  if (with_positions) {
    map_positions_gradient(of_positions);
  } else {
    bias_gradient(whole(name));
  }
}

}  // namespace posattn::cuda
