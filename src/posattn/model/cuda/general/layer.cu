// One layer of the general engine: attention, MLP and normalisation, forward and backward. What a
// layer does not have reads and writes the same place (general/layout.h).
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
                     stream_);
}

void GeneralStep::normalise_backward(const NormalisationBlock& block, View x, Rows<float> dy) {
  const Rows<float> terms = rows_at(layout_.dmixed, spec_.width);
  sum_samples(dy, spec_.width, layout_.samples);
  vector_gradient(block.shift);
  enqueue_layer_norm_gradient(shape_.slots, layout_.rows, spec_.width, rows_of(x),
                              {parameter(block.gain), parameter_stride()}, dy, terms, data_.slots,
                              stream_);
  sum_samples(terms, spec_.width, layout_.samples);
  vector_gradient(block.gain);
}

void GeneralStep::add(Rows<const float> x, Rows<float> y) {
  enqueue_spread(shape_.slots, layout_.rows, 1, spec_.width, x, y, true, data_.slots, stream_);
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

void GeneralStep::backward_mlp(int layer, Rows<float> dout, Rows<float> din, bool accumulate) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const MlpBlock& mlp = plan_.layers[layer].mlp;
  for (std::size_t k = mlp.maps.size() - 1; k > 0; --k) {
    const Rows<float> dhidden = rows_at(layout_.dhidden[k % 2], spec_.mlp_width);
    Product end;
    end.curve = curve_of(mlp.activation);
    end.slope_at = rows_at(l.maps[k - 1], spec_.mlp_width);
    linear_gradient(whole(mlp.maps[k]), matrix_at(l.hidden[k - 1], spec_.mlp_width), dout, dhidden,
                    end);
    dout = dhidden;
  }
  linear_gradient(whole(mlp.maps.front()), matrix_of(l.mlp_input), dout, din,
                  accumulate ? added_to() : Product());
}

void GeneralStep::forward_layer(int layer) {
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const LayerBlock& block = plan_.layers[layer];
  const bool before = block.when == Normalisation::before,
             after = block.when == Normalisation::after, added = block.join == Join::add;
  if (before) normalise(*block.attention_norm, layout_.x[layer], l.heard);
  if (!layout_.fused) {
    linear(whole(block.attention.value), layout_.rows, matrix_of(l.heard), matrix_of(l.value));
  }
  attend(layer);
  Product end;
  if (added) end.added = rows_of(layout_.x[layer]);
  linear(whole(block.attention.output), layout_.rows, matrix_at(l.mixed, spec_.width),
         matrix_of(l.attended), Bias::parameter, end);
  if (added) {
    if (after) normalise(*block.attention_norm, l.attended, l.joined);
    if (before) normalise(*block.mlp_norm, l.joined, l.mlp_input);
  }
  forward_mlp(layer);
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
  const bool straight = added && !before;  // gradients of x are added where they arise
  backward_mlp(layer, dout, straight ? dout : dmlp, straight);

  Rows<float> dattended = dout, dheard = dmlp;
  if (added) {  // dout goes past the MLP and past attention, and is dx in the end
    if (before) {
      normalise_backward(*block.mlp_norm, l.joined, dmlp);
      add(dmlp, dout);
    }
    if (after) normalise_backward(*block.attention_norm, l.attended, dout);
    if (!before) dheard = dout;
  } else {
    dattended.data = dmlp.data + spec_.width;
  }
  linear_gradient(whole(block.attention.output), matrix_at(l.mixed, spec_.width), dattended,
                  rows_at(layout_.dmixed, spec_.width));
  const bool started = attend_backward(layer, dheard, !added || !before);
  if (!layout_.fused) {
    linear_gradient(whole(block.attention.value), matrix_of(l.heard), rows_of(layout_.dvalue),
                    dheard, started ? added_to() : Product());
  }
  if (before) normalise_backward(*block.attention_norm, layout_.x[layer], dheard);
  if (added && before) add(dheard, dout);
}

}  // namespace posattn::cuda
