#include <algorithm>
#include <utility>

#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/small_positional/engine.h"
#include "posattn/model/cuda/small_positional/first_tables.h"
#include "posattn/model/cuda/small_positional/layer.h"
#include "posattn/model/cuda/step/multiprocessors.h"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/tensor_names.h"

namespace posattn::cuda {
namespace {

using positional::FirstTables;
using positional::fused_kernels;
using positional::FusedKernels;
using positional::FusedLayer;
using positional::PositionsInInput;

constexpr int width = 64;
constexpr int most_real_nodes = 8;  // only these have inputs

// Two samples in one of a tile.
bool paired(const ModelSpec& spec) { return spec.nodes() <= positional::most_paired_nodes; }
int64_t tiles_of(const FleetShape& shape) {
  return ceil_div(shape.sample_stride(), positional::tile_samples * (paired(shape.spec) ? 2 : 1));
}

// Gradients of tiles are added up in groups of this many, then the groups, both in order. Part of
// the result's rounding, so a constant: never a function of the fleet.
constexpr int tiles_per_group = 3;

FusedKernels kernels_for(Precision precision) {
  return precision == Precision::fp32 ? fused_kernels<true>() : fused_kernels<false>();
}

// Whether single tiles are faster than groups: in a small fleet, where groups leave multiprocessors
// idle. Single tiles write and read more partial gradients, of which `partials_per_tile` cost about
// as much as a tile.
bool prefers_single_tiles(const FleetShape& shape) {
  const int64_t processors = multiprocessors();
  const int64_t tiles = tiles_of(shape);
  const int64_t groups = ceil_div(tiles, tiles_per_group);
  const int64_t tile_rounds = ceil_div(shape.slots * tiles, processors);
  const int64_t group_rounds = tiles_per_group * ceil_div(shape.slots * groups, processors);
  const int64_t more_partials = shape.slots * (tiles - groups);
  const int64_t partials_per_tile = shape.precision == Precision::fp32 ? 300 : 160;
  return (group_rounds - tile_rounds) * partials_per_tile > more_partials;
}

// How many numbers the engine keeps.
struct Sizes {
  Sizes(const FleetShape& shape, int64_t tile_bytes, bool single_tiles)
      : tiles(tiles_of(shape)),
        tiles_per_item(single_tiles ? 1 : tiles_per_group),
        items(ceil_div(tiles, tiles_per_item)) {
    const ModelSpec& spec = shape.spec;
    folded = FoldedLayout(spec).size();
    tables = spec.positions_in_input ? positional::first_table_size : 0;
    rows = shape.slots * tiles * tile_bytes;
    stored_layers = spec.depth - 2;
    bytes = shape.slots *
                (sizeof(float) * (2 * folded + items * folded + tables) + sizeof(double) * tiles) +
            stored_layers * rows;
  }
  int64_t tiles;          // of a slot
  int tiles_per_item;     // in the kernels with gradients
  int64_t items;          // of a slot
  int64_t folded;         // of a slot
  int64_t tables;         // of a slot, where positions are in the input
  int64_t rows;           // bytes of the activations of one layer, all slots
  int64_t stored_layers;  // activations of layers 2 to depth - 1 are stored
  int64_t bytes;
};

class FusedPositionalEngine : public StepEngine {
 public:
  FusedPositionalEngine(const FleetShape& shape, bool single_tiles)
      : shape_(shape),
        layout_(shape.spec),
        kernels_(kernels_for(shape.precision)),
        sizes_(shape, kernels_.tile_bytes, single_tiles),
        processors_(multiprocessors()),
        folding_(shape),
        positions_(positions_table(shape.spec)),
        folded_(shape.slots * sizes_.folded),
        tables_(shape.slots * sizes_.tables),
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
    const FoldedWeights folded = {.natural = folded_.data()};
    folding_.enqueue_fold(data.slots, parameters, folded, stream);
    const PositionsInInput input = positions_in_input(data, parameters);
    if (shape_.spec.positions_in_input) enqueue_make_first_tables(input, tables_.data(), stream);

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
    if (shape_.spec.positions_in_input) {
      enqueue_finish_first_tables(input, folded_gradients_.data(), stream);
    }
    folding_.enqueue_unfold(data.slots, parameters, folded, folded_gradients_.data(), gradients,
                            stream);
  }

  const char* name() const override { return "fused-positional"; }

 private:
  PositionsInInput positions_in_input(const StepData& data, const float* parameters) const {
    const ParameterLayout parameter_layout(shape_.spec);
    PositionsInInput input = {};
    input.steps = data.slots;
    input.folded = folded_.data();
    input.folded_size = sizes_.folded;
    input.maps = layout_.maps(0);
    input.constant = layout_.constant(0);
    input.attention = layout_.attention(0);
    input.positions = positions_.data();
    if (shape_.spec.stores_positions()) {
      input.positions = parameters + parameter_layout.at(names::positions).offset;
      input.positions_stride = parameter_layout.buffer_size();
    }
    input.slots = shape_.slots;
    input.nodes = shape_.spec.nodes();
    input.encoding_size = shape_.spec.encoding_size;
    return input;
  }

  FirstTables first_tables() const {
    const int64_t maps = layout_.maps(0), constant = layout_.constant(0);
    if (!shape_.spec.positions_in_input) {
      return {folded_.data() + maps, folded_.data() + constant, sizes_.folded, 0, maps, constant};
    }
    constexpr int weights = 3 * width;
    return {tables_.data(), tables_.data() + weights, sizes_.tables, width, maps, maps + weights};
  }

  // Activations that layer l reads. Its backward pass leaves the errors of layer l - 1 there.
  char* rows(int l) { return l < 2 ? nullptr : rows_.data() + (l - 2) * sizes_.rows; }

  void enqueue_layer(const FusedKernels::Sized (&kernels)[2], const StepData& data, int l,
                     int tiles_per_item, cudaStream_t stream) {
    const bool is_last = l == shape_.spec.depth - 1;
    FusedLayer layer = {};
    layer.steps = data.slots;
    layer.inputs = data.inputs;
    layer.targets = data.targets;
    layer.counted = data.counted;
    layer.folded = folded_.data();
    layer.folded_size = sizes_.folded;
    layer.maps = layout_.maps(l);
    layer.constant = layout_.constant(l);
    layer.attention = layout_.attention(l);
    layer.previous_constant = layout_.constant(l - 1);
    layer.first = first_tables();
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
    layer.paired = paired(shape_.spec);
    layer.tiles = static_cast<int>(sizes_.tiles);
    layer.tiles_per_item = tiles_per_item;
    layer.items = static_cast<int>(ceil_div(sizes_.tiles, tiles_per_item));
    const int64_t items = int64_t{1} * layer.slots * layer.items;
    const FusedKernels::Sized& kernel = kernels[l == 1];
    layer.items_per_block =
        static_cast<int>(ceil_div(items, processors_ * kernel.blocks_per_processor));
    layer.descending = std::exchange(descending_, !descending_);
    launch(kernel.kernel, dim3(ceil_div(items, layer.items_per_block)), dim3(kernels_.threads),
           kernel.shared_bytes, stream, layer);
  }

  const FleetShape shape_;
  const FoldedLayout layout_;
  const FusedKernels kernels_;
  const Sizes sizes_;
  const int64_t processors_;
  bool descending_ = false;  // of the next kernel
  Folding folding_;
  DeviceBuffer<float> positions_;  // P, where it is a formula
  DeviceBuffer<float> folded_;     // weights
  DeviceBuffer<float> tables_;     // of layer 0, with positions in the input
  DeviceBuffer<char> rows_;
  DeviceBuffer<float> partials_;
  DeviceBuffer<double> partial_losses_;
  DeviceBuffer<float> folded_gradients_;
};

}  // namespace

bool fused_positional_supports(const ModelSpec& spec) {
  return spec.attention == AttentionSource::positions && Folding::supports(spec) &&
         spec.encoding != Encoding::learned && spec.heads == 2 &&
         (!spec.positions_in_input || spec.encoding_size >= positional::fewest_positions) &&
         spec.real_nodes <= most_real_nodes && spec.nodes() <= positional::kernel_nodes;
}

std::unique_ptr<StepEngine> make_fused_positional(const FleetShape& shape) {
  return make_fused_positional_of(shape, prefers_single_tiles(shape));
}

std::unique_ptr<StepEngine> make_fused_positional_of(const FleetShape& shape, bool single_tiles) {
  return std::make_unique<FusedPositionalEngine>(shape, single_tiles);
}

int64_t fused_positional_bytes(const FleetShape& shape) {
  const int64_t tile_bytes = kernels_for(shape.precision).tile_bytes;
  return Sizes(shape, tile_bytes, prefers_single_tiles(shape)).bytes + Folding::bytes(shape);
}

int64_t fused_positional_shared_bytes(const ModelSpec& spec) {
  const FusedKernels kernels = kernels_for(Precision::fp32);  // tf32 takes less
  int64_t most = Folding::shared_bytes(spec);
  for (const auto* pair : {kernels.forward, kernels.last, kernels.backward}) {
    for (int first = 0; first < 2; ++first) {
      most = std::max(most, static_cast<int64_t>(pair[first].shared_bytes));
    }
  }
  return most;
}

}  // namespace posattn::cuda
