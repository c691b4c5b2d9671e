#include <algorithm>
#include <optional>

#include "posattn/kernels/cuda/product.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/large/decoder.h"
#include "posattn/model/cuda/large/engine.h"
#include "posattn/model/cuda/large/folding.h"
#include "posattn/model/cuda/large/layer.h"
#include "posattn/model/cuda/large/positional_attention.h"
#include "posattn/model/cuda/step/multiprocessors.h"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/spec_fields.h"

namespace posattn::cuda {
namespace {

constexpr int most_width = 128;

// A layer's sizes; what it works on is not set.
large::Layer sized_layer(const FleetShape& shape, const FoldedLayout& layout, int l) {
  large::Layer layer;
  layer.slots = shape.slots;
  layer.samples = static_cast<int>(shape.sample_stride());
  layer.nodes = layout.nodes;
  layer.real_nodes = shape.spec.real_nodes;
  layer.heads = layout.heads;
  layer.columns = layout.columns(l);
  layer.hidden = layout.hidden;
  layer.from_data = layout.from_data;
  layer.folded_size = layout.size();
  layer.maps = layout.maps(l);
  layer.constant = layout.constant(l);
  layer.scores = layout.scores(l);
  layer.score_bias = layout.score_bias(l);
  layer.attention = layout.attention(l);
  return layer;
}

// How many numbers the engine keeps, of all slots.
struct Sizes {
  explicit Sizes(const FleetShape& shape) {
    const FoldedLayout layout(shape.spec);
    const int64_t samples = shape.slots * shape.sample_stride(), nodes = layout.nodes;
    groups = large::groups(sized_layer(shape, layout, 0));
    folded = shape.slots * layout.size();
    rows = samples * nodes * layout.hidden;
    attention = layout.from_data ? samples * layout.heads * nodes * nodes : 0;
    partials = std::max(folded * groups, shape.slots * product_workspace);
    bytes = sizeof(float) * (2 * folded + layout.depth * (rows + attention) + partials) +
            sizeof(double) * shape.slots * groups;
  }
  int groups;         // of a slot
  int64_t folded;     // weights
  int64_t rows;       // activations of a layer
  int64_t attention;  // of a layer, from data
  int64_t partials;   // partial gradients; while there are none, workspace of the folding
  int64_t bytes;
};

class FusedLargeEngine : public StepEngine {
 public:
  explicit FusedLargeEngine(const FleetShape& shape)
      : shape_(shape),
        layout_(shape.spec),
        tensors_(shape.spec),
        sizes_(shape),
        multiprocessors_(static_cast<int>(multiprocessors())),
        positions_(positions_table(shape.spec)),
        folding_(shape),
        folded_(sizes_.folded),
        folded_gradients_(sizes_.folded),
        rows_(layout_.depth * sizes_.rows),
        kept_attention_(layout_.depth * sizes_.attention),
        partials_(sizes_.partials),
        losses_(int64_t{1} * shape.slots * sizes_.groups) {
    if (!layout_.from_data) attention_.emplace(shape, layout_, positions_.data());
  }

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const FoldingStep folding = {
        data.slots, parameters,       folded_.data(), folded_gradients_.data(),
        gradients,  partials_.data(), stream};
    folding_.enqueue_fold(folding);
    if (attention_) attention_->enqueue(folding);

    for (int l = 0; l < layout_.depth; ++l) {
      large::enqueue_forward(layer(data, parameters, l), shape_.precision, stream);
    }
    enqueue_large_decoder(decoder(data), shape_.precision, stream);
    for (int l = layout_.depth - 1; l >= 0; --l) {
      large::enqueue_backward(layer(data, parameters, l), shape_.precision, stream);
    }
    enqueue_sum_groups(data.slots, shape_.slots, partials_.data(), folded_gradients_.data(),
                       sizes_.groups, 1, layout_.size(), stream,
                       {losses_.data(), sizes_.groups, losses});

    folding_.enqueue_unfold(folding);
    if (attention_) attention_->enqueue_gradient(folding);
  }

  const char* name() const override { return "fused-large"; }

 private:
  // What layer l makes, relu(u); on the way back the layer's errors are put there.
  float* rows(int l) { return rows_.data() + l * sizes_.rows; }

  large::Layer layer(const StepData& data, const float* parameters, int l) {
    large::Layer layer = sized_layer(shape_, layout_, l);
    layer.steps = data.slots;
    layer.multiprocessors = multiprocessors_;
    if (l > 0) {
      layer.rows = layer.previous_errors = rows(l - 1);
    } else {
      layer.inputs = data.inputs;
      set_positions(parameters, layer);
    }
    layer.folded = folded_.data();
    layer.kept_attention = kept_attention_.data() + l * sizes_.attention;
    layer.output = rows(l);
    layer.errors = rows(l);
    layer.partials = partials_.data();
    return layer;
  }

  void set_positions(const float* parameters, large::Layer& layer) const {
    if (!shape_.spec.positions_in_input) return;
    if (tensors_.stored_positions < 0) {
      layer.positions = positions_.data();
    } else {
      layer.positions = parameters + tensors_.stored_positions;
      layer.positions_slot = tensors_.parameter_stride;
    }
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
  const FoldedTensors tensors_;
  const Sizes sizes_;
  const int multiprocessors_;
  DeviceBuffer<float> positions_;  // P by formula
  LargeFolding folding_;
  std::optional<LargePositionalAttention> attention_;  // from positions
  DeviceBuffer<float> folded_, folded_gradients_;
  DeviceBuffer<float> rows_, kept_attention_;
  DeviceBuffer<float> partials_;
  DeviceBuffer<double> losses_;
};

}  // namespace

bool fused_large_supports(const ModelSpec& spec) {
  using S = ModelSpec;  // absent biases are zeros
  const bool known = knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention,
                                &S::positions_in_input, &S::encoding, &S::encoding_size, &S::rope,
                                &S::direct_attention, &S::relative_attention, &S::reach, &S::width,
                                &S::heads, &S::depth, &S::mlp_width, &S::mlp_depth, &S::biases);
  const bool from_positions = spec.attention == AttentionSource::positions;
  const bool from_data = spec.attention == AttentionSource::data && !spec.rope;
  const bool learned_input = spec.positions_in_input && spec.encoding == Encoding::learned;
  if (!known || !(from_positions || from_data) || learned_input || spec.mlp_depth != 2 ||
      spec.width > most_width) {
    return false;
  }
  const FoldedLayout layout(spec);
  return large::supports(layout.nodes, layout.heads, layout.columns(0), layout.hidden) &&
         (layout.depth == 1 ||
          large::supports(layout.nodes, layout.heads, layout.columns(1), layout.hidden));
}

std::unique_ptr<StepEngine> make_fused_large(const FleetShape& shape) {
  return std::make_unique<FusedLargeEngine>(shape);
}

int64_t fused_large_shared_bytes(const ModelSpec& spec) {
  const FoldedLayout layout(spec);
  FleetShape shape;
  shape.spec = spec;
  int64_t most = 0;
  for (int l = 0; l < std::min(layout.depth, 2); ++l) {  // those behind are like the second
    const large::Layer layer = sized_layer(shape, layout, l);
    most =
        std::max({most, large::forward_shared_bytes(layer), large::backward_shared_bytes(layer)});
  }
  return most;
}

int64_t fused_large_bytes(const FleetShape& shape) {
  const bool from_data = shape.spec.attention == AttentionSource::data;
  return Sizes(shape).bytes + LargeFolding::bytes(shape) +
         (from_data ? 0 : LargePositionalAttention::bytes(shape));
}

}  // namespace posattn::cuda
