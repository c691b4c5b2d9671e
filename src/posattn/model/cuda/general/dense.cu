// Linear maps of the general engine.
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

LinearPart GeneralStep::part(const LinearBlock& map, int64_t first_column, int64_t in) const {
  return {info(map.weight).offset + first_column,
          map.bias,
          {map.in},
          {1},
          static_cast<int32_t>(in),
          map.out};
}

void GeneralStep::enqueue(Product product) {
  product.slots = shape_.slots;
  enqueue_product(product, shape_.precision, data_.slots, lane_.workspace, lane_.stream);
}

void GeneralStep::linear(const LinearPart& map, int64_t rows, Matrix<const float> x,
                         Matrix<float> y, Bias bias, Product p) {
  p.rows = static_cast<int32_t>(rows);
  p.depth = map.in;
  p.columns = map.out;
  p.a = x;
  p.b = {parameters_ + map.weight, {1}, map.rows, parameter_stride()};
  p.c = y;
  if (bias == Bias::parameter && map.bias != no_tensor) {
    p.bias = parameter(map.bias);
    p.bias_slot = parameter_stride();
    p.bias_column = map.bias_rows;
  } else if (bias == Bias::node_table) {
    p.bias = at(layout_.node_table);
    p.bias_slot = layout_.floats;
    p.bias_stride = map.out;
    p.bias_rows = static_cast<int32_t>(rows / layout_.nodes);
  }
  enqueue(p);
}

Product GeneralStep::weight_gradient(const LinearPart& map, int64_t rows, Matrix<const float> x,
                                     Matrix<const float> dy, bool accumulate) const {
  Product p;
  p.rows = map.out;
  p.columns = map.in;
  p.depth = static_cast<int32_t>(rows);
  p.a = transpose(dy);
  p.b = x;
  p.c = {gradients_ + map.weight, map.rows, {1}, parameter_stride()};
  p.accumulate = accumulate;
  return p;
}

void GeneralStep::input_gradient(const LinearPart& map, int64_t rows, Matrix<const float> dy,
                                 Matrix<float> dx, Product p) {
  p.rows = static_cast<int32_t>(rows);
  p.columns = map.in;
  p.depth = map.out;
  p.a = dy;
  p.b = {parameters_ + map.weight, map.rows, {1}, parameter_stride()};
  p.c = dx;
  enqueue(p);
}

void GeneralStep::sum_samples(Rows<float> dy, int64_t columns, int64_t count, bool accumulate) {
  enqueue_group_sums(shape_.slots, static_cast<int32_t>(layout_.nodes), static_cast<int32_t>(count),
                     static_cast<int32_t>(columns), dy, rows_at(lane_.node_sums, columns),
                     accumulate, data_.slots, lane_.stream);
}

void GeneralStep::vector_gradient(TensorId vector) {
  const int64_t size = info(vector).size;
  enqueue_sum_parts(shape_.slots, static_cast<int32_t>(layout_.nodes), size,
                    rows_at(lane_.node_sums, size), gradient(vector), parameter_stride(), false,
                    data_.slots, lane_.stream);
}

void GeneralStep::linear_gradient(const LinearPart& map, Matrix<const float> x, Rows<float> dy,
                                  Rows<float> dx, Product end) {
  Product p = weight_gradient(map, layout_.rows, x, matrix(dy));
  if (map.bias != no_tensor) {
    p.row_sums = gradient(map.bias);
    p.row_sums_slot = parameter_stride();
    p.row_sums_row = map.bias_rows;
  }
  run_concurrently(concurrent_.weights, [&] { enqueue(p); });
  input_gradient(map, layout_.rows, matrix(dy), matrix(dx), std::move(end));
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
  const Matrix<const float> dtable = matrix_at(lane_.node_sums, map.out);
  enqueue(weight_gradient(map, layout_.nodes, positions(), dtable));
  if (!positions_are_learned()) return;
  input_gradient(map, layout_.nodes, dtable,
                 row_major(gradient(plan_.positions), spec_.encoding_size, parameter_stride()),
                 positions_have_gradient_ ? added_to() : Product());
  positions_have_gradient_ = true;
}

}  // namespace posattn::cuda
