#include <algorithm>
#include <utility>

#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/small_positional/engine.h"
#include "posattn/model/cuda/small_positional/layer.h"
#include "posattn/model/cuda/step/multiprocessors.h"
#include "posattn/model/cuda/step/tile.cuh"
#include "posattn/model/spec_fields.h"

namespace posattn::cuda {
namespace {

using positional::fused_kernels;
using positional::FusedKernels;
using positional::FusedLayer;

constexpr int most_nodes = 9;
constexpr int most_real_nodes = 8;  // only these have inputs

// The kernels for the smallest number of nodes that holds the model.
FusedKernels kernels_for(int nodes, Precision precision) {
  if (nodes <= 3) return fused_kernels<3>(precision);
  if (nodes <= 5) return fused_kernels<5>(precision);
  return fused_kernels<9>(precision);
}
FusedKernels kernels_for(const FleetShape& shape) {
  return kernels_for(shape.spec.nodes(), shape.precision);
}

// Whether single tiles are faster than groups: in a small fleet, where groups leave multiprocessors
// idle. Single tiles write and read more partial gradients, of which `partials_per_node` cost about
// as much as a node of a tile.
bool prefers_single_tiles(const FleetShape& shape, int kernel_nodes) {
  const int64_t processors = multiprocessors();
  const int64_t tiles = shape.sample_stride() / tile_samples;
  const int64_t groups = ceil_div(tiles, tiles_per_group);
  const int64_t tile_rounds = ceil_div(shape.slots * tiles, processors);
  const int64_t group_rounds = tiles_per_group * ceil_div(shape.slots * groups, processors);
  const int64_t more_partials = shape.slots * (tiles - groups);
  const int64_t partials_per_node = shape.precision == Precision::fp32 ? 70 : 40;
  return (group_rounds - tile_rounds) * kernel_nodes * partials_per_node > more_partials;
}

// How many numbers the engine keeps.
struct Sizes {
  Sizes(const FleetShape& shape, int kernel_nodes, bool single_tiles)
      : tiles(shape.sample_stride() / tile_samples),
        tiles_per_item(single_tiles ? 1 : tiles_per_group),
        items(ceil_div(tiles, tiles_per_item)) {
    const ModelSpec& spec = shape.spec;
    folded = FoldedLayout(spec).size();
    packed = int64_t{1} * (spec.depth - 1) * (1 + spec.heads) * map_floats;
    rows = shape.slots * tiles * kernel_nodes * node_floats;
    stored_layers = spec.depth - 2;
    bytes = shape.slots * (sizeof(float) * (2 * folded + 2 * packed + items * folded) +
                           sizeof(double) * tiles) +
            sizeof(float) * stored_layers * rows;
  }
  int64_t tiles;           // of a slot
  int tiles_per_item;      // in the kernels with gradients
  int64_t items;           // of a slot
  int64_t folded, packed;  // of a slot
  int64_t rows;            // activations of one layer, all slots
  int64_t stored_layers;   // activations of layers 2 to depth - 1 are stored
  int64_t bytes;
};

class FusedPositionalEngine : public StepEngine {
 public:
  FusedPositionalEngine(const FleetShape& shape, bool single_tiles)
      : shape_(shape),
        layout_(shape.spec),
        kernels_(kernels_for(shape)),
        sizes_(shape, kernels_.nodes, single_tiles),
        processors_(multiprocessors()),
        folding_(shape),
        natural_(shape.slots * sizes_.folded),
        forward_(shape.slots * sizes_.packed),
        backward_(shape.slots * sizes_.packed),
        rows_(sizes_.stored_layers * sizes_.rows),
        partials_(shape.slots * sizes_.items * sizes_.folded),
        partial_losses_(shape.slots * sizes_.tiles),
        folded_gradients_(shape.slots * sizes_.folded) {
    for (const auto* pair : {kernels_.forward, kernels_.last, kernels_.backward}) {
      for (int first = 0; first < 2; ++first) {
        allow_shared_bytes(pair[first].kernel, pair[first].shared_bytes);
      }
    }
  }

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const FoldedWeights folded = {natural_.data(), forward_.data(), backward_.data()};
    folding_.enqueue_fold(data.slots, parameters, folded, stream);

    const int last = shape_.spec.depth - 1;
    descending_ = false;
    for (int l = 1; l < last; ++l) enqueue_layer(kernels_.forward, data, l, 1, stream);
    enqueue_layer(kernels_.last, data, last, sizes_.tiles_per_item, stream);
    for (int l = last - 1; l > 0; --l) {
      enqueue_layer(kernels_.backward, data, l, sizes_.tiles_per_item, stream);
    }

    enqueue_sum_groups(data.slots, shape_.slots, partials_.data(), folded_gradients_.data(),
                       static_cast<int>(sizes_.items), tiles_per_group / sizes_.tiles_per_item,
                       sizes_.folded, stream,
                       {partial_losses_.data(), static_cast<int>(sizes_.tiles), losses});
    folding_.enqueue_unfold(data.slots, parameters, folded, folded_gradients_.data(), gradients,
                            stream);
  }

  const char* name() const override { return "fused-positional"; }

 private:
  // Activations that layer l reads. Its backward pass leaves the errors of layer l - 1 there.
  float* rows(int l) { return l < 2 ? nullptr : rows_.data() + (l - 2) * sizes_.rows; }

  void enqueue_layer(const FusedKernels::Sized (&kernels)[2], const StepData& data, int l,
                     int tiles_per_item, cudaStream_t stream) {
    const bool is_last = l == shape_.spec.depth - 1;
    const int64_t packed_layer = (l - 1) * sizes_.packed / (shape_.spec.depth - 1);
    FusedLayer layer = {};
    layer.steps = data.slots;
    layer.inputs = data.inputs;
    layer.targets = data.targets;
    layer.counted = data.counted;
    layer.natural = natural_.data();
    layer.forward = forward_.data() + packed_layer;
    layer.backward = backward_.data() + packed_layer;
    layer.folded_size = sizes_.folded;
    layer.packed_stride = sizes_.packed;
    layer.maps = layout_.maps(l);
    layer.constant = layout_.constant(l);
    layer.attention = layout_.attention(l);
    layer.previous_constant = layout_.constant(l - 1);
    layer.first_maps = layout_.maps(0);
    layer.first_constant = layout_.constant(0);
    layer.first_attention = layout_.attention(0);
    layer.decoder = layout_.decoder();
    layer.decoder_bias = layout_.decoder_bias();
    layer.rows = rows(l);
    layer.next_rows = is_last ? nullptr : rows(l + 1);
    layer.errors = layer.next_rows;
    layer.previous_errors = rows(l);
    layer.partials = partials_.data();
    layer.losses = partial_losses_.data();
    layer.slots = shape_.slots;
    layer.nodes = shape_.spec.nodes();
    layer.sample_stride = static_cast<int>(shape_.sample_stride());
    layer.tiles = static_cast<int>(sizes_.tiles);
    layer.tiles_per_item = tiles_per_item;
    layer.items = static_cast<int>(ceil_div(sizes_.tiles, tiles_per_item));
    const int64_t items = int64_t{1} * layer.slots * layer.items;
    layer.items_per_block = static_cast<int>(ceil_div(items, processors_));
    layer.descending = std::exchange(descending_, !descending_);
    const FusedKernels::Sized& kernel = kernels[l == 1];
    launch(kernel.kernel, dim3(ceil_div(items, layer.items_per_block)), dim3(tile_threads),
           kernel.shared_bytes, stream, layer);
  }

  const FleetShape shape_;
  const FoldedLayout layout_;
  const FusedKernels kernels_;
  const Sizes sizes_;
  const int64_t processors_;
  bool descending_ = false;  // of the next kernel
  Folding folding_;
  DeviceBuffer<float> natural_, forward_, backward_;  // folded weights
  DeviceBuffer<float> rows_;
  DeviceBuffer<float> partials_;
  DeviceBuffer<double> partial_losses_;
  DeviceBuffer<float> folded_gradients_;
};

}  // namespace

bool fused_positional_supports(const ModelSpec& spec) {
  using S = ModelSpec;  // absent biases are zeros
  return knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::encoding, &S::encoding_size,
                    &S::direct_attention, &S::width, &S::heads, &S::depth, &S::mlp_width,
                    &S::mlp_depth, &S::biases) &&
         spec.encoding != Encoding::learned && spec.width == tile_columns &&
         spec.mlp_width == tile_columns && spec.mlp_depth == 2 && spec.heads == 2 &&
         spec.depth >= 2 && spec.real_nodes <= most_real_nodes && spec.nodes() <= most_nodes;
}

std::unique_ptr<StepEngine> make_fused_positional(const FleetShape& shape) {
  const int nodes = kernels_for(shape).nodes;
  return make_fused_positional_of(shape, prefers_single_tiles(shape, nodes));
}

std::unique_ptr<StepEngine> make_fused_positional_of(const FleetShape& shape, bool single_tiles) {
  return std::make_unique<FusedPositionalEngine>(shape, single_tiles);
}

int64_t fused_positional_bytes(const FleetShape& shape) {
  const int nodes = kernels_for(shape).nodes;
  return Sizes(shape, nodes, prefers_single_tiles(shape, nodes)).bytes + Folding::bytes(shape);
}

int64_t fused_positional_shared_bytes(const ModelSpec& spec) {
  const FusedKernels kernels = kernels_for(spec.nodes(), Precision::fp32);  // tf32 takes the same
  int64_t most = Folding::shared_bytes(spec);
  for (const auto* pair : {kernels.forward, kernels.last, kernels.backward}) {
    for (int first = 0; first < 2; ++first) {
      most = std::max(most, static_cast<int64_t>(pair[first].shared_bytes));
    }
  }
  return most;
}

}  // namespace posattn::cuda
