// Linear maps of the general engine.
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

LinearPart GeneralStep::part(const LinearBlock& map, int64_t first_column, int64_t in) const {
  return {info(map.weight).offset + first_column, map.bias, map.in, static_cast<int32_t>(in),
          map.out};
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
  p.b = transpose(row_major(parameters_ + map.weight, map.row_stride, parameter_stride()));
  p.c = y;
  if (bias == Bias::parameter && map.bias != no_tensor) {
    p.bias = parameter(map.bias);
    p.bias_slot = parameter_stride();
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
  p.c = row_major(gradients_ + map.weight, map.row_stride, parameter_stride());
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
  p.b = row_major(parameters_ + map.weight, map.row_stride, parameter_stride());
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

void GeneralStep::vector_gradient(TensorId vector) {
  const int64_t size = info(vector).size;
  enqueue_sum_parts(shape_.slots, static_cast<int32_t>(layout_.nodes), size,
                    rows_at(layout_.node_sums, size), gradient(vector), parameter_stride(), false,
                    data_.slots, stream_);
}

void GeneralStep::linear_gradient(const LinearBlock& map, Matrix<const float> x, Rows<float> dy,
                                  Rows<float> dx, bool accumulate, const float* activation) {
  if (map.bias != no_tensor) {
    sum_samples(dy, map.out, layout_.samples, activation);
    vector_gradient(map.bias);
  }
  weight_gradient(whole(map), layout_.rows, x, matrix(dy));
  input_gradient(whole(map), layout_.rows, matrix(dy), matrix(dx), accumulate);
}

Matrix<const float> GeneralStep::positions() const {
  if (plan_.positions == no_tensor) return row_major(memory_.positions, spec_.encoding_size);
  return row_major(parameter(plan_.positions), spec_.encoding_size, parameter_stride());
}

bool GeneralStep::positions_are_learned() const {
  return plan_.positions != no_tensor && info(plan_.positions).trained;
}

void GeneralStep::map_positions(const LinearPart& map) {
  linear(map, layout_.nodes, positions(), matrix_at(layout_.node_table, map.out));
}

void GeneralStep::map_positions_gradient(const LinearPart& map) {
  vector_gradient(map.bias);
  const Matrix<const float> dtable = matrix_at(layout_.node_sums, map.out);
  weight_gradient(map, layout_.nodes, positions(), dtable);
  if (!positions_are_learned()) return;
  input_gradient(map, layout_.nodes, dtable,
                 row_major(gradient(plan_.positions), spec_.encoding_size, parameter_stride()),
                 positions_have_gradient_);
  positions_have_gradient_ = true;
}

}  // namespace posattn::cuda
