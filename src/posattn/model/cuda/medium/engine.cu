#include <algorithm>
#include <optional>

#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/medium/engine.h"
#include "posattn/model/cuda/medium/folding.h"
#include "posattn/model/cuda/medium/layer.h"
#include "posattn/model/cuda/medium/positional_attention.h"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/spec_fields.h"

namespace posattn::cuda {
namespace {

// What is formed, and what is folded (medium/layer.h).
FoldedLayout layout_of(const ModelSpec& spec) {
  return FoldedLayout(spec, spec.attention == AttentionSource::data || spec.positions_in_input);
}

medium::Layer sized_layer(const FleetShape& shape, const FoldedLayout& layout, int l) {
  medium::Layer layer;
  layer.slots = shape.slots;
  layer.samples = static_cast<int>(shape.sample_stride());
  layer.nodes = layout.nodes;
  layer.from_data = layout.from_data;
  layer.real_nodes = shape.spec.real_nodes;
  layer.folded_size = layout.size();
  layer.maps = layout.maps(l);
  layer.constant = layout.constant(l);
  layer.attention = layout.attention(l);
  layer.scores = layout.scores(l);
  layer.score_bias = layout.score_bias(l);
  layer.entry = layout.entry();
  layer.rectified = l > 0;
  return layer;
}

// How many numbers the engine keeps, of all slots.
struct Sizes {
  explicit Sizes(const FleetShape& shape) {
    const FoldedLayout layout = layout_of(shape.spec);
    groups = medium::groups(sized_layer(shape, layout, 0), shape.precision);
    folded = shape.slots * layout.size();
    const int64_t samples = shape.slots * shape.sample_stride();
    rows = samples * layout.nodes * medium::columns;
    attention = layout.from_data ? samples * medium::kept_operands(layout.nodes) : 0;
    partials = std::max(folded * groups, shape.slots * product_workspace);
    bytes = sizeof(float) * (2 * folded + (layout.depth + layout.forms_input) * rows + partials) +
            sizeof(uint4) * layout.depth * attention + sizeof(double) * shape.slots * groups;
  }
  int groups;         // of a slot
  int64_t folded;     // weights
  int64_t rows;       // activations of a layer
  int64_t attention;  // operands of a layer's attention from data
  int64_t partials;   // partial gradients; while there are none, workspace of attention's products
  int64_t bytes;
};

class FusedMediumEngine : public StepEngine {
 public:
  explicit FusedMediumEngine(const FleetShape& shape)
      : shape_(shape),
        layout_(layout_of(shape.spec)),
        sizes_(shape),
        positions_(positions_table(shape.spec)),
        folding_(shape, layout_, positions_.data()),
        folded_(sizes_.folded),
        folded_gradients_(sizes_.folded),
        rows_((layout_.depth + layout_.forms_input) * sizes_.rows),
        kept_attention_(layout_.depth * sizes_.attention),
        partials_(sizes_.partials),
        losses_(int64_t{1} * shape.slots * sizes_.groups) {
    if (!layout_.from_data) attention_.emplace(shape, layout_, positions_.data());
  }

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const medium::FoldingStep folding = {
        data.slots, parameters,       folded_.data(), folded_gradients_.data(),
        gradients,  partials_.data(), stream};
    beside(
        folding, [&](const medium::FoldingStep& step) { attention_->enqueue(step); },
        [&] { folding_.enqueue_fold(folding); });

    layout_.forms_input ? medium::enqueue_entry_forward(layer(data, 0), x(), stream)
                        : medium::enqueue_first_forward(layer(data, 0), stream);
    for (int l = layout_.forms_input ? 0 : 1; l < layout_.depth; ++l) {
      enqueue_forward(layer(data, l), stream);
    }
    medium::enqueue_decoder(layer(data, layout_.depth - 1), data, layout_, losses_.data(),
                            shape_.precision, stream);
    for (int l = layout_.depth - 1; l >= (layout_.forms_input ? 0 : 1); --l) {
      enqueue_backward(layer(data, l), stream);
    }
    layout_.forms_input
        ? medium::enqueue_entry_backward(layer(data, 0), x(), shape_.precision, stream)
        : medium::enqueue_first_backward(layer(data, 0), shape_.precision, stream);
    enqueue_sum_groups(data.slots, shape_.slots, partials_.data(), folded_gradients_.data(),
                       sizes_.groups, 1, layout_.size(), stream,
                       {losses_.data(), sizes_.groups, losses});

    beside(
        folding, [&](const medium::FoldingStep& step) { attention_->enqueue_gradient(step); },
        [&] { folding_.enqueue_unfold(folding); });
  }

  const char* name() const override { return "fused-medium"; }

 private:
  // Attention from positions and folding know nothing of each other: one beside the other.
  template <class Attention, class Folding>
  void beside(const medium::FoldingStep& step, Attention attention, Folding folding) {
    if (!attention_) return folding();
    medium::FoldingStep there = step;
    there.stream = aside_.get();
    begin_.record(step.stream);
    aside_.wait_for(begin_);
    attention(there);
    done_.record(there.stream);
    folding();
    check(cudaStreamWaitEvent(step.stream, done_.get(), 0), "cudaStreamWaitEvent");
  }

  void enqueue_forward(const medium::Layer& layer, cudaStream_t stream) {
    if (layer.from_data) return medium::enqueue_data_forward(layer, stream);
    medium::enqueue_forward(layer, shape_.precision, stream);
  }
  void enqueue_backward(const medium::Layer& layer, cudaStream_t stream) {
    if (layer.from_data) return medium::enqueue_data_backward(layer, stream);
    medium::enqueue_backward(layer, shape_.precision, stream);
  }

  // What layer l makes, relu(u); on the way back the layer's errors are put there.
  float* rows(int l) { return rows_.data() + l * sizes_.rows; }
  // x where it is formed, then its errors.
  float* x() { return rows(layout_.depth); }

  medium::Layer layer(const StepData& data, int l) {
    medium::Layer layer = sized_layer(shape_, layout_, l);
    layer.steps = data.slots;
    layer.inputs = data.inputs;
    if (l > 0) layer.rows = layer.previous_errors = rows(l - 1);
    if (l == 0 && layout_.forms_input) layer.rows = layer.previous_errors = x();
    layer.kept_attention = kept_attention_.data() + l * sizes_.attention;
    layer.folded = folded_.data();
    layer.output = rows(l);
    layer.errors = rows(l);
    layer.partials = partials_.data();
    return layer;
  }

  const FleetShape shape_;
  const FoldedLayout layout_;
  const Sizes sizes_;
  DeviceBuffer<float> positions_;  // P by formula
  medium::Folding folding_;
  std::optional<medium::PositionalAttention> attention_;
  Stream aside_{Stream::independent};
  Event begin_, done_;
  DeviceBuffer<float> folded_, folded_gradients_;
  DeviceBuffer<float> rows_;
  DeviceBuffer<uint4> kept_attention_;
  DeviceBuffer<float> partials_;
  DeviceBuffer<double> losses_;
};

}  // namespace

bool fused_medium_supports(const ModelSpec& spec, Precision precision) {
  using S = ModelSpec;  // absent biases are zeros
  const bool from_positions = spec.attention == AttentionSource::positions;
  const bool from_data = spec.attention == AttentionSource::data && precision == Precision::tf32;
  const bool learned_input = spec.positions_in_input && spec.encoding == Encoding::learned;
  return knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention, &S::positions_in_input,
                    &S::encoding, &S::encoding_size, &S::direct_attention, &S::relative_attention,
                    &S::reach, &S::width, &S::heads, &S::depth, &S::mlp_width, &S::mlp_depth,
                    &S::biases) &&
         (from_positions || from_data) && !learned_input && spec.width == medium::columns &&
         spec.mlp_width == medium::columns && spec.heads == medium::heads && spec.mlp_depth == 2 &&
         spec.nodes() >= medium::fewest_nodes && spec.nodes() <= medium::most_nodes;
}

std::unique_ptr<StepEngine> make_fused_medium(const FleetShape& shape) {
  return std::make_unique<FusedMediumEngine>(shape);
}

int64_t fused_medium_shared_bytes(const ModelSpec& spec) {
  return spec.attention == AttentionSource::data ? medium::data_shared_bytes(spec.nodes())
                                                 : medium::shared_bytes(spec.nodes());
}

int64_t fused_medium_bytes(const FleetShape& shape) {
  const bool from_data = shape.spec.attention == AttentionSource::data;
  return Sizes(shape).bytes + medium::Folding::bytes(shape, layout_of(shape.spec)) +
         (from_data ? 0 : medium::PositionalAttention::bytes(shape));
}

}  // namespace posattn::cuda
