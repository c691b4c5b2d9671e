// One layer of the general engine: attention, MLP and normalisation, forward and backward. What a
// layer does not have reads and writes the same place (general/layout.h); what a layer of two
// streams leaves out, nobody reads.
#include "posattn/kernels/cuda/normalisation.h"
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {
namespace {

Curve curve_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return Curve::relu;
    case Activation::gelu:
      return Curve::gelu;
    case Activation::gelu_tanh:
      return Curve::gelu_tanh;
  }
  return Curve::none;
}

}  // namespace

void GeneralStep::normalise(const NormalisationBlock& block, View x, View y) {
  enqueue_layer_norm(shape_.slots, layout_.rows, spec_.width, rows_of(x),
                     {parameter(block.gain), parameter_stride()},
                     {parameter(block.shift), parameter_stride()}, rows_of(y), data_.slots,
                     lane_.stream);
}

void GeneralStep::normalise_backward(const NormalisationBlock& block, View x, Rows<float> dy) {
  const Rows<float> terms = rows_at(layout_.norm_terms, spec_.width);
  sum_samples(dy, spec_.width, layout_.samples);
  vector_gradient(block.shift);
  enqueue_layer_norm_gradient(shape_.slots, layout_.rows, spec_.width, rows_of(x),
                              {parameter(block.gain), parameter_stride()}, dy, terms, data_.slots,
                              lane_.stream);
  sum_samples(terms, spec_.width, layout_.samples);
  vector_gradient(block.gain);
}

void GeneralStep::add(Rows<const float> x, Rows<float> y) {
  enqueue_spread(shape_.slots, layout_.rows, 1, spec_.width, x, y, true, data_.slots, lane_.stream);
}

void GeneralStep::forward_mlp(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const MlpBlock& mlp = plan_.layers[layer].mlp;
  Matrix<float> in = matrix_of(l.mlp_input);
  const std::size_t hidden = mlp.maps.size() - 1;
  for (std::size_t k = 0; k < hidden; ++k) {
    Product end;
    end.curve = curve_of(mlp.activation);
    if (l.maps[k] != l.hidden[k]) end.before = rows_at(l.maps[k], spec_.mlp_width);
    linear(whole(mlp.maps[k]), layout_.rows, in, matrix_at(l.hidden[k], spec_.mlp_width),
           Bias::parameter, end);
    in = matrix_at(l.hidden[k], spec_.mlp_width);
  }
  Product end;
  if (layout_.added) end.added = rows_of(l.joined);
  linear(whole(mlp.maps[hidden]), layout_.rows, in, matrix_of(l.output), Bias::parameter, end);
}

void GeneralStep::backward_mlp(int layer, Rows<float> dout, Rows<float> din, const Product& end) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const MlpBlock& mlp = plan_.layers[layer].mlp;
  for (std::size_t k = mlp.maps.size() - 1; k > 0; --k) {
    const Rows<float> dhidden = rows_at(layout_.gradients(layer).hidden[k - 1], spec_.mlp_width);
    Product slope;
    slope.curve = curve_of(mlp.activation);
    slope.slope_at = rows_at(l.maps[k - 1], spec_.mlp_width);
    linear_gradient(whole(mlp.maps[k]), matrix_at(l.hidden[k - 1], spec_.mlp_width), dout, dhidden,
                    slope);
    dout = dhidden;
  }
  linear_gradient(whole(mlp.maps.front()), matrix_of(l.mlp_input), dout, din, end);
}

void GeneralStep::forward_layer(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const LayerBlock& block = plan_.layers[layer];
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after, added = block.join == Join::add;
  if (before) normalise(*block.attention_norm, layout_.x[layer], l.attention_input);
  const bool mixes = block.attention.mixes();
  if (!layout_.fused && mixes) {
    linear(whole(block.attention.value), layout_.rows, matrix_of(l.attention_input),
           matrix_of(l.value));
  }
  if (block.values) {
    linear(whole(block.values->value), layout_.rows, matrix_of(layout_.v[layer]),
           matrix_at(l.values.value, spec_.value_width));
  }
  attend(layer);
  if (mixes) {
    Product end;
    if (added) end.added = rows_of(layout_.x[layer]);
    linear(whole(block.attention.output), layout_.rows, matrix_at(l.mixed, spec_.width),
           matrix_of(l.attended), Bias::parameter, end);
  }
  if (added) {
    if (after) normalise(*block.attention_norm, l.attended, l.joined);
    if (block.mlp_norm && before) normalise(*block.mlp_norm, l.joined, l.mlp_input);
  }
  if (block.values) forward_values(layer);
  if (block.symbols_read_values) {
    divide_by_size(layout_.v[layer + 1], l.values.next_unit, l.values.next_unit_inverse);
  }
  if (!block.mlp.maps.empty()) forward_mlp(layer);
  if (after) {
    normalise(added ? *block.mlp_norm : *block.attention_norm, l.output, layout_.x[layer + 1]);
  }
}

void GeneralStep::backward_layer(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const LayerBlock& block = plan_.layers[layer];
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after, added = block.join == Join::add;
  const Rows<float> dout = rows_of(layout_.dx(layer + 1));
  const Rows<float> dmlp = rows_of(layout_.dmlp_input(layer));
  if (after) normalise_backward(added ? *block.mlp_norm : *block.attention_norm, l.output, dout);
  const bool straight = added && !before;  // the gradient past a block is added where it arises
  const bool mixes = block.attention.mixes(), read = !block.mlp.maps.empty();
  if (read) backward_mlp(layer, dout, dmlp, straight ? plus(dout) : Product());
  if (block.symbols_read_values) {
    const View dnext = layout_.dmlp_input(layer);
    divide_by_size_gradient(l.values.next_unit, l.values.next_unit_inverse,
                            {dnext.offset + spec_.width, dnext.stride}, layout_.dv(layer + 1),
                            layer + 1 < spec_.depth || plan_.head.reads_values);
  }
  if (block.values) backward_values(layer);
  Rows<float> dattended = dmlp;
  const Rows<float> dinput = rows_of(layout_.dx(layer));
  if (added) {  // dout goes past the MLP and past attention: dmlp, then dinput, are with it
    if (block.mlp_norm && before) {
      normalise_backward(*block.mlp_norm, l.joined, dmlp);
      if (read) add(dout, dmlp);
    }
    if (after) normalise_backward(*block.attention_norm, l.attended, dmlp);
  } else {
    dattended.data += spec_.width;
  }
  const GeneralLayout::LayerGradients& gradients = layout_.gradients(layer);
  if (mixes) {
    linear_gradient(whole(block.attention.output), matrix_at(l.mixed, spec_.width), dattended,
                    rows_at(gradients.mixed, spec_.width));
  }
  const Product end = attend_backward(layer, dinput,
                                      straight ? plus(dmlp)
                                      : added  ? Product()
                                               : added_to());
  if (!layout_.fused && mixes) {
    linear_gradient(whole(block.attention.value), matrix_of(l.attention_input),
                    rows_of(gradients.value), dinput, end);
  }
  if (block.values) {  // past attention goes du, or what gates make of it, which is there
    linear_gradient(whole(block.values->value), matrix_of(layout_.v[layer]),
                    rows_at(gradients.values.value, spec_.value_width), rows_of(layout_.dv(layer)),
                    block.values->mix_gate ? added_to() : plus(rows_of(layout_.dsum(layer))));
  }
  if (spec_.scores_read_values) {
    const View dsource = layout_.dx(layer);
    divide_by_size_gradient(l.values.unit, l.values.unit_inverse,
                            {dsource.offset + spec_.width, dsource.stride}, layout_.dv(layer),
                            block.values.has_value());
  }
  if (before) normalise_backward(*block.attention_norm, layout_.x[layer], dinput);
  if (added && before && mixes) add(dmlp, dinput);
}

}  // namespace posattn::cuda
