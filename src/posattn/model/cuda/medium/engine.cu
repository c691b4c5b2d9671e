#include <algorithm>

#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/large/decoder.h"
#include "posattn/model/cuda/large/positional_attention.h"
#include "posattn/model/cuda/medium/engine.h"
#include "posattn/model/cuda/medium/folding.h"
#include "posattn/model/cuda/medium/layer.h"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/spec_fields.h"

namespace posattn::cuda {
namespace {

medium::Layer sized_layer(const FleetShape& shape, const FoldedLayout& layout, int l) {
  medium::Layer layer;
  layer.slots = shape.slots;
  layer.samples = static_cast<int>(shape.sample_stride());
  layer.nodes = layout.nodes;
  layer.folded_size = layout.size();
  layer.maps = layout.maps(l);
  layer.constant = layout.constant(l);
  layer.attention = layout.attention(l);
  return layer;
}

// How many numbers the engine keeps, of all slots.
struct Sizes {
  explicit Sizes(const FleetShape& shape) {
    const FoldedLayout layout(shape.spec);
    groups = medium::groups(sized_layer(shape, layout, 0), shape.precision);
    folded = shape.slots * layout.size();
    rows = shape.slots * shape.sample_stride() * layout.nodes * medium::columns;
    partials = std::max(folded * groups, shape.slots * product_workspace);
    bytes = sizeof(float) * (2 * folded + layout.depth * rows + partials) +
            sizeof(double) * shape.slots * groups;
  }
  int groups;        // of a slot
  int64_t folded;    // weights
  int64_t rows;      // activations of a layer
  int64_t partials;  // partial gradients; while there are none, workspace of attention's products
  int64_t bytes;
};

class FusedMediumEngine : public StepEngine {
 public:
  explicit FusedMediumEngine(const FleetShape& shape)
      : shape_(shape),
        layout_(shape.spec),
        sizes_(shape),
        positions_(positions_table(shape.spec)),
        folding_(shape),
        attention_(shape, positions_.data()),
        folded_(sizes_.folded),
        folded_gradients_(sizes_.folded),
        rows_(layout_.depth * sizes_.rows),
        partials_(sizes_.partials),
        losses_(int64_t{1} * shape.slots * sizes_.groups) {}

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const FoldingStep folding = {
        data.slots, parameters,       folded_.data(), folded_gradients_.data(),
        gradients,  partials_.data(), stream};
    FoldingStep attention = folding;
    attention.stream = aside_.get();
    begin_.record(stream);
    aside_.wait_for(begin_);
    attention_.enqueue(attention);
    done_.record(attention.stream);
    folding_.enqueue_fold(folding);
    check(cudaStreamWaitEvent(stream, done_.get(), 0), "cudaStreamWaitEvent");

    medium::enqueue_first_forward(layer(data, 0), stream);
    for (int l = 1; l < layout_.depth; ++l) {
      medium::enqueue_forward(layer(data, l), shape_.precision, stream);
    }
    // In fp32 whatever the precision: the rows are not rounded.
    enqueue_large_decoder(decoder(data), Precision::fp32, stream);
    for (int l = layout_.depth - 1; l > 0; --l) {
      medium::enqueue_backward(layer(data, l), shape_.precision, stream);
    }
    medium::enqueue_first_backward(layer(data, 0), shape_.precision, stream);
    enqueue_sum_groups(data.slots, shape_.slots, partials_.data(), folded_gradients_.data(),
                       sizes_.groups, 1, layout_.size(), stream,
                       {losses_.data(), sizes_.groups, losses});

    begin_.record(stream);
    aside_.wait_for(begin_);
    attention_.enqueue_gradient(attention);
    done_.record(attention.stream);
    folding_.enqueue_unfold(folding);
    check(cudaStreamWaitEvent(stream, done_.get(), 0), "cudaStreamWaitEvent");
  }

  const char* name() const override { return "fused-medium"; }

 private:
  // What layer l makes, relu(u); on the way back the layer's errors are put there.
  float* rows(int l) { return rows_.data() + l * sizes_.rows; }

  medium::Layer layer(const StepData& data, int l) {
    medium::Layer layer = sized_layer(shape_, layout_, l);
    layer.steps = data.slots;
    layer.inputs = data.inputs;
    if (l > 0) layer.rows = layer.previous_errors = rows(l - 1);
    layer.folded = folded_.data();
    layer.output = rows(l);
    layer.errors = rows(l);
    layer.partials = partials_.data();
    return layer;
  }

  LargeDecoder decoder(const StepData& data) {
    LargeDecoder decoder = large_decoder(shape_, layout_, data, sizes_.groups);
    decoder.folded = folded_.data();
    decoder.rows = rows(layout_.depth - 1);
    decoder.partials = partials_.data();
    decoder.losses = losses_.data();
    return decoder;
  }

  const FleetShape shape_;
  const FoldedLayout layout_;
  const Sizes sizes_;
  DeviceBuffer<float> positions_;  // P by formula
  medium::Folding folding_;
  LargePositionalAttention attention_;
  // Attention and folding know nothing of each other: these do attention meanwhile.
  Stream aside_{Stream::independent};
  Event begin_, done_;
  DeviceBuffer<float> folded_, folded_gradients_;
  DeviceBuffer<float> rows_;
  DeviceBuffer<float> partials_;
  DeviceBuffer<double> losses_;
};

}  // namespace

bool fused_medium_supports(const ModelSpec& spec) {
  using S = ModelSpec;  // absent biases are zeros
  return knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention, &S::encoding,
                    &S::encoding_size, &S::rope, &S::direct_attention, &S::width, &S::heads,
                    &S::depth, &S::mlp_width, &S::mlp_depth, &S::biases) &&
         spec.attention == AttentionSource::positions && !spec.positions_in_input &&
         spec.input_size() == 1 && spec.width == medium::columns &&
         spec.mlp_width == medium::columns && spec.heads == medium::heads && spec.mlp_depth == 2 &&
         spec.nodes() >= medium::fewest_nodes && spec.nodes() <= medium::most_nodes;
}

std::unique_ptr<StepEngine> make_fused_medium(const FleetShape& shape) {
  return std::make_unique<FusedMediumEngine>(shape);
}

int64_t fused_medium_shared_bytes(const ModelSpec& spec) {
  return medium::shared_bytes(spec.nodes());
}

int64_t fused_medium_bytes(const FleetShape& shape) {
  return Sizes(shape).bytes + medium::Folding::bytes(shape) +
         LargePositionalAttention::bytes(shape);
}

}  // namespace posattn::cuda
