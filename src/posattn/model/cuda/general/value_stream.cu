// The stream of values in a layer of two streams, behind attention (ValueStreamBlock):
//
//   u = v + o,  v' = u + W_1 relu(W_0 u),  o = W_O of what attention mixed
//
// with gates g = 2 sigmoid(p) of the symbols u = g_1 v + g_2 o and v' = u + W_1 (g_h relu(W_0 u)).
#include "posattn/kernels/cuda/gates.h"
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

// Of the values (0), or of what attention adds to them (1).
Rows<float> GeneralStep::mix_gate_rows(int64_t gates, int which) const {
  return rows_at(gates + which * spec_.value_width, int64_t{2} * spec_.value_width);
}

void GeneralStep::divide_by_size(View v, View unit, int64_t inverse) {
  enqueue_scale_parts(parts(spec_.value_width, true), rows_of(v), rows_of(unit),
                      rows_at(inverse, 1), data_.slots, lane_.stream);
}

void GeneralStep::divide_by_size_gradient(View unit, int64_t inverse, View dunit, View dv,
                                          bool accumulate) {
  enqueue_scale_parts_gradient(parts(spec_.value_width, true), rows_of(unit), rows_at(inverse, 1),
                               rows_of(dunit), rows_of(dv), accumulate, data_.slots, lane_.stream);
}

void GeneralStep::forward_values(int layer) {
  const ValueStreamBlock& block = *plan_.layers[layer].values;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::Values& values = l.values;
  const int32_t width = spec_.value_width, hidden = spec_.value_mlp_width;
  const Rows<float> v = rows_of(layout_.v[layer]), u = rows_of(values.sum);
  linear(whole(block.output), layout_.rows, matrix_at(values.mixed, width),
         matrix_of(values.output), Bias::parameter, block.mix_gate ? Product() : plus(v));
  if (block.mix_gate) {
    linear(whole(*block.mix_gate), layout_.rows, matrix_of(l.mlp_input),
           matrix_at(values.mix_gates, int64_t{2} * width));
    const Rows<float> gated[] = {v, rows_of(values.output)};
    for (const int i : {0, 1}) {
      enqueue_gate(shape_.slots, layout_.rows, width, mix_gate_rows(values.mix_gates, i), gated[i],
                   u, i > 0, data_.slots, lane_.stream);
    }
  }
  if (block.mlp.empty()) return;  // u is v'
  Product relu;
  relu.curve = Curve::relu;
  linear(whole(block.mlp[0]), layout_.rows, matrix(u), matrix_at(values.hidden, hidden),
         Bias::parameter, relu);
  if (block.hidden_gate) {
    linear(whole(*block.hidden_gate), layout_.rows, matrix_of(l.mlp_input),
           matrix_at(values.hidden_gates, hidden));
    enqueue_gate(shape_.slots, layout_.rows, hidden, rows_at(values.hidden_gates, hidden),
                 rows_at(values.hidden, hidden), rows_at(values.gated, hidden), false, data_.slots,
                 lane_.stream);
  }
  linear(whole(block.mlp[1]), layout_.rows, matrix_at(values.gated, hidden),
         matrix_of(layout_.v[layer + 1]), Bias::parameter, plus(u));
}

// The gradient of a gate's map, which reads z'.
void GeneralStep::gate_backward(const LinearBlock& gate, int layer, int64_t dgates,
                                bool accumulate) {
  linear_gradient(whole(gate), matrix_of(layout_.layers[layer].mlp_input),
                  rows_at(dgates, gate.out), rows_of(layout_.dmlp_input(layer)),
                  accumulate ? added_to() : Product());
}

void GeneralStep::backward_values(int layer) {
  const ValueStreamBlock& block = *plan_.layers[layer].values;
  const GeneralLayout::Layer& l = layout_.layers[layer];
  const GeneralLayout::Values &values = l.values, &d = layout_.gradients(layer).values;
  const int32_t width = spec_.value_width, hidden = spec_.value_mlp_width;
  const Rows<float> du = rows_of(layout_.dsum(layer)), doutput = rows_of(layout_.doutput(layer));
  bool read = !plan_.layers[layer].mlp.maps.empty();  // dz' is there
  if (!block.mlp.empty()) {
    const Rows<float> dnext = rows_of(layout_.dv(layer + 1)), dhidden = rows_at(d.hidden, hidden),
                      h = rows_at(values.hidden, hidden);
    Product slope;
    if (!block.hidden_gate) {
      slope.curve = Curve::relu;
      slope.slope_at = h;
    }
    linear_gradient(whole(block.mlp[1]), matrix_at(values.gated, hidden), dnext, dhidden, slope);
    if (block.hidden_gate) {
      enqueue_gate_gradient(shape_.slots, layout_.rows, hidden,
                            rows_at(values.hidden_gates, hidden), h, dhidden, dhidden,
                            rows_at(d.hidden_gates, hidden), true, data_.slots, lane_.stream);
      gate_backward(*block.hidden_gate, layer, d.hidden_gates, std::exchange(read, true));
    }
    linear_gradient(whole(block.mlp[0]), matrix_of(values.sum), dhidden, du, plus(dnext));
  }
  if (block.mix_gate) {
    const Rows<float> gated[] = {rows_of(layout_.v[layer]), rows_of(values.output)},
                      dgated[] = {rows_of(layout_.dv(layer)), doutput};
    for (const int i : {0, 1}) {
      enqueue_gate_gradient(shape_.slots, layout_.rows, width, mix_gate_rows(values.mix_gates, i),
                            gated[i], du, dgated[i], mix_gate_rows(d.mix_gates, i), false,
                            data_.slots, lane_.stream);
    }
    gate_backward(*block.mix_gate, layer, d.mix_gates, read);
  }
  linear_gradient(whole(block.output), matrix_at(values.mixed, width), doutput,
                  rows_at(d.mixed, width));
}

}  // namespace posattn::cuda
