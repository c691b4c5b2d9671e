#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/evaluation/predict.h"
#include "posattn/model/hooks.h"
#include "posattn/model/network.h"
#include "posattn/report/plot/line_style.h"
#include "posattn/report/steps/walk.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr int most_reads = 16;             // of a row of attention, the strongest
constexpr float smallest_weight = 0.005F;  // less is not worth an arrow

std::string numbered(const char* name, int count, int k) {
  return count == 1 ? name : fmt::format("{} {}", name, k);
}

std::vector<std::pair<int, double>> strongest(std::span<const float> row) {
  std::vector<std::pair<int, double>> reads;
  for (size_t j = 0; j < row.size(); ++j) {
    if (std::abs(row[j]) >= smallest_weight) reads.emplace_back(static_cast<int>(j), row[j]);
  }
  std::ranges::stable_sort(
      reads, [](const auto& a, const auto& b) { return std::abs(a.second) > std::abs(b.second); });
  if (reads.size() > most_reads) reads.resize(most_reads);
  return reads;
}

class NetworkWalk {
 public:
  NetworkWalk(const Model& model, const Batch& sample)
      : spec_(model.spec),
        sample_(sample),
        nodes_(sample.real_nodes + model.spec.scratch_nodes),
        layers_(spec_.applied_layers(sample.real_nodes)) {
    const int64_t columns = 1 + spec_.data_columns + 2 * spec_.output_columns + spec_.width;
    const int64_t reads = int64_t{1} * layers_ * spec_.heads * std::min(nodes_, most_reads);
    check_walk_size(nodes_, nodes_ * ((layers_ + 1) * columns + reads));
    found_ = activations_of(spec_, model.parameters, sample);
    attention_ = Network(spec_).attention(model.parameters, sample);
    answer_ = exact_answer(model, sample, found_.outputs.size());
    if (spec_.loss == Loss::cross_entropy) {
      classes_ = decided_classes(found_.outputs, spec_.output_columns);
    }
  }

  Walk make() const {
    Walk walk;
    walk.node_noun = "node";
    walk.nodes = nodes_;
    walk.scratch_nodes = spec_.scratch_nodes;
    add_columns(walk);
    for (int l = 0; l <= layers_; ++l) {
      WalkStep step;
      step.title = l == 0 ? "start" : fmt::format("after layer {}", l - 1);
      if (l == 0) {
        step.notes = {fmt::format("the encoder makes {} numbers of a node's input", spec_.width)};
      } else {
        step.notes = {"attention mixes the nodes, the MLP makes each node's new numbers"};
        for (int h = 0; h < spec_.heads; ++h) step.readings.push_back(head(l - 1, h));
      }
      for (int i = 0; i < nodes_; ++i) add_values(l, i, step.values);
      walk.steps.push_back(std::move(step));
    }
    const auto add_fact = [&](const char* name, const auto& numbers) {
      const std::vector<double> values(numbers.begin(), numbers.end());
      if (!values.empty()) walk.facts.push_back(fmt::format("{}: {}", name, short_list(values)));
    };
    add_fact("tokens", sample_.tokens);
    add_fact("input", sample_.inputs);
    if (classes_.empty()) add_fact("output", found_.outputs);
    add_fact("classes", classes_);
    add_fact("answer", answer_);
    return walk;
  }

 private:
  // What goes in and comes out first, then what is between.
  void add_columns(Walk& walk) const {
    const auto add_result = [&](const std::string& name) {
      walk.columns.push_back({.name = name, .first_step = layers_, .real_nodes_only = true});
    };
    if (spec_.vocabulary > 0) walk.columns.push_back({.name = "token", .real_nodes_only = true});
    for (int c = 0; c < spec_.data_columns; ++c) {
      walk.columns.push_back({numbered("input", spec_.data_columns, c)});
    }
    if (!classes_.empty()) add_result("class");
    for (int c = 0; c < spec_.output_columns; ++c) {
      add_result(numbered(classes_.empty() ? "output" : "score", spec_.output_columns, c));
      if (!answer_.empty()) add_result(numbered("answer", spec_.output_columns, c));
    }
    for (int c = 0; c < spec_.width; ++c) walk.columns.push_back({fmt::format("x{}", c)});
  }

  void add_values(int layers, int node, std::vector<double>& values) const {
    const bool real = node < sample_.real_nodes;
    const auto add = [&](const auto& numbers, int64_t at) {
      values.push_back(real ? static_cast<double>(numbers[at]) : 0.0);
    };
    if (spec_.vocabulary > 0) add(sample_.tokens, node);
    for (int c = 0; c < spec_.data_columns; ++c) {
      add(sample_.inputs, int64_t{1} * node * spec_.data_columns + c);
    }
    if (!classes_.empty()) add(classes_, node);
    for (int c = 0; c < spec_.output_columns; ++c) {
      const int64_t at = int64_t{1} * node * spec_.output_columns + c;
      add(found_.outputs, at);
      if (!answer_.empty()) add(answer_, at);
    }
    for (int c = 0; c < spec_.width; ++c) values.push_back(found_.state(layers, node, c));
  }

  WalkReading head(int layer, int head) const {
    const std::string name = fmt::format("head {}", head);
    const int style = variant_style(preset_name(spec_), head);
    WalkReading reading{name, style, {name}, {}, {}};
    const int64_t size = int64_t{1} * nodes_ * nodes_;
    const float* matrix = attention_.data() + (int64_t{1} * layer * spec_.heads + head) * size;
    for (int64_t i = 0; i < nodes_; ++i) {
      reading.reads.push_back(strongest({matrix + i * nodes_, static_cast<size_t>(nodes_)}));
    }
    return reading;
  }

  const ModelSpec& spec_;
  const Batch& sample_;
  const int nodes_;
  const int layers_;
  Activations found_;
  std::vector<float> answer_, attention_;
  std::vector<int32_t> classes_;  // of a model of classes
};

}  // namespace

Walk network_walk(const Model& model, const Batch& one_sample) {
  Walk walk = NetworkWalk(model, one_sample).make();
  walk.title = fmt::format("{}, layer by layer",
                           model.origin.task.empty() ? preset_name(model.spec) : model.origin.task);
  walk.facts.push_back(fmt::format("{} layers of {} heads, width {}",
                                   model.spec.applied_layers(one_sample.real_nodes),
                                   model.spec.heads, model.spec.width));
  return walk;
}

}  // namespace posattn
