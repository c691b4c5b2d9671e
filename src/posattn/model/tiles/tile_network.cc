#include "posattn/model/tiles/tile_network.h"

#include <algorithm>

#include "posattn/base/watch.h"
#include "posattn/kernels/cpu/blas.h"
#include "posattn/kernels/cpu/tile_kernels.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/end_stages.h"
#include "posattn/model/tiles/unfolded_stage.h"
#include "posattn/model/tiles/value_stage.h"

namespace posattn::engine {
namespace {

std::unique_ptr<Stage> attention_stage(const ModelSpec& spec, const ParameterLayout& layout,
                                       int layer, Path path) {
  std::unique_ptr<Stage> best;
  if (always_folded(spec)) {
    best = std::make_unique<StateStage>(spec, layout, layer);
  } else {
    best = std::make_unique<UnfoldedStage>(spec, layout, layer);
  }
  if (path == Path::plain || !FoldedStage::supports(spec)) return best;
  std::unique_ptr<Stage> folded = std::make_unique<StateStage>(spec, layout, layer);
  if (path == Path::folded) return folded;
  const auto take_less = [&](std::unique_ptr<Stage> other) {
    if (other->actual_work().per_sample < best->actual_work().per_sample) best = std::move(other);
  };
  take_less(std::move(folded));
  if (ValueStage::supports(spec)) {
    take_less(std::make_unique<ValueStage>(spec, layout, layer, LayerInput::hidden));
  }
  return best;
}

}  // namespace

bool TileNetwork::supports(const ModelSpec& spec, Path path) {
  return known_to_stages(spec) && (path != Path::plain || !always_folded(spec));
}

TileNetwork::TileNetwork(const ModelSpec& spec, const NetworkOptions& options)
    : spec_(spec), options_(options), layout_(spec_) {
  // Both may refuse this machine, which must happen before any thread needs them.
  blas_info();
  tile_kernels();
  encodes_apart_ =
      spec_.positions_in_input && options.path == Path::automatic && ValueStage::supports(spec_);
  if (encodes_apart_) stages_.push_back(std::make_unique<InputStage>(spec_, layout_));
  for (int l = 0; l < spec_.depth; ++l) {
    if (l == 0 && encodes_apart_) {
      stages_.push_back(std::make_unique<ValueStage>(spec_, layout_, l, LayerInput::x));
    } else {
      stages_.push_back(attention_stage(spec_, layout_, l, options.path));
    }
    for (int m = 1; m + 1 < spec_.mlp_depth; ++m) {
      stages_.push_back(std::make_unique<MiddleStage>(spec_, layout_, l, m));
    }
  }
  stages_.push_back(std::make_unique<DecoderStage>(spec_, layout_));
  tile_ = options.tile > 0 ? options.tile : default_tile();
}

void TileNetwork::place_gradients(int64_t samples) {
  gradient_size_ = 0;
  offsets_.clear();
  for (const auto& stage : stages_) {
    stage->begin_gradient(samples);
    offsets_.push_back(gradient_size_);
    gradient_size_ += padded(stage->gradient_size());
  }
  input_positions_ = gradient_size_;
  if (learns_input_positions()) {
    gradient_size_ += padded(int64_t{1} * spec_.nodes() * spec_.encoding_size);
  }
}

int64_t TileNetwork::workspace_size(int samples) const {
  int64_t total = 0, scratch = 0;
  for (const auto& stage : stages_) {
    total += padded(stage->tape_size(samples));
    scratch = std::max(scratch, padded(stage->scratch_size(samples)));
  }
  return total + 2 * scratch + int64_t{2} * samples * spec_.nodes() * padded(spec_.output_columns);
}

int TileNetwork::default_tile() const {
  // About 144 rows keep the kernels busy; a tile should fit the second-level cache.
  constexpr int rows = 144;
  constexpr int64_t cache = 1 << 20;  // bytes
  int samples = std::clamp(rows / spec_.nodes(), 1, 64);
  while (samples > 1 && workspace_size(samples) * int64_t{sizeof(float)} > cache) --samples;
  return samples;
}

int TileNetwork::group_count(int64_t tiles) const {
  // A function of the model and the batch, never of the threads, so that sums have one order.
  // Enough groups for many threads, few enough that adding them up stays cheap.
  int64_t groups = std::clamp<int64_t>((tiles + 3) / 4, std::min<int64_t>(tiles, 8), 32);
  constexpr int64_t most_bytes = int64_t{256} << 20;
  while (groups > 2 && groups * gradient_size_ * int64_t{sizeof(float)} > most_bytes) groups /= 2;
  return static_cast<int>(groups);
}

void TileNetwork::prepare(const Parameters<float>& parameters, int real_nodes) {
  // A compiled program's numbers are exact only as they are written: its path is the plain one.
  prepare_stages(
      parameters, real_nodes,
      options_.path == Path::automatic ? AttentionForm::cheapest : AttentionForm::matrix);
}

void TileNetwork::prepare_stages(const Parameters<float>& parameters, int real_nodes,
                                 AttentionForm form) {
  active_.index.clear();
  for (int i = 0; i < real_nodes; ++i) active_.index.push_back(i);
  for (int i = 0; i < spec_.scratch_nodes; ++i) active_.index.push_back(spec_.real_nodes + i);
  if (has_input_positions()) {
    const std::vector<float> all = positions_of(spec_, parameters);
    const int64_t p = spec_.encoding_size;
    positions_.resize(active_.count() * p);
    for (int i = 0; i < active_.count(); ++i) {
      std::copy_n(&all[active_.index[i] * p], p, &positions_[i * p]);
    }
  }
  parallel_for(static_cast<int64_t>(stages_.size()), options_.threads,
               [&](int64_t i) { stages_[i]->prepare(parameters, active_, form); });
  workspace_size_ = workspace_size(tile_);
}

TileNetwork::Workspaces::Borrowed TileNetwork::workspaces() const {
  return workspaces_.borrow(std::max(1, options_.threads));
}

TileNetwork::Workspace& TileNetwork::lay_out(Workspace& work) const {
  if (work.size == workspace_size_) return work;
  work.size = workspace_size_;  // inference after gradients needs less, and back again
  if (static_cast<int64_t>(work.memory.size()) < work.size) work.memory = Buffer<float>(work.size);
  work.tapes.clear();
  float* next = work.memory.data();
  int64_t scratch = 0;
  for (const auto& stage : stages_) {
    work.tapes.push_back(next);
    next += padded(stage->tape_size(tile_));
    scratch = std::max(scratch, padded(stage->scratch_size(tile_)));
  }
  const int64_t output_size = int64_t{tile_} * spec_.nodes() * padded(spec_.output_columns);
  work.output = next;
  work.doutput = next + output_size;
  work.scratch[0] = work.doutput + output_size;
  work.scratch[1] = work.scratch[0] + scratch;
  return work;
}

void TileNetwork::load_inputs(const Batch& batch, const Tile& tile, float* tape) const {
  const int64_t stride = stages_[0]->input_stride(), columns = spec_.data_columns;
  const int64_t p = has_input_positions() ? spec_.encoding_size : 0;
  const float* data = batch.inputs.data() + tile.first * batch.real_nodes * columns;
  const int nodes = active_.count();
  for (int s = 0; s < tile.samples; ++s) {
    for (int i = 0; i < nodes; ++i, tape += stride) {
      if (i < batch.real_nodes) {
        std::copy_n(data, columns, tape);
        data += columns;
      } else {
        std::fill_n(tape, columns, 0.0f);
      }
      std::copy_n(positions_.data() + i * p, p, tape + columns);
    }
  }
}

void TileNetwork::run_forward(const Batch& batch, const Tile& tile, Workspace& work) const {
  load_inputs(batch, tile, work.tapes[0]);
  for (size_t i = 0; i < stages_.size(); ++i) {
    Watch::look();
    const bool last = i + 1 == stages_.size();
    stages_[i]->forward(tile.samples, work.tapes[i], work.scratch[0],
                        last ? work.output : work.tapes[i + 1],
                        last ? padded(spec_.output_columns) : stages_[i + 1]->input_stride());
  }
}

double TileNetwork::run_tile(const Batch& batch, const Tile& tile, std::span<const uint8_t> mask,
                             Workspace& work, float* sums) const {
  const auto [first, samples] = tile;
  run_forward(batch, tile, work);
  const int64_t columns = spec_.output_columns, stride = padded(columns);
  const int nodes = active_.count();
  const int64_t per_sample = batch.real_nodes * columns;
  const auto scale = static_cast<float>(1.0 / static_cast<double>(batch.samples * per_sample));
  double loss = 0;
  for (int s = 0; s < samples; ++s) {
    const float* targets = batch.targets.data() + (first + s) * per_sample;
    for (int i = 0; i < nodes; ++i) {
      const float* y = work.output + (s * nodes + i) * stride;
      float* dy = work.doutput + (s * nodes + i) * stride;
      if (i < batch.real_nodes) {
        generic::squared_error(columns, scale, batch.unit(first + s), y, targets + i * columns,
                               mask.empty() ? nullptr : mask.data() + i * columns, dy, loss);
      } else {
        std::fill_n(dy, columns, 0.0f);
      }
    }
  }
  float* doutput = work.doutput;
  int64_t doutput_stride = stride;
  for (int i = static_cast<int>(stages_.size()) - 1; i >= 0; --i) {
    Watch::look();
    const bool last = i + 1 == static_cast<int>(stages_.size());
    const bool wants = i > 0 || learns_input_positions();
    doutput =
        stages_[i]->backward(first, samples, work.tapes[i], last ? work.output : work.tapes[i + 1],
                             last ? stride : stages_[i + 1]->input_stride(), doutput,
                             doutput_stride, wants, work.scratch[i % 2], sums + offsets_[i]);
    doutput_stride = stages_[i]->input_stride();
  }
  if (learns_input_positions()) {
    const int64_t p = spec_.encoding_size;
    for (int64_t r = 0; r < int64_t{samples} * nodes; ++r) {
      float* row = sums + input_positions_ + active_.index[r % nodes] * p;
      const float* d = doutput + r * doutput_stride + spec_.data_columns;
      for (int64_t c = 0; c < p; ++c) row[c] += d[c];
    }
  }
  return loss;
}

void TileNetwork::run(const Batch& batch, std::span<float> outputs) const {
  const Workspaces::Borrowed ours = workspaces();
  const Tiles tiles{batch.samples, tile_};
  const int64_t columns = spec_.output_columns, stride = padded(columns);
  parallel_for(tiles.count(), options_.threads, [&](int64_t t) {
    Workspace& work = lay_out((*ours)[thread_index()]);
    const auto [first, samples] = tiles.at(t);
    run_forward(batch, {first, samples}, work);
    float* out = outputs.data() + first * batch.real_nodes * columns;
    for (int s = 0; s < samples; ++s) {
      for (int i = 0; i < batch.real_nodes; ++i, out += columns) {
        std::copy_n(work.output + (s * active_.count() + i) * stride, columns, out);
      }
    }
  });
}

double TileNetwork::gradient(const Parameters<float>& parameters, const Batch& batch,
                             std::span<const uint8_t> mask, Parameters<float>& gradient) {
  prepare_stages(parameters, batch.real_nodes, AttentionForm::matrix);
  place_gradients(batch.samples);
  const Tiles tiles{batch.samples, tile_};
  const Workspaces::Borrowed ours = workspaces();
  const double loss = sum_tiles(tiles, group_count(tiles.count()), options_.threads, gradient_size_,
                                group_sums_, [&](const Tile& tile, float* sums) {
                                  Workspace& work = lay_out((*ours)[thread_index()]);
                                  return run_tile(batch, tile, mask, work, sums);
                                });
  finish(gradient);
  return loss / static_cast<double>(batch.samples * batch.real_nodes * spec_.output_columns);
}

void TileNetwork::finish(Parameters<float>& gradient) {
  const int count = static_cast<int>(stages_.size());
  const int64_t position_count = int64_t{1} * spec_.nodes() * spec_.encoding_size;
  if (learns_positions()) dpositions_.assign(count, Buffer<float>(position_count));
  parallel_for(count, options_.threads, [&](int64_t i) {
    stages_[i]->finish(&group_sums_[offsets_[i]], gradient,
                       learns_positions() ? dpositions_[i].data() : nullptr);
  });
  if (!learns_positions()) return;
  auto out = gradient[names::positions];
  std::ranges::fill(out, 0.0f);
  for (const Buffer<float>& part : dpositions_) {
    for (int64_t i = 0; i < position_count; ++i) out[i] += part[i];
  }
  if (learns_input_positions()) {
    for (int64_t i = 0; i < position_count; ++i) out[i] += group_sums_[input_positions_ + i];
  }
}

std::vector<float> TileNetwork::attention(const Parameters<float>& parameters, const Batch& batch) {
  prepare_stages(parameters, batch.real_nodes, AttentionForm::matrix);
  const Workspaces::Borrowed ours = workspaces();
  Workspace& work = lay_out(ours->front());
  run_forward(batch, {0, 1}, work);
  const int64_t size = int64_t{1} * spec_.heads * active_.count() * active_.count();
  std::vector<float> all(spec_.depth * size);
  float* next = all.data();
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (stages_[i]->attention(work.tapes[i], work.scratch[0], next)) next += size;
  }
  return all;
}

Network::Work TileNetwork::work() const {
  Network::Work work;
  for (const auto& stage : stages_) {
    const StageWork nominal = stage->nominal_work(), actual = stage->actual_work();
    work.nominal_per_sample += nominal.per_sample;
    work.nominal_per_step += nominal.per_step;
    work.actual_per_sample += actual.per_sample;
    work.actual_per_step += actual.per_step;
  }
  return work;
}

}  // namespace posattn::engine
