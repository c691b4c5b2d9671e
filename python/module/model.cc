#include "model.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <cstring>

#include "posattn/base/error.h"
#include "posattn/draw.h"
#include "posattn/evaluate.h"
#include "unlocked.h"

namespace posattn::python {
namespace {

constexpr int64_t most_attention = int64_t{1} << 30;  // numbers of all matrices that are returned

// OpenMP's waiting threads do not survive a fork, and the child would never stop waiting for them.
// They end before it; the next call that wants several starts new ones.
[[maybe_unused]] const int before_forks =
    pthread_atfork([] { omp_pause_resource_all(omp_pause_hard); }, nullptr, nullptr);

Model& opened(const std::shared_ptr<Model>& model) {
  if (!model) {
    throw Error(ExitCode::usage, "the model was closed", "one that is open",
                "posattn.load reads it again");
  }
  return *model;
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) names.push_back(tensor.name);
  return names;
}

}  // namespace

struct HeldModel::Samples {
  Floats numbers, pairs;
  Integers tokens, pair_classes;
  SampleForm form;
  Batch batch;
};

HeldModel::HeldModel(Model model) : model_(std::make_shared<Model>(std::move(model))) {}

std::shared_ptr<Model> HeldModel::shared() const {
  opened(model_);
  return model_;
}

void HeldModel::close() {
  {
    const Interruptible unlocked;
    const std::lock_guard lock(mutex_);
    inference_.reset();
  }
  model_.reset();  // who computes with it at this moment has his own pointer
}

HeldModel::Samples HeldModel::samples_of(const Model& model, const py::object& x,
                                         const py::dict& given) const {
  const ModelSpec& spec = model.spec;
  const py::object tokens = given["tokens"];
  Samples samples;
  if (spec.data_columns > 0) {
    samples.numbers = floats_of(x, "x");
    samples.form = form_of_numbers(samples.numbers, spec.data_columns, "x");
  } else if (!x.is_none()) {
    throw Error(ExitCode::usage, "x for a model of tokens alone", "tokens=...");
  }
  if (spec.vocabulary > 0) {
    samples.tokens = integers_of(tokens, "tokens");
    const SampleForm form = form_of_numbers(samples.tokens, 1, "tokens");
    if (spec.data_columns > 0 &&
        (form.samples != samples.form.samples || form.nodes != samples.form.nodes)) {
      throw Error(ExitCode::data, "tokens of shape " + shape_text(samples.tokens),
                  "a token for each node of x, whose shape is " + shape_text(samples.numbers));
    }
    if (spec.data_columns == 0) samples.form = form;
  } else if (!tokens.is_none()) {
    throw Error(ExitCode::usage, "tokens for a model of numbers alone", "x");
  }
  const SampleForm& form = samples.form;
  if (!evaluates_at_length(spec, form.nodes) && !model.origin.variable_length) {
    throw Error(ExitCode::data, "samples of " + std::to_string(form.nodes) + " nodes",
                std::to_string(spec.real_nodes) + ", as the model has");
  }
  samples.batch.samples = form.samples;
  samples.batch.real_nodes = form.nodes;
  if (spec.data_columns > 0) samples.batch.inputs = numbers(samples.numbers);
  if (spec.vocabulary > 0) samples.batch.tokens = numbers(samples.tokens);
  add_pairs(model, given, samples);
  check_batch(spec, samples.batch);
  return samples;
}

void HeldModel::add_pairs(const Model& model, const py::dict& given, Samples& samples) {
  const ModelSpec& spec = model.spec;
  const Task* task = task_of(model.origin);
  // Whether the model reads these; its task's others are left out.
  const auto reads = [&](const char* name, int columns, int of_task) {
    const py::object array = given[name];
    if (columns > 0 && array.is_none()) {
      throw Error(ExitCode::usage, "no " + std::string(name) + " for a model that reads them",
                  std::string(name) + "=[samples, nodes, nodes]");
    }
    if (columns > 0 || array.is_none()) return columns > 0;
    if (of_task > 0) return false;
    throw Error(ExitCode::usage, std::string(name) + " for a model that reads none", "x");
  };
  const auto check = [&](const py::array& array, int columns, const std::string& name) {
    std::vector<int64_t> wanted = {samples.form.nodes, samples.form.nodes};
    if (samples.form.has_samples) wanted.insert(wanted.begin(), samples.form.samples);
    std::vector<int64_t> shape(array.shape(), array.shape() + array.ndim());
    const bool with_columns = shape.size() == wanted.size() + 1 && shape.back() == columns;
    if (with_columns) shape.pop_back();
    if (shape == wanted && (with_columns || columns == 1)) return;
    if (columns > 1) wanted.push_back(columns);
    throw Error(ExitCode::data, name + " of shape " + shape_text(array),
                std::string(py::str(py::tuple(py::cast(wanted)))));
  };
  const TaskShape shape =
      task == nullptr ? TaskShape() : task->shape(std::max(1, model.origin.length));
  if (reads("pairs", spec.pair_columns, shape.pair_columns)) {
    samples.pairs = floats_of(given["pairs"], "pairs");
    check(samples.pairs, spec.pair_columns, "pairs");
    samples.batch.pairs = numbers(samples.pairs);
  }
  if (reads("pair_classes", spec.pair_classes, shape.pair_classes)) {
    samples.pair_classes = integers_of(given["pair_classes"], "pair_classes");
    check(samples.pair_classes, 1, "pair_classes");
    samples.batch.pair_classes = numbers(samples.pair_classes);
  }
}

std::shared_lock<std::shared_mutex> HeldModel::computing() {
  const std::lock_guard turn(turns_);
  return std::shared_lock(weights_);
}

std::shared_ptr<const Inference> HeldModel::inference(const std::shared_ptr<Model>& model,
                                                      int threads) {
  const std::lock_guard lock(mutex_);
  if (!inference_ || (threads > 0 && threads != threads_)) {
    if (threads > 0) threads_ = threads;
    inference_ = std::make_shared<const Inference>(model, threads_);
  }
  const bool lent = !loan_.expired();
  if (lent || lent_) inference_->weights_changed();
  lent_ = lent;
  return inference_;
}

py::array HeldModel::run(const py::object& x, const py::dict& given, int threads) {
  checked_threads(threads);
  const std::shared_ptr<Model> model = shared();
  const Samples samples = samples_of(*model, x, given);
  py::array_t<float> outputs(samples.form.answer_shape(model->spec.output_columns));
  const std::span<float> room(outputs.mutable_data(), static_cast<size_t>(outputs.size()));
  if (samples.batch.samples > 0) {
    const Interruptible unlocked;
    const auto no_change = computing();
    inference(model, threads)->run(samples.batch, room);
  }
  return outputs;
}

py::array HeldModel::attention(const py::object& x, const py::dict& given) {
  const std::shared_ptr<Model> model = shared();
  const ModelSpec& spec = model->spec;
  Samples samples;
  std::vector<float> zeros;
  std::vector<int32_t> nothing;
  if (x.is_none() && py::object(given["tokens"]).is_none()) {
    if (spec.attends_by_data()) {
      throw Error(ExitCode::usage, "attention of this model without an input",
                  "x: its attention depends on data");
    }
    zeros.resize(static_cast<size_t>(spec.real_nodes) * spec.data_columns);
    if (spec.vocabulary > 0) nothing.assign(spec.real_nodes, 0);
    samples.form.nodes = spec.real_nodes;
    samples.batch = {
        .inputs = zeros, .samples = 1, .real_nodes = spec.real_nodes, .tokens = nothing};
  } else {
    samples = samples_of(*model, x, given);
  }
  const Batch& all = samples.batch;
  const int64_t nodes = all.real_nodes + spec.scratch_nodes;
  const int64_t size =
      int64_t{1} * spec.applied_layers(all.real_nodes) * spec.heads * nodes * nodes;
  if (size > most_attention || size * all.samples > most_attention) {
    throw Error(ExitCode::usage,
                "attention of " + std::to_string(all.samples) + " samples, " +
                    std::to_string(size) + " numbers each",
                "at most " + std::to_string(most_attention) + " in all", "ask for fewer samples");
  }
  std::vector<int64_t> shape = {spec.applied_layers(all.real_nodes), spec.heads, nodes, nodes};
  if (samples.form.has_samples) shape.insert(shape.begin(), all.samples);
  py::array_t<float> weights(shape);
  float* to = weights.mutable_data();
  {
    const Interruptible unlocked;
    const auto no_change = computing();
    const std::shared_ptr<const Inference> ours = inference(model);
    const int64_t inputs = int64_t{1} * all.real_nodes * spec.data_columns;
    const int64_t tokens_each = spec.vocabulary > 0 ? all.real_nodes : 0;
    for (int64_t i = 0; i < all.samples; ++i) {
      Watch::look();
      const auto pairs_of = [&](auto values) {
        const auto each = static_cast<int64_t>(values.size()) / all.samples;
        return values.subspan(i * each, each);
      };
      const Batch one{.inputs = all.inputs.subspan(i * inputs, inputs),
                      .samples = 1,
                      .real_nodes = all.real_nodes,
                      .tokens = all.tokens.subspan(i * tokens_each, tokens_each),
                      .pairs = pairs_of(all.pairs),
                      .pair_classes = pairs_of(all.pair_classes)};
      const std::vector<float> of_sample = ours->attention(one);
      std::ranges::copy(of_sample, to + i * size);
    }
  }
  return weights;
}

std::vector<std::pair<std::string, std::vector<int64_t>>> HeldModel::activations(
    const py::object& x, const py::dict& given) const {
  const std::shared_ptr<Model> model = shared();
  const Samples samples = samples_of(*model, x, given);
  std::vector<std::pair<std::string, std::vector<int64_t>>> all;
  for (ActivationPlace& place : activation_places(model->spec, samples.form.nodes)) {
    if (samples.form.has_samples) place.shape.insert(place.shape.begin(), samples.form.samples);
    all.emplace_back(std::move(place.name), std::move(place.shape));
  }
  return all;
}

py::array HeldModel::run_with_hook(const py::object& x, const py::dict& given,
                                   const py::object& hook) {
  const std::shared_ptr<Model> model = shared();
  const Samples samples = samples_of(*model, x, given);
  const int skipped = samples.form.has_samples ? 0 : 1;  // axes that x does not have
  const ActivationHook in_python = [&](const ActivationView& view) {
    const py::gil_scoped_acquire locked;
    std::vector<int64_t> strides;
    for (const int64_t numbers : view.strides) strides.push_back(numbers * int64_t{sizeof(float)});
    const std::vector<int64_t> shape(view.shape.begin() + skipped, view.shape.end());
    strides.erase(strides.begin(), strides.begin() + skipped);
    const py::capsule nobody(view.numbers, [](void*) {});  // the array does not own its numbers
    hook(view.name, py::array_t<float>(shape, strides, view.numbers, nobody));
  };
  std::vector<float> outputs;
  {
    const Interruptible unlocked;
    const auto no_change = computing();
    outputs = posattn::run_with_hook(model->spec, model->parameters, samples.batch, in_python);
  }
  return array_of(samples.form.answer_shape(model->spec.output_columns), std::move(outputs));
}

std::string HeldModel::steps(const py::object& x, const py::dict& given) const {
  const std::shared_ptr<Model> model = shared();
  const Samples samples = samples_of(*model, x, given);
  if (samples.form.has_samples) {
    throw Error(ExitCode::data, std::to_string(samples.form.samples) + " samples", "one, as x[0]");
  }
  return step_page(network_walk(*model, samples.batch));
}

std::pair<double, py::dict> HeldModel::gradient(const py::object& x, const py::object& y,
                                                const py::dict& given, const py::object& mask,
                                                int threads) {
  checked_threads(threads);
  const std::shared_ptr<Model> model = shared();
  const ModelSpec& spec = model->spec;
  Samples samples = samples_of(*model, x, given);
  const bool classes = spec.loss == Loss::cross_entropy;
  Floats targets;
  Integers labels;
  if (classes) {
    labels = integers_of(y, "y");
    samples.batch.labels = numbers(labels);
  } else {
    targets = floats_of(y, "y");
    samples.batch.targets = numbers(targets);
  }
  const py::array& answers = classes ? static_cast<const py::array&>(labels) : targets;
  const SampleForm form = form_of_numbers(answers, classes ? 1 : spec.output_columns, "y");
  if (form.samples != samples.form.samples || form.nodes != samples.form.nodes) {
    throw Error(ExitCode::data, "y of shape " + shape_text(answers),
                std::to_string(samples.form.samples) + " samples of " +
                    std::to_string(samples.form.nodes) + " nodes, as x has");
  }
  if (samples.batch.samples == 0) throw Error(ExitCode::data, "no samples", "at least one");
  std::vector<uint8_t> counts;
  if (!mask.is_none()) {
    const Integers given = integers_of(mask, "mask");
    if (given.size() != int64_t{1} * form.nodes * spec.output_columns) {
      throw Error(ExitCode::data, "mask of shape " + shape_text(given),
                  "[nodes, columns]: 1 where an output counts");
    }
    for (const int32_t value : numbers(given)) counts.push_back(value != 0 ? 1 : 0);
  }
  auto found = std::make_shared<Parameters<float>>(model->parameters.shared_layout());
  double loss = 0;
  {
    const Interruptible unlocked;
    const auto no_change = computing();
    loss = inference(model, threads)->gradient(samples.batch, counts, *found);
  }
  return {loss, gradient_arrays(found)};
}

py::dict HeldModel::shapes() const {
  py::dict shapes;
  for (const TensorInfo& tensor : opened(model_).parameters.layout().tensors()) {
    shapes[py::str(tensor.name)] = py::cast(tensor.shape);
  }
  return shapes;
}

const TensorInfo& HeldModel::tensor(const Model& model, const std::string& name) const {
  const std::vector<TensorInfo>& tensors = model.parameters.layout().tensors();
  const auto found = std::ranges::find(tensors, name, &TensorInfo::name);
  if (found == tensors.end()) {
    const Error error = unknown_name(ExitCode::usage, "parameter", name, names_of(model));
    throw py::key_error(error.problem() + (error.hint().empty() ? "" : "; " + error.hint()));
  }
  return *found;
}

py::array HeldModel::parameter(const std::string& name) {
  const std::shared_ptr<Model> model = shared();
  const TensorInfo& info = tensor(*model, name);
  float* data = model->parameters.slice(info).data();
  if (info.integers) {  // a route is the place of a node, checked when the model was made
    py::array_t<float> array = array_over(info.shape, data, model);
    array.attr("flags").attr("writeable") = false;
    return array;
  }
  std::shared_ptr<const std::shared_ptr<Model>> loan;
  {
    const std::lock_guard lock(mutex_);
    loan = loan_.lock();
    if (!loan) loan_ = loan = std::make_shared<const std::shared_ptr<Model>>(model);
    lent_ = true;  // the array may be written to and dropped before the next call
  }
  return array_over(info.shape, data, std::move(loan));
}

void HeldModel::set_parameter(const std::string& name, const py::object& values) {
  const std::shared_ptr<Model> model = shared();
  const TensorInfo& info = tensor(*model, name);
  if (info.integers) {
    throw Error(ExitCode::usage, "a new value for '" + name + "'",
                "routes as they are: they belong to the program", "compile another program");
  }
  const Floats given = floats_of(values, name);
  const std::vector<int64_t> shape(given.shape(), given.shape() + given.ndim());
  if (shape != info.shape) {
    throw Error(ExitCode::data, name + " of shape " + shape_text(given),
                std::string(py::str(py::tuple(py::cast(info.shape)))));
  }
  // The same value is welcome: who sets all parameters need not know which are trained.
  if (!info.trained && !std::ranges::equal(numbers(given), model->parameters.slice(info))) {
    throw Error(ExitCode::usage, "a new value for '" + name + "'",
                "what it is: this model does not train it");
  }
  const Interruptible unlocked;
  const std::lock_guard turn(turns_);
  const std::lock_guard nobody_computes(weights_);
  // Not std::copy: the array may be the one over these very numbers.
  std::memmove(model->parameters.slice(info).data(), given.data(), info.size * sizeof(float));
  const std::lock_guard lock(mutex_);
  if (inference_) inference_->weights_changed();
}

py::dict gradient_arrays(const std::shared_ptr<Parameters<float>>& gradient) {
  py::dict arrays;
  for (const TensorInfo& tensor : gradient->layout().tensors()) {
    // What is not trained (absent biases, fixed codes) must not move in anybody's optimiser either.
    if (!tensor.trained) std::ranges::fill(gradient->slice(tensor), 0.0F);
    arrays[py::str(tensor.name)] =
        array_over(tensor.shape, gradient->slice(tensor).data(), gradient);
  }
  return arrays;
}

}  // namespace posattn::python
