#include "posattn/kernels/cuda/elementwise_training.h"
#include "posattn/model/cuda/general/step.h"
#include "posattn/model/tensor_names.h"

namespace posattn::cuda {

namespace {

std::string mlp_tensor(int layer, int map) { return names::of_layer(layer, names::mlp_map(map)); }

}  // namespace

GeneralStep::GeneralStep(const FleetShape& shape, const ParameterLayout& parameter_layout,
                         const GeneralLayout& layout, const GeneralMemory& memory,
                         const StepData& data, const float* parameters, float* gradients,
                         cudaStream_t stream)
    : shape_(shape),
      spec_(shape.spec),
      parameter_layout_(parameter_layout),
      layout_(layout),
      memory_(memory),
      data_(data),
      parameters_(parameters),
      gradients_(gradients),
      stream_(stream) {}

void GeneralStep::run(double* losses) {
  forward();
  squared_error(losses);
  backward();
}

void GeneralStep::forward() {
  const int64_t columns = spec_.data_columns;
  const auto inputs = row_major(data_.inputs, columns, layout_.rows * columns);
  const Matrix<float> x = matrix_at(layout_.layers[0].joined, 2 * spec_.width);
  const bool with_positions = spec_.positions_in_input;
  if (with_positions) map_positions(part(names::encoding, columns, spec_.encoding_size));
  linear(part(names::encoding, 0, columns), layout_.rows, inputs, x,
         with_positions ? Bias::node_table : Bias::parameter);
  for (int layer = 0; layer < spec_.depth; ++layer) forward_layer(layer);
  linear(whole(names::decoding), layout_.rows, matrix_at(layout_.decoder_input, spec_.width),
         matrix_at(layout_.output, spec_.output_columns), Bias::parameter);
}

void GeneralStep::forward_layer(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const int64_t width = spec_.width, rows = layout_.rows;
  linear(whole(names::of_layer(layer, names::value)), rows, matrix_at(l.joined, 2 * width),
         matrix_at(l.value, width), Bias::parameter);
  attend(layer);
  linear(whole(names::of_layer(layer, names::output)), rows, matrix_at(l.mixed, width),
         matrix_at(l.joined + width, 2 * width), Bias::parameter);
  Matrix<float> in = matrix_at(l.joined, 2 * width);
  for (int k = 0; k < spec_.mlp_depth; ++k) {
    const bool last = k + 1 == spec_.mlp_depth;
    Matrix<float> out;
    if (!last) {
      out = matrix_at(l.hidden[k], spec_.mlp_width);
    } else if (layer + 1 < spec_.depth) {
      out = matrix_at(layout_.layers[layer + 1].joined, 2 * width);
    } else {
      out = matrix_at(layout_.decoder_input, width);
    }
    linear(whole(mlp_tensor(layer, k)), rows, in, out, Bias::parameter, !last);
    in = out;
  }
}

void GeneralStep::squared_error(double* losses) {
  const ErrorShape error{shape_.slots, static_cast<int32_t>(layout_.nodes),
                         static_cast<int32_t>(layout_.samples), spec_.output_columns};
  enqueue_squared_error(error, data_.targets, data_.counted, data_.slots, at(layout_.output),
                        layout_.floats, memory_.errors, losses, stream_);
}

void GeneralStep::backward() {
  const int64_t width = spec_.width, rows = layout_.rows;
  const LinearPart decoding = whole(names::decoding);
  const Rows<float> dy = rows_at(layout_.output, spec_.output_columns);
  sum_samples(dy, decoding.out, layout_.samples);
  bias_gradient(decoding);
  weight_gradient(decoding, rows, matrix_at(layout_.decoder_input, width), matrix(dy));
  input_gradient(decoding, rows, matrix(dy),
                 matrix_at(layout_.djoined[spec_.depth % 2], 2 * width));

  for (int layer = spec_.depth - 1; layer >= 0; --layer) backward_layer(layer);

  const int64_t columns = spec_.data_columns;
  const LinearPart encoding = part(names::encoding, 0, columns);
  const Rows<float> dx = rows_at(layout_.djoined[0], 2 * width);
  weight_gradient(encoding, rows, row_major(data_.inputs, columns, rows * columns), matrix(dx));
  sum_samples(dx, width, layout_.samples);
  if (spec_.positions_in_input) {
    map_positions_gradient(part(names::encoding, columns, spec_.encoding_size));
  } else {
    bias_gradient(encoding);
  }
}

void GeneralStep::backward_layer(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const int64_t width = spec_.width, rows = layout_.rows;
  const Rows<float> djoined = rows_at(layout_.djoined[layer % 2], 2 * width);
  Rows<float> dout = rows_at(layout_.djoined[(layer + 1) % 2], 2 * width);
  for (int k = spec_.mlp_depth - 1; k >= 0; --k) {
    const bool last = k + 1 == spec_.mlp_depth;
    const LinearPart map = whole(mlp_tensor(layer, k));
    sum_samples(dout, map.out, layout_.samples, last ? nullptr : at(l.hidden[k]));
    bias_gradient(map);
    const Matrix<float> in =
        k == 0 ? matrix_at(l.joined, 2 * width) : matrix_at(l.hidden[k - 1], spec_.mlp_width);
    const Rows<float> din = k == 0 ? djoined : rows_at(layout_.dhidden[k % 2], spec_.mlp_width);
    weight_gradient(map, rows, in, matrix(dout));
    input_gradient(map, rows, matrix(dout), matrix(din));
    dout = din;
  }

  const Rows<float> dattention_output = rows_at(layout_.djoined[layer % 2] + width, 2 * width);
  const LinearPart output = whole(names::of_layer(layer, names::output));
  sum_samples(dattention_output, width, layout_.samples);
  bias_gradient(output);
  weight_gradient(output, rows, matrix_at(l.mixed, width), matrix(dattention_output));
  input_gradient(output, rows, matrix(dattention_output), matrix_at(layout_.dmixed, width));

  attend_backward(layer, djoined);  // djoined begins with dx

  const LinearPart value = whole(names::of_layer(layer, names::value));
  const Rows<float> dvalue = rows_at(layout_.dvalue, width);
  sum_samples(dvalue, width, layout_.samples);
  bias_gradient(value);
  weight_gradient(value, rows, matrix_at(l.joined, 2 * width), matrix(dvalue));
  input_gradient(value, rows, matrix(dvalue), matrix(djoined), true);
}

}  // namespace posattn::cuda
