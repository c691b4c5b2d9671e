// The input of the general engine: numbers, tokens and positions become x of the first layer; of
// two streams numbers become v.
#include "posattn/kernels/cuda/tokens.h"
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

// r is the root mean square of the sample's nodes; scratch nodes are none.
PartShape GeneralStep::input_parts() const {
  PartShape shape = parts(spec_.data_columns, true);
  shape.nodes = spec_.real_nodes;
  return shape;
}

void GeneralStep::divide_inputs() {
  const Rows<float> x = rows_of(layout_.inputs);
  enqueue_spread(shape_.slots, layout_.rows, 1, spec_.data_columns,
                 {data_.inputs, layout_.rows * spec_.data_columns, spec_.data_columns}, x, false,
                 data_.slots, lane_.stream);
  enqueue_scale_parts(input_parts(), x, x, rows_at(layout_.inputs_inverse, 1), data_.slots,
                      lane_.stream);
}

void GeneralStep::multiply_outputs() {
  enqueue_multiply_back(input_parts(), rows_at(layout_.inputs_inverse, 1), spec_.output_columns,
                        rows_at(layout_.output, spec_.output_columns), data_.slots, lane_.stream);
}

void GeneralStep::encode() {
  const InputBlock& block = plan_.input;
  if (spec_.wrap == Wrap::scale) divide_inputs();
  const int64_t columns = block.stream ? 0 : spec_.data_columns;
  const auto width = static_cast<int32_t>(spec_.width);
  const auto samples = static_cast<int32_t>(layout_.samples);
  const Rows<float> x = rows_of(layout_.x.front());
  if (block.positions_joined) {
    map_positions(part(*block.values, columns, spec_.encoding_size));
  }
  if (block.values && columns > 0) {
    linear(part(*block.values, 0, columns), layout_.rows, matrix(inputs()), matrix(x),
           block.positions_joined ? Bias::node_table : Bias::parameter);
  } else if (block.values) {  // of positions alone
    enqueue_spread(shape_.slots, layout_.rows, samples, width, rows_at(layout_.node_table, width),
                   x, false, data_.slots, lane_.stream);
  }
  if (block.tokens != no_tensor) {
    enqueue_embed(shape_.slots, layout_.rows, width, data_.tokens,
                  {parameter(block.tokens), parameter_stride(), width},
                  !block.values        ? Embedding::alone
                  : block.tokens_added ? Embedding::added
                                       : Embedding::replacing,
                  x, data_.slots, lane_.stream);
  }
  if (block.stream) {
    const View v = layout_.v.front();
    linear(whole(*block.stream), layout_.rows, matrix(inputs()), matrix_of(v));
    if (tokens_have_no_values()) clear_embedded(rows_of(v), spec_.value_width);
  }
  if (!block.positions_added) return;
  const Matrix<const float> p = positions();
  enqueue_spread(shape_.slots, layout_.rows, samples, width, {p.data, p.slot, width}, x, true,
                 data_.slots, lane_.stream);
}

// Of two streams where a node holds either: W 0 = 0 there.
bool GeneralStep::tokens_have_no_values() const {
  return plan_.input.tokens != no_tensor && !spec_.tokens_and_values;
}

void GeneralStep::clear_embedded(Rows<float> rows, int32_t columns) {
  enqueue_clear_embedded(shape_.slots, layout_.rows, columns, data_.tokens, rows, data_.slots,
                         lane_.stream);
}

void GeneralStep::encode_backward(Rows<float> dx) {
  const InputBlock& block = plan_.input;
  const int64_t columns = block.stream ? 0 : spec_.data_columns, width = spec_.width;
  if (block.positions_added && positions_are_learned()) {
    sum_samples(dx, width, layout_.samples);
    enqueue_sum_parts(shape_.slots, 1, layout_.nodes * width, rows_at(lane_.node_sums, width),
                      gradient(plan_.positions), parameter_stride(), positions_have_gradient_,
                      data_.slots, lane_.stream);
    positions_have_gradient_ = true;
  }
  if (block.tokens != no_tensor) {
    const bool tied = plan_.head.map.weight == block.tokens;  // has the head's gradient by now
    enqueue_embed_gradient(shape_.slots, layout_.rows, spec_.width, spec_.vocabulary, data_.tokens,
                           dx, {gradient(block.tokens), parameter_stride(), width}, tied,
                           data_.slots, lane_.workspace, lane_.stream);
    // Rows of tokens have not seen the map.
    if (block.values && !block.tokens_added) clear_embedded(dx, spec_.width);
  }
  if (block.stream) {
    const Rows<float> dv = rows_of(layout_.dv(0));
    if (tokens_have_no_values()) clear_embedded(dv, spec_.value_width);
    enqueue(weight_gradient(whole(*block.stream), layout_.rows, matrix(inputs()), matrix(dv)));
  }
  if (!block.values) return;
  if (columns > 0) {
    enqueue(weight_gradient(part(*block.values, 0, columns), layout_.rows, matrix(inputs()),
                            matrix(dx)));
  }
  sum_samples(dx, width, layout_.samples);
  if (block.positions_joined) {
    map_positions_gradient(part(*block.values, columns, spec_.encoding_size));
  } else {
    vector_gradient(block.values->bias);
  }
}

}  // namespace posattn::cuda
