#include "posattn/model/blocks/block_network.h"

#include <algorithm>
#include <numeric>

#include "posattn/base/watch.h"
#include "posattn/kernels/generic/product.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/blocks/block_layer.h"
#include "posattn/model/blocks/neurons.h"
#include "posattn/model/blocks/value_stream.h"
#include "posattn/model/spec/node_positions.h"

namespace posattn {

template <class T>
NodeContext<T>::NodeContext(const ModelSpec& of_spec, const Parameters<T>& of_parameters,
                            const LinearMaps<T>& of_maps, int real, const StepContext& context)
    : spec(of_spec),
      parameters(of_parameters),
      maps(of_maps),
      real_nodes(real),
      place(node_positions(of_spec, real, context)) {
  for (int i = 0; i < real; ++i) index.push_back(i);
  for (int i = 0; i < spec.scratch_nodes; ++i) index.push_back(spec.real_nodes + i);
  if (!spec.uses_positions()) return;
  if (spec.position_range > 0) {
    const std::vector<double> drawn = formula_positions(spec, place);
    positions.assign(drawn.begin(), drawn.end());
    return;
  }
  const std::vector<T> all = positions_of(spec, parameters);
  const int64_t p = spec.encoding_size;
  for (const int i : index) {
    positions.insert(positions.end(), all.begin() + i * p, all.begin() + (i + 1) * p);
  }
}

template <class T>
double loss_scale(const ModelSpec& spec, const BatchOf<T>& batch, std::span<const uint8_t> mask) {
  if (spec.loss == Loss::squared_error) {
    return 1.0 / static_cast<double>(batch.samples * spec.nodes_read(batch.real_nodes) *
                                     spec.output_columns);
  }
  int64_t counted = 0;
  const int first = spec.first_read(batch.real_nodes), read = spec.nodes_read(batch.real_nodes);
  for (int64_t row = 0; row < batch.samples * batch.real_nodes; ++row) {
    const int64_t node = row % batch.real_nodes;
    if (node < first || node >= first + read) continue;
    counted += batch.labels[row] >= 0 && (mask.empty() || mask[node * spec.output_columns] != 0);
  }
  return counted == 0 ? 0.0 : 1.0 / static_cast<double>(counted);
}

namespace {

// Of two streams: whether no sample's tokens, values, pairs or draws reach the symbols.
bool symbols_are_positions(const ModelSpec& spec, const Plan& plan) {
  return plan.head.reads_values && plan.input.tokens == no_tensor && !spec.scores_read_values &&
         !spec.symbols_read_values && spec.hint_columns.empty() &&
         !spec.any_layer([](const AttentionChoices& kind) {
           return kind.reads_pairs() || row_of(kind.weighting).random;
         });
}

}  // namespace

template <class T>
BlockNetwork<T>::BlockNetwork(const ModelSpec& spec, bool soft_spikes)
    : spec_(spec),
      plan_(plan_of(spec_)),
      soft_spikes_(soft_spikes),
      shares_symbols_(symbols_are_positions(spec_, plan_)),
      maps_(plan_) {}
template <class T>
BlockNetwork<T>::~BlockNetwork() = default;

template <class T>
void BlockNetwork<T>::prepare(const Parameters<T>& parameters, int real_nodes, bool forward_only,
                              const StepContext& context) {
  maps_.prepare(parameters);
  nodes_ = std::make_unique<NodeContext<T>>(spec_, parameters, maps_, real_nodes, context);
  layers_ = spec_.applied_layers(real_nodes);
  const int64_t n = nodes_->count();
  shared_.resize(spec_.depth);
  shared_kept_.resize(spec_.depth);
  shared_scores_.resize(spec_.depth);
  convolutions_.resize(spec_.depth);
  long_.resize(spec_.depth);
  for (int l = 0; l < spec_.depth; ++l) {
    const AttentionBlock& block = plan_.layers[l].attention;
    if (block.convolution) {
      convolutions_[l] = std::make_unique<ScoreConvolution<T>>(block, *nodes_);
    }
    const auto make_long = row_of(block.weighting).template in<T>().long_mixing;
    long_[l] = forward_only && make_long != nullptr ? make_long(block, *nodes_) : nullptr;
    if (long_[l]) continue;
    shared_[l].resize(block.heads * n * n);
    if (block.routes) {
      routed_attention_matrix(*block.routes, block.heads, *nodes_, shared_[l].data());
    }
    if (!block.positions || scores_pairs(block)) continue;
    row_of(block.positions->kind)
        .template in<T>()
        .scores(*block.positions, block.heads, *nodes_, shared_[l].data());
    if (per_sample(block)) continue;
    const ScoreParts<T> parts = score_parts(l, nullptr, shared_[l].data());
    std::vector<T> attention(shared_[l].size()), scratch;
    const auto& weighting = row_of(block.weighting);
    if (weighting.keeps) shared_kept_[l].resize(attention.size());
    weighting.template in<T>().weights(parts, {}, attention.data(), shared_kept_[l].data(),
                                       scratch);
    std::swap(shared_[l], attention);
    if (weighting.keeps) shared_scores_[l] = std::move(attention);
  }
}

template <class T>
int64_t BlockNetwork<T>::attention_offset(int layer) const {
  int64_t offset = plan_.tensors.buffer_size();
  for (int l = 0; l < layer; ++l) {
    const AttentionBlock& block = plan_.layers[l].attention;
    if (!block.data || block.positions) offset += int64_t{1} * block.heads * nodes() * nodes();
  }
  return offset;
}

template <class T>
int64_t BlockNetwork<T>::sums_size() const {
  return positions_offset() + static_cast<int64_t>(nodes_->positions.size());
}

template <class T>
void BlockNetwork<T>::finish(std::span<const T> sums, Parameters<T>& gradient) const {
  const int64_t n = nodes();
  std::copy_n(sums.begin(), gradient.values().size(), gradient.values().begin());
  std::vector<T> dpositions(sums.begin() + positions_offset(), sums.end());
  const ScoreGradients<T> out{gradient, dpositions.data()};
  for (int l = 0; l < spec_.depth; ++l) {
    const AttentionBlock& block = plan_.layers[l].attention;
    if (!block.positions || scores_pairs(block)) continue;
    const PositionTerm& term = *block.positions;
    std::vector<T> dscores(sums.begin() + attention_offset(l),
                           sums.begin() + attention_offset(l) + block.heads * n * n);
    if (!per_sample(block)) {
      const ScoreParts<T> parts = score_parts(l, nullptr, shared_scores_[l].data());
      row_of(block.weighting)
          .template in<T>()
          .gradient(parts, shared_[l].data(), shared_kept_[l].data(), dscores.data(), nullptr);
    }
    row_of(term.kind).template in<T>().gradient(term, block.heads, *nodes_, dscores.data(), out);
  }
  if (plan_.positions == no_tensor || spec_.encoding != Encoding::learned) return;
  T* table = out.tensor(plan_.positions);
  const int64_t p = spec_.encoding_size;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t c = 0; c < p; ++c) table[nodes_->index[i] * p + c] += dpositions[i * p + c];
  }
}

template <class T>
void BlockNetwork<T>::join(int64_t rows, const T* data, int data_size, bool with_positions,
                           std::vector<T>& out) const {
  const int64_t p = with_positions ? spec_.encoding_size : 0, n = nodes();
  out.resize(rows * (data_size + p));
  T* next = out.data();
  for (int64_t r = 0; r < rows; ++r) {
    next = std::copy_n(data + r * data_size, data_size, next);
    next = std::copy_n(nodes_->positions.data() + r % n * p, p, next);
  }
}

template <class T>
void BlockNetwork<T>::split(int64_t rows, const std::vector<T>& d, int data_size,
                            bool with_positions, T* ddata, std::span<T> sums) const {
  const int64_t p = with_positions ? spec_.encoding_size : 0, n = nodes();
  T* dpositions = sums.data() + positions_offset();
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = d.data() + r * (data_size + p);
    for (int c = 0; ddata && c < data_size; ++c) ddata[r * data_size + c] += row[c];
    for (int64_t c = 0; c < p; ++c) dpositions[r % n * p + c] += row[data_size + c];
  }
}

template <class T>
void BlockNetwork<T>::forward_input(const BatchOf<T>& batch, int64_t first, int samples,
                                    BlockTape<T>& tape) const {
  const InputBlock& block = plan_.input;
  const int64_t n = nodes(), real = batch.real_nodes, d = spec_.width;
  const int64_t rows = symbol_samples(samples, tape.scratch) * n;
  const int columns = spec_.data_columns;
  std::vector<T>& x = tape.layers.front().x;
  x.assign(rows * d, T(0));
  std::vector<T> values(samples * n * columns);  // scratch nodes hold zeros
  for (int64_t s = 0; s < samples; ++s) {
    std::copy_n(batch.inputs.data() + (first + s) * real * columns, real * columns,
                values.data() + s * n * columns);
  }
  if (block.values) {
    join(rows, values.data(), block.stream ? 0 : columns, block.positions_joined, tape.input);
    maps_.forward(*block.values, rows, tape.input.data(), x.data());
  }
  if (block.tokens != no_tensor) {
    tape.tokens.assign(rows, -1);
    for (int64_t s = 0; s < samples; ++s) {
      std::copy_n(batch.tokens.data() + (first + s) * real, real, tape.tokens.data() + s * n);
    }
    generic::embed(rows, d, tape.tokens.data(), tensor(block.tokens), block.tokens_added, x.data());
  }
  if (block.stream) {
    const bool either = block.tokens != no_tensor && !spec_.tokens_and_values;
    for (int64_t r = 0; either && r < rows; ++r) {  // a node of a token has no value
      if (tape.tokens[r] >= 0) std::fill_n(&values[r * columns], columns, T(0));
    }
    tape.stream_input = std::move(values);
    std::vector<T>& v = tape.layers.front().v;
    v.resize(samples * n * block.stream->out);
    maps_.forward(*block.stream, samples * n, tape.stream_input.data(), v.data());
  }
  for (int64_t at = 0; block.positions_added && at < rows * d; at += n * d) {
    for (int64_t i = 0; i < n * d; ++i) x[at + i] += nodes_->positions[i];
  }
  if (!spec_.spikes()) return;
  repeat_input(samples, x);
  fire(block.neurons, rows * steps(), x, tape.input_currents);
}

template <class T>
void BlockNetwork<T>::backward_input(BlockTape<T>& tape, int64_t all_rows, std::vector<T>& dx,
                                     std::span<T> sums) const {
  const InputBlock& block = plan_.input;
  const int64_t n = nodes(), d = spec_.width;
  const int64_t rows = shares_symbols_ ? n : all_rows;
  if (spec_.spikes()) {
    fire_backward(block.neurons, rows * steps(), tape.input_currents, dx.data(), tape.scratch,
                  sums);
    sum_steps(rows / n, dx, T(1), tape.scratch.dnorm);
    std::swap(dx, tape.scratch.dnorm);
  }
  if (block.positions_added) {
    T* dpositions = sums.data() + positions_offset();
    for (int64_t at = 0; at < rows * d; at += n * d) {
      for (int64_t i = 0; i < n * d; ++i) dpositions[i] += dx[at + i];
    }
  }
  if (block.tokens != no_tensor) {
    generic::embed_gradient(rows, d, tape.tokens.data(), dx.data(), gradient(sums, block.tokens));
  }
  if (block.stream) {
    maps_.weight_gradient(*block.stream, all_rows, tape.stream_input.data(), tape.scratch.dv.data(),
                          sums.data());
  }
  if (!block.values) return;
  std::vector<T>& dvalues = tape.scratch.dy;
  dvalues = dx;
  const bool either = block.tokens != no_tensor && !block.tokens_added;
  for (int64_t r = 0; either && r < rows; ++r) {
    // rows of tokens have not seen the values
    if (tape.tokens[r] >= 0) std::fill_n(dvalues.data() + r * d, d, T(0));
  }
  std::vector<T>& dinput = tape.scratch.dsource;
  dinput.resize(tape.input.size());
  maps_.backward(*block.values, rows, tape.input.data(), dvalues.data(), sums.data(), false,
                 block.positions_joined ? dinput.data() : nullptr);
  if (!block.positions_joined) return;
  split(rows, dinput, block.stream ? 0 : spec_.data_columns, true, nullptr, sums);
}

template <class T>
void BlockNetwork<T>::forward(const BatchOf<T>& batch, int64_t first, int samples,
                              BlockTape<T>& tape) const {
  const int64_t rows = int64_t{samples} * nodes();
  tape.layers.resize(layers_);
  tape.scratch.context = batch.context;
  tape.scratch.first = first;
  tape.scratch.pairs = batch.pairs;
  tape.scratch.pair_classes = batch.pair_classes;
  forward_input(batch, first, samples, tape);
  show(tape.scratch, Activated::embedding, 0, tape.layers.front().x);
  for (int l = 0; l < layers_; ++l) {
    Watch::look();
    forward_layer(l, samples * static_cast<int>(steps()), tape);
  }
  const HeadBlock& head = plan_.head;
  if (head.norm) {
    normalise(*head.norm, rows, tape.decoder_input, tape.head_input);
  } else if (spec_.spikes()) {
    sum_steps(samples, tape.decoder_input, 1 / static_cast<T>(steps()), tape.head_input);
  }
  tape.output.resize(rows * spec_.output_columns);
  maps_.forward(head.map, rows, head_input(tape), tape.output.data());
}

// With H the mean of (unit y - label)^2 over all labels of the batch, y = x W^T + b of a state x: W
// and b follow dH, and x follows hint_weight dH. So with weight 0 the maps look on.
template <class T>
void BlockNetwork<T>::hint_backward(int layer, const BatchOf<T>& batch, int64_t first, int samples,
                                    BlockTape<T>& tape, std::vector<T>& dx,
                                    std::span<T> sums) const {
  const std::optional<LinearBlock>& map = block_of(layer).hint;
  if (!map) return;
  const auto columns = spec_.hint_columns.begin();
  const int64_t n = nodes(), rows = samples * n, real = batch.real_nodes;
  const int64_t of_sample = real * std::accumulate(columns, spec_.hint_columns.end(), int64_t{0});
  const int64_t before = real * std::accumulate(columns, columns + layer, int64_t{0});
  const T scale = T(1) / static_cast<T>(batch.samples * of_sample);
  const T* x = (layer + 1 < layers_ ? tape.layers[layer + 1].x : tape.decoder_input).data();
  std::vector<T>&y = tape.scratch.hidden, &dy = tape.scratch.dy;
  y.resize(rows * map->out);
  dy.assign(y.size(), T(0));
  maps_.forward(*map, rows, x, y.data());
  for (int64_t s = 0; s < samples; ++s) {
    double unused = 0;
    generic::squared_error(real * map->out, scale, batch.unit(first + s), &y[s * n * map->out],
                           batch.hints.data() + (first + s) * of_sample + before, nullptr,
                           &dy[s * n * map->out], unused);
  }
  maps_.weight_gradient(*map, rows, x, dy.data(), sums.data());
  if (batch.hint_weight == 0) return;
  for (T& d : dy) d *= static_cast<T>(batch.hint_weight);
  maps_.input_gradient(*map, rows, dy.data(), true, dx.data());
}

template <class T>
double BlockNetwork<T>::backward(const BatchOf<T>& batch, int64_t first, int samples,
                                 std::span<const uint8_t> mask, double scale, BlockTape<T>& tape,
                                 std::span<T> sums) const {
  const int64_t n = nodes(), rows = samples * n, real = batch.real_nodes;
  const int64_t columns = spec_.output_columns, read = spec_.nodes_read(batch.real_nodes);
  const int64_t first_read = spec_.first_read(batch.real_nodes);
  const uint8_t* counts = mask.empty() ? nullptr : mask.data() + first_read * columns;
  std::vector<T>& dy = tape.scratch.dy;
  dy.assign(rows * columns, T(0));
  double loss = 0;
  for (int64_t s = 0; s < samples; ++s) {
    const T* y = tape.output.data() + (s * n + first_read) * columns;
    T* d = dy.data() + (s * n + first_read) * columns;  // others have no part in the loss
    if (plan_.loss == Loss::squared_error) {
      generic::squared_error(read * columns, static_cast<T>(scale), batch.unit(first + s), y,
                             batch.targets.data() + ((first + s) * real + first_read) * columns,
                             counts, d, loss);
      continue;
    }
    const auto labels = batch.labels.subspan((first + s) * real + first_read, read);
    tape.labels.assign(labels.begin(), labels.end());
    for (int64_t i = 0; i < read && counts != nullptr; ++i) {
      if (counts[i * columns] == 0) tape.labels[i] = -1;
    }
    generic::cross_entropy(read, columns, static_cast<T>(scale), y, tape.labels.data(), d, loss);
  }
  const HeadBlock& head = plan_.head;
  std::vector<T>&dx = tape.scratch.dx, &dv = tape.scratch.dv;
  dx.assign((shares_symbols_ ? n : rows) * spec_.width, T(0));
  dv.assign(rows * spec_.value_width, T(0));
  maps_.backward(head.map, rows, head_input(tape), dy.data(), sums.data(), false,
                 (head.reads_values ? dv : dx).data());
  if (head.norm) normalise_backward(*head.norm, rows, tape.decoder_input, dx, tape.scratch, sums);
  if (spec_.spikes()) {
    for (T& d : dx) d /= static_cast<T>(steps());
    repeat_input(samples, dx);
  }
  for (int l = layers_ - 1; l >= 0; --l) {
    Watch::look();
    hint_backward(l, batch, first, samples, tape, dx, sums);
    backward_layer(l, samples * static_cast<int>(steps()), tape, dx, sums);
  }
  backward_input(tape, rows, dx, sums);
  return loss * scale;
}

template <class T>
std::vector<T> BlockNetwork<T>::attention(const BlockTape<T>& tape) const {
  std::vector<T> all;
  for (int l = 0; l < layers_; ++l) {
    const AttentionBlock& block = block_of(l).attention;
    const std::vector<T>& a = per_sample(block) ? tape.layers[l].attention : shared(l);
    const int64_t size = int64_t{1} * block.heads * nodes() * nodes();
    const std::vector<T> of_steps(a.begin(), a.begin() + size * steps());
    std::vector<T> mean;
    sum_steps(1, of_steps, 1 / static_cast<T>(steps()), mean);
    all.insert(all.end(), mean.begin(), mean.end());
  }
  return all;
}

template struct NodeContext<float>;
template struct NodeContext<double>;
template double loss_scale(const ModelSpec&, const BatchOf<float>&, std::span<const uint8_t>);
template double loss_scale(const ModelSpec&, const BatchOf<double>&, std::span<const uint8_t>);
template class BlockNetwork<float>;
template class BlockNetwork<double>;

}  // namespace posattn
