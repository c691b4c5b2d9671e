// The block executor on the CPU: a BlockNetwork in float over tiles of samples.

#include <algorithm>

#include "posattn/base/pool.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/model/blocks/block_network.h"
#include "posattn/model/network_engine.h"
#include "posattn/model/tiles/tiles.h"

namespace posattn::engine {
namespace {

// Multiply-adds of the layers, forward, at the model's own length: linear maps, scores and mixing.
// All of it is computed here, but of causal attention only the half that nodes attend to, and
// shared symbols only once for many samples.
Network::Work work_of(const ModelSpec& spec, const Plan& plan, bool shares_symbols) {
  const double nodes = spec.nodes();
  const auto rows = [&](const LinearBlock& map) { return nodes * map.in * map.out; };
  Network::Work work;
  for (const LayerBlock& layer : plan.layers) {
    const AttentionBlock& attention = layer.attention;
    const double share = attention.causal ? (nodes + 1) / (2 * nodes) : 1;  // of all pairs
    double maps = rows(attention.value) + rows(attention.output);
    double pairs = attention.mixes() ? nodes * nodes * attention.heads * attention.head_size : 0;
    for (const LinearBlock& map : layer.mlp.maps) maps += rows(map);
    double of_values = 0;
    if (const auto& values = layer.values) {
      of_values = rows(values->value) + rows(values->output);
      for (const LinearBlock& map : values->mlp) of_values += rows(map);
      maps += of_values;
      if (values->mix_gate) maps += rows(*values->mix_gate);
      if (values->hidden_gate) maps += rows(*values->hidden_gate);
      const double mixing = nodes * nodes * attention.heads * values->head_size;
      pairs += mixing;
      of_values += share * mixing;
    }
    const double all_pairs = nodes * nodes * attention.heads;
    if (const auto& data = attention.data) {
      const int features = attention.features;  // in place of queries and keys
      maps += rows(data->query_key) +
              nodes * 2 * attention.heads * features * static_cast<double>(data->key_size);
      pairs += all_pairs * (features > 0 ? features : data->key_size);
    }
    if (const auto& convolution = attention.convolution) {
      const double channels = convolution->channels + attention.heads;
      pairs += nodes * nodes * channels * convolution->window * score_convolution_hidden;
    }
    if (attention.positions && row_of(attention.positions->kind).of_pairs) {
      pairs += all_pairs * spec.pair_columns;
    }
    if (const auto& positions = attention.positions; positions && positions->query_key) {
      work.nominal_per_step += rows(*positions->query_key) + all_pairs * positions->key_size;
    }
    work.nominal_per_sample += maps + pairs;
    work.actual_per_sample += shares_symbols ? of_values : maps + share * pairs;
  }
  // Attention from positions is made once.
  const int loops = spec.loops_at(spec.real_nodes) * std::max(1, spec.time_steps);
  work.nominal_per_sample *= loops;
  work.actual_per_sample *= loops;
  work.actual_per_step = work.nominal_per_step;
  return work;
}

class BlockExecutor : public NetworkEngine {
 public:
  BlockExecutor(const ModelSpec& spec, const NetworkOptions& options)
      : network_(spec),
        threads_(std::max(1, options.threads)),
        as_written_(options.path == Path::plain) {
    blas_info();  // what may be refused is refused here, before any thread needs it
    // About a hundred rows keep the products busy, and what a tile leaves for backward should stay
    // in the cache.
    constexpr int rows = 128;
    tile_ = options.tile > 0
                ? options.tile
                : std::clamp(rows / (spec.nodes() * std::max(1, spec.time_steps)), 1, 64);
  }

  void prepare(const Parameters<float>& parameters, int real_nodes) override {
    network_.prepare(parameters, real_nodes, !as_written_);
  }

  void run(const Batch& batch, std::span<float> outputs) const override {
    const Tapes::Borrowed tapes = tapes_.borrow(threads_);
    const int64_t columns = network_.spec().output_columns, nodes = network_.nodes();
    const int64_t count = batch.real_nodes * columns;
    const Tiles tiles{batch.samples, tile_};
    parallel_for(tiles.count(), threads_, [&](int64_t t) {
      BlockTape<float>& tape = (*tapes)[thread_index()];
      const auto [first, samples] = tiles.at(t);
      network_.forward(batch, first, samples, tape);
      for (int64_t s = 0; s < samples; ++s) {
        std::copy_n(tape.output.data() + s * nodes * columns, count,
                    outputs.data() + (first + s) * count);
      }
    });
  }

  double gradient(const Parameters<float>& parameters, const Batch& batch,
                  std::span<const uint8_t> mask, Parameters<float>& gradient) override {
    network_.prepare(parameters, batch.real_nodes, false, batch.context);
    const int64_t size = network_.sums_size();
    const Tiles tiles{batch.samples, tile_};
    const double scale = loss_scale(network_.spec(), batch, mask);
    const Tapes::Borrowed tapes = tapes_.borrow(threads_);
    const double loss =
        sum_tiles(tiles, group_count(tiles.count(), size), threads_, size, sums_,
                  [&](const Tile& tile, float* sums) {
                    BlockTape<float>& tape = (*tapes)[thread_index()];
                    network_.forward(batch, tile.first, tile.samples, tape);
                    return network_.backward(batch, tile.first, tile.samples, mask, scale, tape,
                                             {sums, static_cast<size_t>(size)});
                  });
    network_.finish({sums_.data(), static_cast<size_t>(size)}, gradient);
    return loss;
  }

  std::vector<float> attention(const Parameters<float>& parameters, const Batch& batch) override {
    network_.prepare(parameters, batch.real_nodes);
    const Tapes::Borrowed tapes = tapes_.borrow(threads_);
    network_.forward(batch, 0, 1, tapes->front());
    return network_.attention(tapes->front());
  }

  Network::Work work() const override {
    return work_of(network_.spec(), network_.plan(), network_.shares_symbols());
  }

 private:
  // A function of the model and the batch, never of the threads. Sums of many groups leave the
  // cache, so there are 16 only where they are small, and fewer than 8 only where they are huge.
  static int group_count(int64_t tiles, int64_t size) {
    constexpr int64_t small_bytes = int64_t{4} << 20, most_bytes = int64_t{256} << 20;
    const int64_t bytes = size * int64_t{sizeof(float)};
    int64_t groups = std::clamp<int64_t>(tiles, 1, 16 * bytes <= small_bytes ? 16 : 8);
    while (groups > 2 && groups * bytes > most_bytes) groups /= 2;
    return static_cast<int>(groups);
  }

  BlockNetwork<float> network_;
  int threads_, tile_ = 1;
  bool as_written_;                                   // with matrices of attention at any length
  using Tapes = Pool<std::vector<BlockTape<float>>>;  // a call's: one for each of its threads
  mutable Tapes tapes_;
  Buffer<float> sums_;  // [groups, sums_size]
};

}  // namespace

std::unique_ptr<NetworkEngine> make_block_executor(const ModelSpec& spec,
                                                   const NetworkOptions& options) {
  return std::make_unique<BlockExecutor>(spec, options);
}

}  // namespace posattn::engine
