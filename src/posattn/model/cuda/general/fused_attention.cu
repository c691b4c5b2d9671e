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
  shape.key_size = block.key_size;
  shape.head_size = block.head_size;
  shape.attended = {spec_.real_nodes, block.causal ? shape.nodes : 0};
  return shape;
}

// Makes queries and keys, then values, from what attention reads.
LinearPart GeneralStep::source_map(const DataScores& kind, int layer) const {
  const LinearBlock& value = attention(layer).value;
  LinearPart map = whole(kind.query_key);
  map.rows = {map.in, map.out, info(value.weight).offset - map.weight};
  map.bias_rows = {1, map.out, info(value.bias).offset - info(map.bias).offset};
  map.out += value.out;
  return map;
}

void GeneralStep::attend_fused(const DataScores& kind, int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const Rows<float> source = rows_at(l.query_key, layout_.source_columns);
  const Matrix<float> input = matrix_of(l.attention_input);
  if (kind.positions_joined) {
    map_positions(part(kind.query_key, spec_.width, spec_.encoding_size));
    linear(part(kind.query_key, 0, spec_.width), layout_.rows, input, matrix(source),
           Bias::node_table);
    linear(whole(attention(layer).value), layout_.rows, input, matrix_of(l.value));
  } else {
    linear(source_map(kind, layer), layout_.rows, input, matrix(source));
  }
  if (kind.rope) rotate(source, layout_.samples, 1);
  enqueue_attention(fused_shape(layer), source, rows_at(l.mixed, spec_.width),
                    rows_at(l.totals, spec_.heads), shape_.precision, data_.slots, lane_.stream);
}

void GeneralStep::attend_fused_backward(const DataScores& kind, int layer, Rows<float> dinput,
                                        const Product& end) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::LayerGradients& gradients = layout_.gradients(layer);
  const Rows<float> source = rows_at(l.query_key, layout_.source_columns);
  const Rows<float> dsource = rows_at(gradients.query_key, layout_.source_columns);
  const Matrix<float> input = matrix_of(l.attention_input);
  enqueue_attention_gradient(fused_shape(layer), source, rows_at(l.mixed, spec_.width),
                             rows_at(l.totals, spec_.heads), rows_at(gradients.mixed, spec_.width),
                             dsource, shape_.precision, data_.slots, lane_.stream);
  if (kind.rope) rotate(dsource, layout_.samples, -1);
  if (!kind.positions_joined) {
    return linear_gradient(source_map(kind, layer), input, dsource, dinput, end);
  }
  const LinearPart of_input = part(kind.query_key, 0, spec_.width);
  run_concurrently(concurrent_.weights, [&] {
    enqueue(weight_gradient(of_input, layout_.rows, input, matrix(dsource)));
  });
  input_gradient(of_input, layout_.rows, matrix(dsource), matrix(dinput), end);
  sum_samples(dsource, of_input.out, layout_.samples);
  map_positions_gradient(part(kind.query_key, spec_.width, spec_.encoding_size));
  linear_gradient(whole(attention(layer).value), input, rows_of(gradients.value), dinput,
                  added_to());
}

}  // namespace posattn::cuda
