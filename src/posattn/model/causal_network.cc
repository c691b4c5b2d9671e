#include "posattn/model/causal_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/kernels/generic/normalisation.h"
#include "posattn/kernels/generic/rows.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/blocks/activation.h"
#include "posattn/model/spec/spec_fields.h"

namespace posattn {
namespace {

void add_to(const std::vector<float>& from, std::vector<float>& to) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

// What a layer keeps of a sample. `positions`: scores of positions, or null.
MemoryShape<float> memory_shape(const ModelSpec& spec, const AttentionBlock& block,
                                const float* positions) {
  MemoryShape<float> shape{.heads = block.heads,
                           .head_size = block.head_size,
                           .window = spec.causal ? 0 : spec.real_nodes,
                           .landmarks = block.landmarks,
                           .positions = positions,
                           .nodes = spec.real_nodes};
  if (block.data) {
    shape.key_size = block.data->key_size;
    shape.factor = static_cast<float>(block.data->factor);
  }
  if (block.positions && row_of(block.positions->kind).window) {
    const int64_t reach = block.positions->reach;
    shape.window = spec.causal ? reach : std::min(reach, shape.window);
  }
  return shape;
}

// Why the last nodes are no sample of their own for a model that is not causal; empty where they
// are.
std::string window_refusal(const ModelSpec& spec) {
  const bool indexed = spec.any_layer([](const AttentionChoices& kind) {
    return kind.attention == AttentionSource::data_and_positions ||
           (kind.reads_data() && kind.rotation != Rotation::none);
  });
  if (spec.applied_layers(spec.real_nodes) > 1) return "has nodes that attend to later ones";
  if (spec.scratch_nodes > 0) return "has nodes that attend to later ones, and scratch nodes";
  if (indexed || spec.positions_in_input || spec.positions_added) {
    return "has nodes that attend to later ones, and positions that change as nodes arrive";
  }
  return {};
}

}  // namespace

std::string CausalNetwork::refusal(const ModelSpec& spec) {
  if (spec.routed()) return "reads by routes, from any node";
  if (spec.spikes()) return "fires over time steps, in which it reads the whole sample";
  if (spec.position_range > 0) return "has positions that depend on the whole length";
  if (spec.two_streams()) return "has two streams";
  if (spec.loops == "n" || spec.loops == "log2") return "applies its layers by the whole length";
  if (spec.wrap != Wrap::none || spec.any_layer([](const AttentionChoices& kind) {
        return kind.source_scale == SourceScale::sample;
      })) {
    return "divides by the size of the whole sample";
  }
  if (spec.any_layer([](const AttentionChoices& kind) { return kind.reads_pairs(); })) {
    return "reads pairs of nodes";
  }
  if (spec.any_layer(
          [](const AttentionChoices& kind) { return kind.position_scores() == ScoreBias::log; })) {
    return "has scores that depend on the whole length";
  }
  if (spec.any_layer([](const AttentionChoices& kind) { return kind.score_window != 0; })) {
    return "has a convolution over the scores of all nodes";
  }
  if (!spec.causal) {
    if (std::string reason = window_refusal(spec); !reason.empty()) return reason;
  }
  for (const LayerBlock& layer : plan_of(spec).layers) {
    const AttentionBlock& block = layer.attention;
    const bool products = !block.data || row_of(block.data->scores).in<float>().scores == nullptr;
    if (products && make_memory(block.weighting, memory_shape(spec, block, nullptr))) continue;
    return fmt::format("has attention by '{}', which needs all nodes at once",
                       products ? to_string(block.weighting) : to_string(block.data->scores));
  }
  return {};
}

CausalNetwork::CausalNetwork(const ModelSpec& spec, const Parameters<float>& parameters)
    : spec_(spec), plan_(plan_of(spec_)), parameters_(parameters), maps_(plan_) {
  if (const std::string reason = refusal(spec); !reason.empty()) {
    throw Error(ExitCode::configuration, "this model " + reason,
                "a causal model, or one layer without scratch nodes that reads the last nodes",
                "train with --causal, or with --depth 1 and --scratch-nodes 0");
  }
  maps_.prepare(parameters_);
  if (spec_.uses_positions()) positions_ = positions_of(spec_, parameters_);
  placed_ = spec_.uses_positions() || spec_.any_layer([](const AttentionChoices& kind) {
    return kind.rotation != Rotation::none;
  });
  // Scratch nodes come last: no real node reads them.
  const NodeContext<float> nodes(spec_, parameters_, maps_, spec_.real_nodes);
  const int64_t n = nodes.count(), kept = spec_.real_nodes;
  for (const LayerBlock& layer : plan_.layers) {
    const AttentionBlock& block = layer.attention;
    std::vector<float>& scores = position_scores_.emplace_back();
    if (!block.positions || row_of(block.positions->kind).window) continue;
    placed_ = true;
    std::vector<float> all(block.heads * n * n);
    row_of(block.positions->kind)
        .in<float>()
        .scores(*block.positions, block.heads, nodes, all.data());
    for (int64_t row = 0; row < block.heads * n; ++row) {
      if (row % n < kept) scores.insert(scores.end(), &all[row * n], &all[row * n] + kept);
    }
  }
}

CausalNetwork::Memory CausalNetwork::memory(size_t samples) const {
  Memory memory;
  memory.layers.resize(spec_.applied_layers(spec_.real_nodes));
  for (size_t layer = 0; layer < memory.layers.size(); ++layer) {
    const size_t which = layer % plan_.layers.size();
    const AttentionBlock& block = plan_.layers[which].attention;
    const std::vector<float>& scores = position_scores_[which];
    const MemoryShape<float> shape =
        memory_shape(spec_, block, scores.empty() ? nullptr : scores.data());
    for (size_t s = 0; s < samples; ++s) {
      memory.layers[layer].push_back(make_memory(block.weighting, shape));
    }
  }
  memory.length.assign(samples, 0);
  return memory;
}

std::vector<float> CausalNetwork::with_positions(const std::vector<float>& x, int64_t columns,
                                                 const Rows& rows) const {
  const int64_t p = spec_.encoding_size;
  std::vector<float> joined;
  joined.reserve(rows.size() * (columns + p));
  for (int64_t r = 0; r < rows.size(); ++r) {
    joined.insert(joined.end(), &x[r * columns], &x[r * columns] + columns);
    const float* position = &positions_[rows.places[r] * p];
    joined.insert(joined.end(), position, position + p);
  }
  return joined;
}

std::vector<float> CausalNetwork::embedded(const Rows& rows, std::span<const Nodes> more) const {
  const InputBlock& block = plan_.input;
  const int64_t d = spec_.width;
  std::vector<float> values, x(rows.size() * d);
  std::vector<int32_t> tokens;
  for (const Nodes& nodes : more) {
    values.insert(values.end(), nodes.values.begin(), nodes.values.end());
    tokens.insert(tokens.end(), nodes.tokens.begin(), nodes.tokens.end());
  }
  if (block.values) {
    values.resize(rows.size() * spec_.data_columns);
    if (block.positions_joined) values = with_positions(values, spec_.data_columns, rows);
    maps_.forward(*block.values, rows.size(), values.data(), x.data());
  }
  if (block.tokens != no_tensor) {
    generic::embed(rows.size(), d, tokens.data(), tensor(block.tokens), block.tokens_added,
                   x.data());
  }
  for (int64_t r = 0; block.positions_added && r < rows.size(); ++r) {
    for (int64_t c = 0; c < d; ++c) x[r * d + c] += positions_[rows.places[r] * d + c];
  }
  return x;
}

std::vector<float> CausalNetwork::read(std::span<const Nodes> more, Memory& memory) const {
  const int64_t d = spec_.width;
  Rows rows;
  std::vector<int64_t> last_rows;
  for (size_t s = 0; s < more.size(); ++s) {
    const size_t count =
        spec_.vocabulary > 0 ? more[s].tokens.size() : more[s].values.size() / spec_.data_columns;
    if (memory.length[s] + count > static_cast<size_t>(most_nodes())) {
      throw Error(ExitCode::data, fmt::format("more than {} nodes", most_nodes()),
                  fmt::format("at most {}, the model's nodes", most_nodes()));
    }
    for (size_t k = 0; k < count; ++k) rows.places.push_back(memory.length[s]++);
    rows.counts.push_back(static_cast<int>(count));
    if (count > 0) last_rows.push_back(rows.size() - 1);
  }
  std::vector<float> x = embedded(rows, more);
  for (size_t layer = 0; layer < memory.layers.size(); ++layer) {
    const LayerBlock& block = plan_.layers[layer % plan_.layers.size()];
    const bool before = block.when == Normalisation::before,
               after = block.when == Normalisation::after;
    const std::vector<float> attended = before ? normalised(*block.attention_norm, x) : x;
    std::vector<float> o = attend(static_cast<int>(layer), attended, rows, memory);
    if (block.join == Join::add) {
      add_to(o, x);
      if (after) x = normalised(*block.attention_norm, x);
      add_to(read_mlp(block.mlp, before ? normalised(*block.mlp_norm, x) : x), x);
      if (after) x = normalised(*block.mlp_norm, x);
      continue;
    }
    std::vector<float> joined(2 * x.size());
    for (int64_t r = 0; r < rows.size(); ++r) {
      std::copy_n(&attended[r * d], d, &joined[2 * r * d]);
      std::copy_n(&o[r * d], d, &joined[(2 * r + 1) * d]);
    }
    x = read_mlp(block.mlp, std::move(joined));
    if (after) x = normalised(*block.attention_norm, x);
  }
  std::vector<float> last(last_rows.size() * d);
  for (size_t i = 0; i < last_rows.size(); ++i) {
    std::copy_n(&x[last_rows[i] * d], d, &last[static_cast<int64_t>(i) * d]);
  }
  if (plan_.head.norm) last = normalised(*plan_.head.norm, last);
  return mapped(plan_.head.map, last);
}

// Of the data, as their products make scores.
std::vector<float> CausalNetwork::query_key(const AttentionBlock& block,
                                            const std::vector<float>& attended,
                                            const Rows& rows) const {
  const DataTerm& term = *block.data;
  const int64_t d = spec_.width;
  std::vector<float> source = attended;
  if (term.scale != SourceScale::none) {
    const float norm = std::sqrt(static_cast<float>(d));
    for (int64_t r = 0; r < rows.size(); ++r) generic::to_norm(d, norm, &source[r * d]);
  }
  if (term.positions_joined) source = with_positions(source, d, rows);
  std::vector<float> made = mapped(term.query_key, source);
  if (term.rope) {
    generic::rotate<float>(rows.size(), 2 * block.heads, term.key_size, rows.places, 1,
                           made.data());
  }
  if (const DataRow& row = row_of(term.scores); row.changes_keys) {
    std::vector<float> kept(rows.size() * block.heads * 2 * (row.keeps_each ? term.key_size : 1));
    row.in<float>().prepare(rows.size(), block.heads, term.key_size,
                            term.head_scale == no_tensor ? nullptr : tensor(term.head_scale),
                            made.data(), kept.data());
  }
  return made;
}

std::vector<float> CausalNetwork::attend(int layer, const std::vector<float>& attended,
                                         const Rows& rows, Memory& memory) const {
  const AttentionBlock& block = plan_.layers[layer % plan_.layers.size()].attention;
  const int64_t d = spec_.width, keys = block.data ? block.data->query_key.out : 0;
  const std::vector<float> made =
      block.data ? query_key(block, attended, rows) : std::vector<float>();
  const std::vector<float> value = mapped(block.value, attended);
  std::vector<float> mixed(rows.size() * d);
  int64_t first = 0;  // row of the sample
  for (size_t s = 0; s < rows.counts.size(); ++s) {
    const int64_t count = rows.counts[s];
    if (count == 0) continue;
    memory.layers[layer][s]->read({.count = count,
                                   .query_key = block.data ? &made[first * keys] : nullptr,
                                   .values = &value[first * d],
                                   .mixed = &mixed[first * d]});
    first += count;
  }
  return mapped(block.output, mixed);
}

std::vector<float> CausalNetwork::read_mlp(const MlpBlock& block, std::vector<float> x) const {
  for (size_t i = 0; i < block.maps.size(); ++i) {
    std::vector<float> y = mapped(block.maps[i], x);
    if (i + 1 < block.maps.size()) {
      activate(block.activation, y, x);
    } else {
      x = std::move(y);
    }
  }
  return x;
}

std::vector<float> CausalNetwork::normalised(const NormalisationBlock& block,
                                             const std::vector<float>& x) const {
  std::vector<float> y(x.size());
  generic::layer_norm(static_cast<int64_t>(x.size()) / spec_.width, spec_.width, x.data(),
                      tensor(block.gain), tensor(block.shift), y.data());
  return y;
}

std::vector<float> CausalNetwork::mapped(const LinearBlock& map,
                                         const std::vector<float>& x) const {
  const auto rows = static_cast<int64_t>(x.size()) / map.in;
  std::vector<float> y(rows * map.out);
  maps_.forward(map, rows, x.data(), y.data());
  return y;
}

const float* CausalNetwork::tensor(TensorId id) const {
  return parameters_.slice(parameters_.layout().tensors()[id]).data();
}

}  // namespace posattn
