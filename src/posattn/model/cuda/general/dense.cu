// Linear maps of the general engine.
#include "posattn/model/cuda/general/step.h"
#include "posattn/model/tensor_names.h"

namespace posattn::cuda {

LinearPart GeneralStep::part(std::string_view name, int64_t first_column, int64_t in) const {
  const TensorInfo& weight = parameter_layout_.at(names::weight(name));
  const TensorInfo& bias = parameter_layout_.at(names::bias(name));
  return {weight.offset + first_column, bias.offset, weight.shape[1], static_cast<int32_t>(in),
          static_cast<int32_t>(weight.shape[0])};
}

LinearPart GeneralStep::whole(std::string_view name) const {
  return part(name, 0, parameter_layout_.at(names::weight(name)).shape[1]);
}

void GeneralStep::enqueue(Product product) {
  product.slots = shape_.slots;
  enqueue_product(product, shape_.precision, data_.slots, memory_.product_workspace, stream_);
}

void GeneralStep::linear(const LinearPart& map, int64_t rows, Matrix<const float> x,
                         Matrix<float> y, Bias bias, bool relu) {
  Product p;
  p.rows = static_cast<int32_t>(rows);
  p.depth = map.in;
  p.columns = map.out;
  p.a = x;
  p.b = transpose(
      row_major(parameters_ + map.weight, map.row_stride, parameter_layout_.buffer_size()));
  p.c = y;
  if (bias == Bias::parameter) {
    p.bias = parameters_ + map.bias;
    p.bias_slot = parameter_layout_.buffer_size();
  } else if (bias == Bias::node_table) {
    p.bias = at(layout_.node_table);
    p.bias_slot = layout_.floats;
    p.bias_stride = map.out;
    p.bias_rows = static_cast<int32_t>(rows / layout_.nodes);
  }
  p.relu = relu;
  enqueue(p);
}

void GeneralStep::weight_gradient(const LinearPart& map, int64_t rows, Matrix<const float> x,
                                  Matrix<const float> dy, bool accumulate) {
  Product p;
  p.rows = map.out;
  p.columns = map.in;
  p.depth = static_cast<int32_t>(rows);
  p.a = transpose(dy);
  p.b = x;
  p.c = row_major(gradients_ + map.weight, map.row_stride, parameter_layout_.buffer_size());
  p.accumulate = accumulate;
  enqueue(p);
}

void GeneralStep::input_gradient(const LinearPart& map, int64_t rows, Matrix<const float> dy,
                                 Matrix<float> dx, bool accumulate) {
  Product p;
  p.rows = static_cast<int32_t>(rows);
  p.columns = map.in;
  p.depth = map.out;
  p.a = dy;
  p.b = row_major(parameters_ + map.weight, map.row_stride, parameter_layout_.buffer_size());
  p.c = dx;
  p.accumulate = accumulate;
  enqueue(p);
}

void GeneralStep::sum_samples(Rows<float> dy, int64_t columns, int64_t count,
                              const float* activation, bool accumulate) {
  enqueue_group_sums(shape_.slots, static_cast<int32_t>(layout_.nodes), static_cast<int32_t>(count),
                     static_cast<int32_t>(columns), dy, activation,
                     rows_at(layout_.node_sums, columns), accumulate, data_.slots, stream_);
}

void GeneralStep::bias_gradient(const LinearPart& map) {
  enqueue_sum_parts(shape_.slots, static_cast<int32_t>(layout_.nodes), map.out,
                    {at(layout_.node_sums), layout_.floats, map.out}, gradients_ + map.bias,
                    parameter_layout_.buffer_size(), false, data_.slots, stream_);
}

Matrix<const float> GeneralStep::positions() const {
  if (!spec_.stores_positions()) return row_major(memory_.positions, spec_.encoding_size);
  return row_major(parameters_ + parameter_layout_.at(names::positions).offset, spec_.encoding_size,
                   parameter_layout_.buffer_size());
}

void GeneralStep::map_positions(const LinearPart& map) {
  linear(map, layout_.nodes, positions(), matrix_at(layout_.node_table, map.out), Bias::parameter);
}

void GeneralStep::map_positions_gradient(const LinearPart& map) {
  bias_gradient(map);
  const Matrix<const float> dtable = matrix_at(layout_.node_sums, map.out);
  weight_gradient(map, layout_.nodes, positions(), dtable);
  if (!spec_.stores_positions() || spec_.encoding != Encoding::learned) return;
  const int64_t offset = parameter_layout_.at(names::positions).offset;
  input_gradient(
      map, layout_.nodes, dtable,
      row_major(gradients_ + offset, spec_.encoding_size, parameter_layout_.buffer_size()),
      positions_have_gradient_);
  positions_have_gradient_ = true;
}

}  // namespace posattn::cuda
