#include <algorithm>
#include <utility>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/folding/folding.h"
#include "posattn/model/cuda/folding/layout.h"
#include "posattn/model/cuda/small_standard/first_backward.cuh"
#include "posattn/model/cuda/small_standard/half_engine.h"
#include "posattn/model/cuda/small_standard/half_first.cuh"
#include "posattn/model/cuda/small_standard/half_layer.h"
#include "posattn/model/cuda/small_standard/tables.cuh"
#include "posattn/model/cuda/step/multiprocessors.h"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/parameters.h"
#include "posattn/model/tensor_names.h"

namespace posattn::cuda::standard {
namespace {

using standard_halves::data_kernels;
using standard_halves::DataKernels;
using standard_halves::DataLayer;

constexpr int nodes = positional::kernel_nodes;

// Numbers that the engine keeps, of all slots.
struct Sizes {
  Sizes(const FleetShape& shape, const BlockTiles& block_tiles)
      : tiles(shape.sample_stride() / tile_samples),
        parts(ceil_div(tiles, block_tiles.with_sums)),
        folded(FoldedLayout(shape.spec).size()) {
    const DataKernels kernels = data_kernels();
    const int64_t slots = shape.slots, depth = shape.spec.depth;
    layer_rows = slots * tiles * kernels.tile_bytes;
    rows = depth * layer_rows;
    layer_attention = slots * tiles * kernels.attention_bytes;
    attention = (depth - 1) * layer_attention;
    first_attention = slots * tiles * coefficient_floats<nodes>;
    weights = slots * folded;
    partials = slots * parts * folded;
    tables = slots * Tables<nodes>::size;
    table_gradients = slots * parts * TableGradients<nodes>::size;
    losses = slots * tiles;
    bytes = rows + attention +
            sizeof(float) * (first_attention + 2 * weights + partials + tables + table_gradients) +
            sizeof(double) * losses;
  }
  int64_t tiles, parts, folded;                          // of a slot
  int64_t layer_rows, rows, layer_attention, attention;  // bytes
  int64_t first_attention, weights, partials, tables, table_gradients, losses;
  int64_t bytes;
};

class HalfEngine : public StepEngine {
 public:
  HalfEngine(const FleetShape& shape, const BlockTiles& block_tiles)
      : shape_(shape),
        block_tiles_(block_tiles),
        sizes_(shape, block_tiles),
        layout_(shape.spec),
        kernels_(data_kernels()),
        processors_(multiprocessors()),
        folding_(shape),
        positions_(positions_table(shape.spec)),
        rows_(sizes_.rows),
        attention_(sizes_.attention),
        first_attention_(sizes_.first_attention),
        weights_(sizes_.weights),
        weight_gradients_(sizes_.weights),
        partials_(sizes_.partials),
        tables_(sizes_.tables),
        table_gradients_(sizes_.table_gradients),
        losses_(sizes_.losses) {
    for (const DataKernels::Sized& kernel : {kernels_.forward, kernels_.last, kernels_.backward}) {
      allow_shared_bytes(kernel.kernel, kernel.shared_bytes);
    }
    allow_shared_bytes(backward_first<false, nodes, true>,
                       sizeof(FirstBackwardShared<nodes, true>));
  }

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const FoldedWeights folded = {.natural = weights_.data()};
    const Step forward = step(data, parameters, block_tiles_.without_sums);
    const Step summing = step(data, parameters, block_tiles_.with_sums);
    const Layer first = first_layer();
    const auto slots = static_cast<unsigned>(shape_.slots);
    const dim3 block(tile_threads);
    const int last = shape_.spec.depth - 1;

    folding_.enqueue_fold(data.slots, parameters, folded, stream);
    launch(make_tables<nodes>, dim3(table_blocks, slots), block, 0, stream, forward, first,
           tables_.data());
    launch(forward_first_halves<nodes>, dim3(static_cast<unsigned>(forward.blocks), slots), block,
           sizeof(FirstForwardShared<nodes>), stream, forward, first, tables_.data(),
           reinterpret_cast<positional::Tile<false>*>(rows(1)));
    descending_ = false;
    for (int l = 1; l < last; ++l) enqueue_layer(kernels_.forward, data, l, 1, stream);
    enqueue_layer(kernels_.last, data, last, block_tiles_.with_sums, stream);
    for (int l = last; l > 0; --l) {
      enqueue_layer(kernels_.backward, data, l, block_tiles_.with_sums, stream);
    }
    launch(backward_first<false, nodes, true>, dim3(static_cast<unsigned>(summing.blocks), slots),
           block, sizeof(FirstBackwardShared<nodes, true>), stream, summing, first, tables_.data(),
           table_gradients_.data());
    enqueue_sum_groups(data.slots, shape_.slots, partials_.data(), weight_gradients_.data(),
                       static_cast<int>(sizes_.parts), tiles_per_group / block_tiles_.with_sums,
                       sizes_.folded, stream,
                       {losses_.data(), static_cast<int>(sizes_.tiles), losses});
    launch(finish_first<nodes>, dim3(finish_tasks, slots), block, 0, stream, summing, first,
           table_gradients_.data(), weight_gradients_.data(), losses);
    folding_.enqueue_unfold(data.slots, parameters, folded, weight_gradients_.data(), gradients,
                            stream);
  }

  const char* name() const override { return "fused-standard"; }

 private:
  // Activations that layer l reads, and behind the last one its errors. The backward pass of a
  // layer leaves the errors of the layer before where its rows were.
  char* rows(int l) { return rows_.data() + (l - 1) * sizes_.layer_rows; }

  Step step(const StepData& data, const float* parameters, int block_tiles) const {
    Step step = {};
    step.slots = data.slots;
    step.inputs = data.inputs;
    step.targets = data.targets;
    step.counted = data.counted;
    step.positions = positions_.data();
    if (shape_.spec.stores_positions()) {
      const ParameterLayout parameter_layout(shape_.spec);
      step.positions = parameters + parameter_layout.at(names::positions).offset;
      step.positions_stride = parameter_layout.buffer_size();
    }
    step.folded = weights_.data();
    step.folded_size = sizes_.folded;
    step.sample_stride = shape_.sample_stride();
    step.nodes = shape_.spec.nodes();
    step.real_nodes = shape_.spec.real_nodes;
    step.encoding_size = shape_.spec.input_size() - 1;  // of P in the input
    step.tiles = static_cast<int>(sizes_.tiles);
    step.block_tiles = block_tiles;
    step.blocks = static_cast<int>(ceil_div(sizes_.tiles, block_tiles));
    return step;
  }
  Layer first_layer() {
    Layer layer = {};
    layer.maps = layout_.maps(0);
    layer.constant = layout_.constant(0);
    layer.scores = layout_.scores(0);
    layer.score_bias = layout_.score_bias(0);
    layer.attention = first_attention_.data();
    layer.gradient = reinterpret_cast<float*>(rows(1));  // halves
    return layer;
  }

  void enqueue_layer(const DataKernels::Sized& kernel, const StepData& data, int l,
                     int tiles_per_item, cudaStream_t stream) {
    DataLayer layer = {};
    layer.steps = data.slots;
    layer.inputs = data.inputs;
    layer.targets = data.targets;
    layer.counted = data.counted;
    layer.folded = weights_.data();
    layer.folded_size = sizes_.folded;
    layer.maps = layout_.maps(l);
    layer.constant = layout_.constant(l);
    layer.previous_constant = l > 1 ? layout_.constant(l - 1) : -1;  // layer 0 has its tables
    layer.decoder = layout_.decoder();
    layer.decoder_bias = layout_.decoder_bias();
    layer.scores = layout_.scores(l);
    layer.score_bias = layout_.score_bias(l);
    layer.attention_tiles = attention_.data() + (l - 1) * sizes_.layer_attention;
    layer.rows = layer.previous_errors = rows(l);
    layer.errors = layer.next_rows = rows(l + 1);
    layer.partials = partials_.data();
    layer.losses = losses_.data();
    layer.slots = shape_.slots;
    layer.nodes = shape_.spec.nodes();
    layer.real_nodes = shape_.spec.real_nodes;
    layer.sample_stride = static_cast<int>(shape_.sample_stride());
    layer.tiles = static_cast<int>(sizes_.tiles);
    layer.tiles_per_item = tiles_per_item;
    layer.items = static_cast<int>(ceil_div(sizes_.tiles, tiles_per_item));
    const int64_t items = int64_t{1} * layer.slots * layer.items;
    layer.items_per_block =
        static_cast<int>(ceil_div(items, processors_ * kernel.blocks_per_processor));
    layer.descending = std::exchange(descending_, !descending_);
    launch(kernel.kernel, dim3(ceil_div(items, layer.items_per_block)), dim3(kernels_.threads),
           kernel.shared_bytes, stream, layer);
  }

  const FleetShape shape_;
  const BlockTiles block_tiles_;
  const Sizes sizes_;
  const FoldedLayout layout_;
  const DataKernels kernels_;
  const int64_t processors_;
  bool descending_ = false;  // of the next kernel
  Folding folding_;
  DeviceBuffer<float> positions_;  // P, where it is a formula
  DeviceBuffer<char> rows_;        // [depth, slots, tiles]
  DeviceBuffer<char> attention_;   // [depth - 1, slots, tiles]: of the layers behind the first
  DeviceBuffer<float> first_attention_;             // of the first
  DeviceBuffer<float> weights_, weight_gradients_;  // folded
  DeviceBuffer<float> partials_, tables_, table_gradients_;
  DeviceBuffer<double> losses_;
};

}  // namespace

std::unique_ptr<StepEngine> make_half_engine(const FleetShape& shape,
                                             const BlockTiles& block_tiles) {
  return std::make_unique<HalfEngine>(shape, block_tiles);
}

int64_t half_engine_shared_bytes() {
  const DataKernels kernels = data_kernels();
  return std::max({kernels.forward.shared_bytes, kernels.last.shared_bytes,
                   kernels.backward.shared_bytes,
                   int64_t{sizeof(FirstBackwardShared<nodes, true>)}});
}

int64_t half_engine_bytes(const FleetShape& shape, const BlockTiles& block_tiles) {
  return Folding::bytes(shape) + Sizes(shape, block_tiles).bytes;
}

}  // namespace posattn::cuda::standard
