// Attention from data in one kernel: queries, keys and values are the columns of one matrix, the
// source, and one product makes all of them where they come from the same x.
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

AttentionShape GeneralStep::fused_shape(int layer) const {
  const AttentionBlock& block = attention(layer);
  AttentionShape shape;
  shape.slots = shape_.slots;
  shape.nodes = static_cast<int32_t>(layout_.nodes);
  shape.samples = static_cast<int32_t>(layout_.samples);
  shape.heads = block.heads;
  shape.key_size = block.data->key_size;
  shape.head_size = block.head_size;
  shape.attended = {spec_.real_nodes, block.causal ? shape.nodes : 0};
  return shape;
}

// Makes queries and keys, then values, from what attention reads.
LinearPart GeneralStep::source_map(const DataTerm& term, int layer) const {
  const LinearBlock& value = attention(layer).value;
  LinearPart map = whole(term.query_key);
  map.rows = {map.in, map.out, info(value.weight).offset - map.weight};
  map.bias_rows = {1, map.out, info(value.bias).offset - info(map.bias).offset};
  map.out += value.out;
  return map;
}

void GeneralStep::attend_fused(int layer) {
  const DataTerm& term = *attention(layer).data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const Rows<float> source = rows_at(l.query_key, layout_.source_columns);
  const Matrix<float> input = matrix_of(l.attention_input);
  if (term.positions_joined) {
    map_positions(part(term.query_key, spec_.width, spec_.encoding_size));
    linear(part(term.query_key, 0, spec_.width), layout_.rows, input, matrix(source),
           Bias::node_table);
    linear(whole(attention(layer).value), layout_.rows, input, matrix_of(l.value));
  } else {
    linear(source_map(term, layer), layout_.rows, input, matrix(source));
  }
  if (term.rope) rotate(source, layout_.samples, 1);
  enqueue_attention(fused_shape(layer), source, rows_at(l.mixed, spec_.width),
                    rows_at(l.totals, spec_.heads), shape_.precision, data_.slots, lane_.stream);
}

void GeneralStep::attend_fused_backward(int layer, Rows<float> dinput, const Product& end) {
  const DataTerm& term = *attention(layer).data;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::LayerGradients& gradients = layout_.gradients(layer);
  const Rows<float> source = rows_at(l.query_key, layout_.source_columns);
  const Rows<float> dsource = rows_at(gradients.query_key, layout_.source_columns);
  const Matrix<float> input = matrix_of(l.attention_input);
  enqueue_attention_gradient(fused_shape(layer), source, rows_at(l.mixed, spec_.width),
                             rows_at(l.totals, spec_.heads), rows_at(gradients.mixed, spec_.width),
                             dsource, shape_.precision, data_.slots, lane_.stream);
  if (term.rope) rotate(dsource, layout_.samples, -1);
  if (!term.positions_joined) {
    return linear_gradient(source_map(term, layer), input, dsource, dinput, end);
  }
  const LinearPart of_input = part(term.query_key, 0, spec_.width);
  run_concurrently(concurrent_.weights, [&] {
    enqueue(weight_gradient(of_input, layout_.rows, input, matrix(dsource)));
  });
  input_gradient(of_input, layout_.rows, matrix(dsource), matrix(dinput), end);
  sum_samples(dsource, of_input.out, layout_.samples);
  map_positions_gradient(part(term.query_key, spec_.width, spec_.encoding_size));
  linear_gradient(whole(attention(layer).value), input, rows_of(gradients.value), dinput,
                  added_to());
}

}  // namespace posattn::cuda
