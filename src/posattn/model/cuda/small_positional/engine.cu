#include <algorithm>

#include "posattn/model/cuda/small_positional/first_tables.h"
#include "posattn/model/cuda/small_positional/tile_engine.h"
#include "posattn/model/cuda/step/engines.h"

namespace posattn::cuda {
namespace {

using positional::FirstTables;
using positional::fused_kernels;
using positional::FusedKernels;
using positional::FusedLayer;
using positional::LayerKernel;
using positional::PositionsInInput;
using positional::TileEngine;
using positional::TileSizes;

constexpr int width = 64;
constexpr int most_real_nodes = 8;  // only these have inputs

FusedKernels kernels_for(Precision precision) {
  return precision == Precision::fp32 ? fused_kernels<true>() : fused_kernels<false>();
}

TileSizes tile_sizes(const FleetShape& shape, bool single_tiles) {
  return TileSizes(shape, kernels_for(shape.precision).tile_bytes,
                   single_tiles ? 1 : tiles_per_group, 2, shape.spec.depth - 2);
}

// Whether single tiles are faster than groups: in a small fleet, where groups leave multiprocessors
// idle. Single tiles write and read more partial gradients, of which `partials_per_tile` cost about
// as much as a tile.
bool prefers_single_tiles(const FleetShape& shape) {
  const int64_t processors = multiprocessors();
  const TileSizes sizes = tile_sizes(shape, false);
  const int64_t tile_rounds = ceil_div(shape.slots * sizes.tiles, processors);
  const int64_t group_rounds = tiles_per_group * ceil_div(shape.slots * sizes.items, processors);
  const int64_t more_partials = shape.slots * (sizes.tiles - sizes.items);
  const int64_t partials_per_tile = shape.precision == Precision::fp32 ? 300 : 160;
  return (group_rounds - tile_rounds) * partials_per_tile > more_partials;
}

// How many numbers a slot's tables of layer 0 have.
int64_t table_floats(const ModelSpec& spec) {
  return spec.positions_in_input ? positional::first_table_size : 0;
}

class FusedPositionalEngine final : public TileEngine {
 public:
  FusedPositionalEngine(const FleetShape& shape, bool single_tiles)
      : TileEngine(shape, tile_sizes(shape, single_tiles)),
        kernels_(kernels_for(shape.precision)),
        tables_(shape.slots * table_floats(shape.spec)) {
    for (const auto* pair : {kernels_.forward, kernels_.last, kernels_.backward}) {
      for (int first = 0; first < 2; ++first) {
        allow_shared_bytes(pair[first].kernel, pair[first].shared_bytes);
      }
    }
  }
  const char* name() const override { return "fused-positional"; }

 private:
  void enqueue_layers(const StepData& data, const float* parameters, cudaStream_t stream) override {
    if (shape_.spec.positions_in_input) {
      enqueue_make_first_tables(positions_in_input(data, parameters), tables_.data(), stream);
    }
    const int last = shape_.spec.depth - 1;
    descending_ = false;
    for (int l = 1; l < last; ++l) enqueue_kernel(kernels_.forward, data, l, 1, stream);
    enqueue_kernel(kernels_.last, data, last, tiles_.tiles_per_item, stream);
    for (int l = last - 1; l > 0; --l) {
      enqueue_kernel(kernels_.backward, data, l, tiles_.tiles_per_item, stream);
    }
  }
  void finish_sums(const StepData& data, const float* parameters, double* /*losses*/,
                   cudaStream_t stream) override {
    if (!shape_.spec.positions_in_input) return;
    enqueue_finish_first_tables(positions_in_input(data, parameters), folded_gradients_.data(),
                                stream);
  }

  void enqueue_kernel(const LayerKernel<FusedLayer> (&kernels)[2], const StepData& data, int l,
                      int tiles_per_item, cudaStream_t stream) {
    FusedLayer layer = {};
    set_layer(layer, data, l);
    layer.first = first_tables();
    enqueue_layer(kernels[l == 1], layer, tiles_per_item, kernels_.threads, stream);
  }

  PositionsInInput positions_in_input(const StepData& data, const float* parameters) const {
    return {data.slots,          folded_.data(),           layout_.size(),
            layout_.places(0),   positions(parameters),    shape_.slots,
            shape_.spec.nodes(), shape_.spec.encoding_size};
  }

  FirstTables first_tables() const {
    const int64_t maps = layout_.maps(0), constant = layout_.constant(0);
    if (!shape_.spec.positions_in_input) {
      return {folded_.data() + maps, folded_.data() + constant, layout_.size(), 0, maps, constant};
    }
    constexpr int weights = 3 * width;
    return {tables_.data(), tables_.data() + weights, table_floats(shape_.spec), width, maps,
            maps + weights};
  }

  const FusedKernels kernels_;
  DeviceBuffer<float> tables_;
};

bool supports(const ModelSpec& spec, Precision /*precision*/) {
  return spec.attention == AttentionSource::positions && Folding::supports(spec) &&
         spec.encoding != Encoding::learned && spec.heads == 2 &&
         (!spec.positions_in_input || spec.encoding_size >= positional::fewest_positions) &&
         spec.real_nodes <= most_real_nodes && spec.nodes() <= positional::kernel_nodes;
}

int64_t shared_bytes(const ModelSpec& spec) {
  const FusedKernels kernels = kernels_for(Precision::fp32);  // tf32 takes less
  int64_t most = Folding::shared_bytes(spec);
  for (const auto* pair : {kernels.forward, kernels.last, kernels.backward}) {
    for (int first = 0; first < 2; ++first) most = std::max(most, pair[first].shared_bytes);
  }
  return most;
}

int64_t bytes(const FleetShape& shape) {
  return tile_sizes(shape, prefers_single_tiles(shape)).bytes(shape) +
         int64_t{sizeof(float)} * shape.slots * table_floats(shape.spec);
}

std::unique_ptr<StepEngine> make(const FleetShape& shape) {
  return positional::make_engine_of(shape, prefers_single_tiles(shape));
}

}  // namespace

std::unique_ptr<StepEngine> positional::make_engine_of(const FleetShape& shape, bool single_tiles) {
  return std::make_unique<FusedPositionalEngine>(shape, single_tiles);
}

const EngineRow fused_positional = {"fused-positional", supports, shared_bytes, bytes, make};

}  // namespace posattn::cuda
