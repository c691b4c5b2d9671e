#include "posattn/simulation/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/evaluate.h"
#include "posattn/evaluation/predict.h"
#include "posattn/simulation/choices.h"
#include "posattn/simulation/error_bound.h"
#include "posattn/tasks/task.h"

namespace posattn::simulation {
namespace {

constexpr double headroom = 0.75;         // of the tolerance: choices are made on other inputs
constexpr double share_of_folding = 0.3;  // of that, for terms of scores and values left out

// Numbers of linear maps that are not zero; routes are not among them.
int64_t count_weights(const Model& model) {
  int64_t count = 0;
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    if (!tensor.trained) continue;
    count += std::ranges::count_if(model.parameters.slice(tensor), [](float w) { return w != 0; });
  }
  return count;
}

const Task& task_in(const Model& model, const std::string& name) {
  if (model.origin.task.empty()) {
    throw Error(ExitCode::data, fmt::format("'{}' does not say which task it was trained on", name),
                "a task", "add --task NAME ('posattn tasks' lists them)");
  }
  const Task& task = task_of(model.origin, name);
  check_shapes(model, task);
  return task;
}

// The same model for samples of one length. Throws Error as check_test_length.
Model at_one_length(Model model, const Task& task, std::optional<int> length) {
  const TrainedLengths trained{length_of(model), model.origin.variable_length};
  model.origin.length = length.value_or(trained.longest);
  check_test_length(model.spec, task, trained, model.origin.length);
  const int nodes = task.shape(model.origin.length).real_nodes;
  if (!trained.and_below || nodes > model.spec.real_nodes) {
    model.spec = at_length(model.spec, nodes).value_or(model.spec);
  }
  return model;
}

// Share of the classes that count.
double right_share(std::span<const int32_t> decided, std::span<const int32_t> labels) {
  int64_t right = 0, all = 0;
  for (size_t k = 0; k < labels.size(); ++k) {
    all += labels[k] >= 0 ? 1 : 0;
    right += labels[k] >= 0 && decided[k] == labels[k] ? 1 : 0;
  }
  return all > 0 ? static_cast<double>(right) / static_cast<double>(all) : 1;
}

class Simulator {
 public:
  Simulator(const Model& model, const std::string& name, const SimulationOptions& options)
      : options_(options),
        task_(&task_in(model, name)),
        model_(at_one_length(model, *task_, options.length)),
        network_(read_standard(model_, name, task_->shape(model_.origin.length).real_nodes)) {
    plan_ = {network_.nodes,
             options.copies.value_or(network_.rotated ? 1 : default_copies(network_.nodes)),
             network_.causal, network_.rotated};
    require_nodes(plan_);
    values_ = training_range(model.origin.range * options.scale, model.origin.integers);
    calibration_ = calibrate(network_, samples(values_, Purpose::train_data));
    held_out_.inputs = samples(values_, Purpose::validation_data);
    held_out_.expected = original_outputs(network_, held_out_.inputs);
    held_out_.threads = options.threads;
    if (!(standard_deviation(held_out_.expected) > 0)) {
      throw Error(ExitCode::configuration, fmt::format("the outputs of {} are all the same", name),
                  "a trained model: errors are measured by how much its outputs vary");
    }
  }

  Simulation run() {
    // A table of K pieces has an error of about K^-2.
    const double target = options_.table_size ? 1.0 / *options_.table_size / *options_.table_size
                                              : headroom * options_.tolerance;
    layers_ = fold_to(share_of_folding * target, network_, calibration_, plan_, held_out_);
    const TableChooser chooser(network_, layers_, calibration_, plan_);
    chosen_ =
        options_.table_size ? chooser.of_size(*options_.table_size) : chooser.to(target, held_out_);
    Simulation result{.model = construct(network_, layers_, chosen_.tables, plan_, model_),
                      .plan = plan_,
                      .classes = task_->loss() == Loss::cross_entropy,
                      .layers = described(),
                      .check = {},
                      .scale_checks = {}};
    result.model.origin.variable_length = false;
    result.model.origin.notes = {
        {"compiled", "routes"},
        {"simulates", fmt::format("a standard Transformer of {} nodes and {} layers",
                                  network_.nodes, network_.layers.size())}};
    result.check = check(result.model, samples(values_, Purpose::test_data));
    for (const double c : options_.scales) {
      const ValueRange range = test_range(model_.origin.range, c, model_.origin.integers);
      result.scale_checks.push_back(
          check(result.model, samples(range, Purpose::evaluation_data, c)));
    }
    result.bound =
        error_bound(network_, layers_, chosen_.tables, plan_, calibration_, options_.threads) /
        result.check.deviation;
    result.nonzero_weights = count_weights(result.model);
    return result;
  }

 private:
  Dataset samples(const ValueRange& range, Purpose purpose, double scale = 1) const {
    return make_dataset({.task = task_,
                         .length = model_.origin.length,
                         .samples = options_.samples,
                         .range = range,
                         .seed = options_.seed,
                         .purpose = purpose,
                         .scale = scale,
                         .threads = options_.threads});
  }

  std::vector<SimulatedLayer> described() const {
    std::vector<SimulatedLayer> result;
    for (size_t l = 0; l < layers_.size(); ++l) {
      const StandardLayer& original = network_.layers[l];
      const int heads = network_.heads();
      result.push_back({.products = layers_[l].product_count(),
                        .channels = layers_[l].channel_count(),
                        .full_products = heads * original.heads[0].query.weight.rows,
                        .full_channels = heads * original.heads[0].value.weight.rows,
                        .pieces = chosen_.sizes[l],
                        .units = units_of(layers_[l], chosen_.sizes[l], plan_)});
    }
    return result;
  }

  SimulationCheck check(const Model& copy, const Dataset& inputs) const {
    const auto read = [&](std::vector<float> all) {
      return read_outputs(copy.spec, std::move(all), network_.real_nodes);
    };
    const auto outputs = [&](const Model& of) {
      return read(predict(of,
                          {.inputs = inputs.inputs,
                           .samples = inputs.samples,
                           .real_nodes = network_.real_nodes,
                           .tokens = inputs.tokens},
                          options_.threads));
    };
    const std::vector<float> in_float = outputs(model_), copied_in_float = outputs(copy);
    const std::vector<double> original(in_float.begin(), in_float.end()),
        copied(copied_in_float.begin(), copied_in_float.end());
    double largest = 0;
    for (size_t k = 0; k < original.size(); ++k) {
      largest = std::max(largest, std::abs(copied[k] - original[k]));
    }
    const std::vector<double> frozen =
        original_outputs(network_, inputs, &calibration_.mean_attention);
    const double deviation = standard_deviation(original);
    SimulationCheck result{
        .deviation = deviation,
        .error = relative_error(copied, original),
        .largest = largest / deviation,
        .control = relative_error(frozen, original),
        .outside = copy_outputs(network_, layers_, chosen_.tables, plan_, inputs, options_.threads)
                       .outside,
        .answers = {}};
    if (inputs.labels.empty()) {
      const std::vector<float> targets = read({inputs.targets.begin(), inputs.targets.end()});
      result.answers = {mean_square(original, targets), mean_square(copied, targets)};
      return result;
    }
    const int classes = copy.spec.output_columns;
    const std::vector<int32_t> decided = decided_classes(in_float, classes),
                               by_copy = decided_classes(copied_in_float, classes);
    const std::vector<int32_t> labels = read_labels(inputs);
    result.answers = {right_share(decided, labels), right_share(by_copy, labels)};
    result.same_class = right_share(by_copy, decided);
    return result;
  }

  // Of the nodes whose outputs count.
  std::vector<int32_t> read_labels(const Dataset& inputs) const {
    std::vector<int32_t> labels;
    for (int64_t s = 0; s < inputs.samples; ++s) {
      const auto first = inputs.labels.begin() + s * network_.real_nodes + network_.first_read;
      labels.insert(labels.end(), first, first + network_.nodes_read);
    }
    return labels;
  }

  const SimulationOptions& options_;
  const Task* task_;
  const Model model_;  // at one length
  StandardNetwork network_;
  KeyPlan plan_;
  ValueRange values_;
  Calibration calibration_;
  HeldOut held_out_;
  std::vector<FoldedLayer> layers_;
  ChosenTables chosen_;
};

}  // namespace

int default_copies(int nodes) { return static_cast<int>(std::lround(std::sqrt(nodes))); }

Simulation simulate_standard(const Model& model, const std::string& name,
                             const SimulationOptions& options) {
  return Simulator(model, name, options).run();
}

}  // namespace posattn::simulation
