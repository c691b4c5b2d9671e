#include <optional>

#include "posattn/kernels/cuda/product.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/cuda/medium/folding.h"
#include "posattn/model/cuda/medium/layer.h"
#include "posattn/model/cuda/medium/positional_attention.h"
#include "posattn/model/cuda/step/engines.h"
#include "posattn/model/cuda/step/folded_engine.h"
#include "posattn/model/spec/spec_fields.h"

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
  static_cast<LayerPlaces&>(layer) = layout.places(l);
  layer.entry = layout.entry();
  layer.rectified = l > 0;
  return layer;
}

// How many numbers the engine keeps in addition to FoldedEngine's, of all slots.
struct Sizes {
  explicit Sizes(const FleetShape& shape) {
    const FoldedLayout layout = layout_of(shape.spec);
    const int groups = medium::groups(sized_layer(shape, layout, 0), shape.precision);
    const int64_t samples = shape.slots * shape.sample_stride();
    sums = {groups, 1, groups};
    layer_rows = samples * layout.nodes * medium::columns;
    rows = (layout.depth + layout.forms_input) * layer_rows;
    layer_attention = layout.from_data ? samples * medium::kept_operands(layout.nodes) : 0;
    attention = layout.depth * layer_attention;
    workspace = shape.slots * product_workspace;  // for attention's products
  }
  PartialSums sums;
  int64_t layer_rows, rows;            // activations
  int64_t layer_attention, attention;  // operands of attention from data
  int64_t workspace;
};

class FusedMediumEngine final : public FoldedEngine {
 public:
  explicit FusedMediumEngine(const FleetShape& shape) : FusedMediumEngine(shape, Sizes(shape)) {}
  const char* name() const override { return "fused-medium"; }

 private:
  FusedMediumEngine(const FleetShape& shape, const Sizes& sizes)
      : FoldedEngine(shape, layout_of(shape.spec), sizes.sums, sizes.workspace),
        sizes_(sizes),
        folding_(shape, layout_, positions_.data()),
        rows_(sizes.rows),
        kept_attention_(sizes.attention) {
    if (!layout_.from_data) attention_.emplace(shape, layout_, positions_.data());
  }

  void fold(const FoldingStep& step) override {
    concurrently(
        step, [&](const FoldingStep& there) { attention_->enqueue(there); },
        [&] { folding_.enqueue_fold(step); });
  }
  void unfold(const FoldingStep& step) override {
    concurrently(
        step, [&](const FoldingStep& there) { attention_->enqueue_gradient(there); },
        [&] { folding_.enqueue_unfold(step); });
  }
  // Attention from positions does not depend on the folding, so it has a stream of its own.
  template <class Attention, class Folding>
  void concurrently(const FoldingStep& step, Attention attention, Folding folding) {
    if (!attention_) return folding();
    FoldingStep there = step;
    there.stream = attention_stream_.get();
    begin_.record(step.stream);
    attention_stream_.wait_for(begin_);
    attention(there);
    done_.record(there.stream);
    folding();
    check(cudaStreamWaitEvent(step.stream, done_.get(), 0), "cudaStreamWaitEvent");
  }

  void enqueue_layers(const StepData& data, const float* /*parameters*/,
                      cudaStream_t stream) override {
    const Precision precision = shape_.precision;
    const int first = layout_.forms_input ? 0 : 1, last = layout_.depth - 1;
    layout_.forms_input ? medium::enqueue_entry_forward(layer(data, 0), x(), stream)
                        : medium::enqueue_first_forward(layer(data, 0), stream);
    for (int l = first; l <= last; ++l) {
      layout_.from_data ? medium::enqueue_data_forward(layer(data, l), stream)
                        : medium::enqueue_forward(layer(data, l), precision, stream);
    }
    medium::enqueue_decoder(layer(data, last), data, layout_, losses_.data(), precision, stream);
    for (int l = last; l >= first; --l) {
      layout_.from_data ? medium::enqueue_data_backward(layer(data, l), stream)
                        : medium::enqueue_backward(layer(data, l), precision, stream);
    }
    layout_.forms_input ? medium::enqueue_entry_backward(layer(data, 0), x(), precision, stream)
                        : medium::enqueue_first_backward(layer(data, 0), precision, stream);
  }

  // What layer l makes, relu(u); on the way back the layer's errors are put there.
  float* rows(int l) { return rows_.data() + l * sizes_.layer_rows; }
  // x where it is formed, then its errors.
  float* x() { return rows(layout_.depth); }

  medium::Layer layer(const StepData& data, int l) {
    medium::Layer layer = sized_layer(shape_, layout_, l);
    layer.steps = data.slots;
    layer.inputs = data.inputs;
    if (l > 0) layer.rows = layer.previous_errors = rows(l - 1);
    if (l == 0 && layout_.forms_input) layer.rows = layer.previous_errors = x();
    layer.kept_attention = kept_attention_.data() + l * sizes_.layer_attention;
    layer.folded = folded_.data();
    layer.output = rows(l);
    layer.errors = rows(l);
    layer.partials = partials_.data();
    return layer;
  }

  const Sizes sizes_;
  medium::Folding folding_;
  std::optional<medium::PositionalAttention> attention_;
  Stream attention_stream_{Stream::independent};
  Event begin_, done_;
  DeviceBuffer<float> rows_;
  DeviceBuffer<uint4> kept_attention_;
};

bool supports(const ModelSpec& spec, Precision precision) {
  using S = ModelSpec;  // absent biases are zeros
  const bool from_positions = spec.attention == AttentionSource::positions;
  const bool from_data = spec.attention == AttentionSource::data && precision == Precision::tf32;
  const bool learned_input = spec.positions_in_input && spec.encoding == Encoding::learned;
  return knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::attention, &S::positions_in_input,
                    &S::encoding, &S::encoding_size, &S::scores, &S::reach, &S::width, &S::heads,
                    &S::depth, &S::mlp_width, &S::mlp_depth, &S::biases) &&
         among(spec.scores, {Scores::dot, Scores::direct, Scores::distance}) &&
         (from_positions || from_data) && !learned_input && spec.width == medium::columns &&
         spec.mlp_width == medium::columns && spec.heads == medium::heads && spec.mlp_depth == 2 &&
         spec.nodes() >= medium::fewest_nodes && spec.nodes() <= medium::most_nodes;
}

std::unique_ptr<StepEngine> make(const FleetShape& shape) {
  return std::make_unique<FusedMediumEngine>(shape);
}

int64_t shared_bytes(const ModelSpec& spec) {
  return spec.attention == AttentionSource::data ? medium::data_shared_bytes(spec.nodes())
                                                 : medium::shared_bytes(spec.nodes());
}

int64_t bytes(const FleetShape& shape) {
  const FoldedLayout layout = layout_of(shape.spec);
  const Sizes sizes(shape);
  return FoldedEngine::buffer_bytes(shape, layout, sizes.sums, sizes.workspace) +
         sizeof(float) * sizes.rows + sizeof(uint4) * sizes.attention +
         medium::Folding::bytes(shape, layout) +
         (layout.from_data ? 0 : medium::PositionalAttention::bytes(shape));
}

}  // namespace

const EngineRow fused_medium = {"fused-medium", supports, shared_bytes, bytes, make};

}  // namespace posattn::cuda
