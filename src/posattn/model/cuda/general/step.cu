#include "posattn/kernels/cuda/losses.h"
#include "posattn/model/cuda/general/step.h"

namespace posattn::cuda {

GeneralStep::GeneralStep(const FleetShape& shape, const Plan& plan, const GeneralLayout& layout,
                         const GeneralMemory& memory, ConcurrentStreams& concurrent,
                         const StepData& data, const float* parameters, float* gradients,
                         cudaStream_t stream)
    : shape_(shape),
      spec_(shape.spec),
      plan_(plan),
      layout_(layout),
      memory_(memory),
      concurrent_(concurrent),
      data_(data),
      parameters_(parameters),
      gradients_(gradients),
      lane_{stream, memory.product_workspace, layout.node_sums[0]} {}

void GeneralStep::wait_for(const Event& event) {
  check(cudaStreamWaitEvent(lane_.stream, event.get(), 0), "cudaStreamWaitEvent");
}

void GeneralStep::wait_for_concurrent(int layer) {
  wait_for(concurrent_.weights.layer[layer]);
  if (shares_alone()) wait_for(concurrent_.scores.layer[layer]);
}

void GeneralStep::run(double* losses) {
  forward();
  loss(losses);
  backward();
}

void GeneralStep::forward() {
  const HeadBlock& head = plan_.head;
  share_all();
  encode();
  for (int layer = 0; layer < spec_.depth; ++layer) forward_layer(layer);
  if (head.norm) normalise(*head.norm, layout_.x.back(), layout_.head_input);
  linear(whole(head.map), layout_.rows, matrix_of(layout_.head_input),
         matrix_at(layout_.output, head.map.out));
  if (spec_.wrap == Wrap::scale) multiply_outputs();
}

void GeneralStep::loss(double* losses) {
  const ErrorShape error{shape_.slots, static_cast<int32_t>(layout_.nodes),
                         static_cast<int32_t>(layout_.samples), spec_.output_columns};
  switch (plan_.loss) {
    case Loss::squared_error:
      return enqueue_squared_error(error, data_.targets, data_.counted, data_.slots,
                                   at(layout_.output), layout_.floats, memory_.errors, losses,
                                   lane_.stream);
    case Loss::cross_entropy:
      return enqueue_cross_entropy(error, {data_.labels, data_.counted}, data_.slots,
                                   at(layout_.output), layout_.floats, memory_.label_counts,
                                   memory_.errors, losses, lane_.stream);
  }
}

void GeneralStep::backward() {
  const HeadBlock& head = plan_.head;
  if (spec_.wrap == Wrap::scale) multiply_outputs();  // their gradient
  const Rows<float> dx =
      rows_of(head.reads_values ? layout_.dv(spec_.depth) : layout_.dx(spec_.depth));
  linear_gradient(whole(head.map), matrix_of(layout_.head_input),
                  rows_at(layout_.output, head.map.out), dx);
  if (head.norm) normalise_backward(*head.norm, layout_.x.back(), dx);
  for (int layer = spec_.depth - 1; layer >= 0; --layer) {
    if (layer + 2 < spec_.depth) wait_for_concurrent(layer + 2);
    backward_layer(layer);
    concurrent_.weights.layer[layer].record(concurrent_.weights.stream.get());
  }
  wait_for_concurrent(0);
  encode_backward(rows_of(layout_.dx(0)));
}

}  // namespace posattn::cuda
