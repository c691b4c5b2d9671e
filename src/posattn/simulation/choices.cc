#include "posattn/simulation/choices.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"

namespace posattn::simulation {
namespace {

double error_of(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                const HeldOut& held_out) {
  return relative_error(folded_outputs(network, layers, held_out.inputs, held_out.threads),
                        held_out.expected);
}

// The first inputs, for choices that are checked with all of them later.
HeldOut some_of(const HeldOut& all) {
  constexpr int64_t most = 300;
  HeldOut some = all;
  some.inputs.samples = std::min(most, all.inputs.samples);
  some.expected.resize(all.expected.size() / all.inputs.samples * some.inputs.samples);
  return some;
}

}  // namespace

void require_nodes(const KeyPlan& plan) {
  if (plan.copies < 1 || plan.copies > plan.nodes) {
    throw Error(ExitCode::configuration, fmt::format("{} copies of each node", plan.copies),
                fmt::format("1 to N = {}, as many as it has keys", plan.nodes));
  }
  if (plan.rotated && plan.copies > 1) {
    throw Error(ExitCode::configuration,
                fmt::format("{} copies of each node of a model with RoPE", plan.copies),
                "one: then all nodes read a key at the same distance, which RoPE rotates by",
                "--copies 1");
  }
  if (plan.all_nodes() <= most_nodes) return;
  throw Error(ExitCode::configuration,
              fmt::format("a copy of {} nodes: N k + 1 for the original's N = {} and k = {} copies",
                          plan.all_nodes(), plan.nodes, plan.copies),
              fmt::format("up to {}", most_nodes), "fewer --copies");
}

void require_hidden_units(int units) {
  if (units <= most_hidden_units) return;
  throw Error(
      ExitCode::configuration,
      fmt::format("a copy of {} hidden units: 2 R K for R products of scores and (H + V) K "
                  "for H heads and V channels of values, in tables of K pieces, and those that "
                  "carry words",
                  units),
      fmt::format("up to {}", most_hidden_units), "a larger --tolerance or a smaller --table-size");
}

std::vector<FoldedLayer> fold_to(double error, const StandardNetwork& network,
                                 const Calibration& calibration, const KeyPlan& plan,
                                 const HeldOut& held_out) {
  const HeldOut some = some_of(held_out);
  const size_t depth = network.layers.size();
  std::vector<Folding> foldings;
  std::vector<FoldedLayer> whole;
  for (size_t l = 0; l < depth; ++l) {
    foldings.emplace_back(network.layers[l], calibration.words[l], l == 0, network.place_words(),
                          plan);
    whole.push_back(foldings[l].without({}));
  }
  // The most that can be left out of one part alone, for its share of the error. Errors of parts
  // are independent, so that their squares add up.
  const double allowed = error / std::sqrt(2.0 * static_cast<double>(depth));
  std::vector<LeftOut> left_out(depth);
  for (size_t l = 0; l < depth; ++l) {
    for (double LeftOut::*part : {&LeftOut::scores, &LeftOut::values}) {
      LeftOut tried;
      for (tried.*part = 0.25; tried.*part > 1e-9; tried.*part /= 2) {
        std::vector<FoldedLayer> layers = whole;
        layers[l] = foldings[l].without(tried);
        if (error_of(network, layers, some) <= allowed) break;
      }
      left_out[l].*part = tried.*part;
    }
  }
  for (int attempt = 0; attempt < 30; ++attempt) {
    std::vector<FoldedLayer> layers;
    for (size_t l = 0; l < depth; ++l) layers.push_back(foldings[l].without(left_out[l]));
    if (error_of(network, layers, held_out) <= error) return layers;
    for (LeftOut& each : left_out) each = {each.scores / 2, each.values / 2};
  }
  return whole;  // calibration has not seen what these inputs need
}

TableChooser::TableChooser(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                           const Calibration& calibration, const KeyPlan& plan)
    : network_(network), layers_(layers), plan_(plan) {
  for (size_t l = 0; l < layers.size(); ++l) {
    arguments_.push_back(arguments_of(layers[l], calibration.words[l], plan));
  }
}

ChosenTables TableChooser::with(std::vector<TableSizes> sizes) const {
  ChosenTables result{std::move(sizes), {}};
  for (size_t l = 0; l < layers_.size(); ++l) {
    require_hidden_units(units_of(layers_[l], result.sizes[l], plan_).most());
    result.tables.push_back(make_tables(layers_[l], arguments_[l], result.sizes[l]));
  }
  return result;
}

ChosenTables TableChooser::of_size(int pieces) const {
  TableSizes same;
  same.fill(pieces);
  return with(std::vector<TableSizes>(layers_.size(), same));
}

ChosenTables TableChooser::to(double error, const HeldOut& held_out) const {
  TableSizes fewest;
  fewest.fill(fewest_pieces);
  int units = 0;
  for (size_t l = 0; l < layers_.size(); ++l) {
    units = std::max(units, units_of(layers_[l], fewest, plan_).most());
  }
  while (true) {
    std::vector<TableSizes> sizes;
    for (size_t l = 0; l < layers_.size(); ++l) {
      sizes.push_back(sizes_for(layers_[l], units, plan_));
    }
    ChosenTables chosen = with(std::move(sizes));
    const CopyOutputs copy =
        copy_outputs(network_, layers_, chosen.tables, plan_, held_out.inputs, held_out.threads);
    const double found = relative_error(copy.values, held_out.expected);
    if (found <= error) return chosen;
    // Errors fall with the square of the number of units.
    const double factor = std::isfinite(found) ? std::sqrt(found / error) : 2;
    units = static_cast<int>(units * std::clamp(factor, 1.05, 2.0)) + 1;
  }
}

}  // namespace posattn::simulation
