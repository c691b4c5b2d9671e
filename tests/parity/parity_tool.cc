// Answers the questions of parity_test.py: parity_tool QUESTION.safetensors ANSWER.safetensors.
// One process answers many cases; the kinds of case are the functions below.
#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>

#include "engines.h"
#include "exchange.h"
#include "posattn/model/file/gpt2_weights.h"
#include "posattn/model/file/model_file.h"
#include "posattn/training/optimiser.h"

namespace posattn::parity {
namespace {

using nlohmann::json;

struct Case {
  const Question& question;
  const json& fields;
  std::string name = fields.at("name");

  ModelSpec spec() const {
    ModelSpec spec = spec_from_json(fields.at("spec").dump());
    spec.hint_columns = fields.value("hint_columns", spec.hint_columns);
    return spec;
  }
  const Tensor& tensor(const std::string& of) const { return question.at(name + "/" + of); }
  template <class T>
  Parameters<T> weights() const {
    return question.parameters<T>(spec(), name + "/weights");
  }
};

template <class T>
std::vector<T> converted(std::span<const double> values) {
  return {values.begin(), values.end()};
}

// Batch `step` of inputs [steps, samples, nodes, columns].
template <class T>
Samples<T> batch_of(const Tensor& inputs, const Tensor& targets, int64_t step) {
  const auto part = [&](const Tensor& tensor) {
    const size_t size = tensor.values.size() / tensor.shape[0];
    return converted<T>(std::span(tensor.values).subspan(step * size, size));
  };
  return {part(inputs), part(targets), inputs.shape[1], static_cast<int>(inputs.shape[2])};
}

// All samples of inputs [samples, nodes, columns]; targets may be left out.
template <class T>
Samples<T> samples_of(const Case& c) {
  const Tensor& inputs = c.tensor("inputs");
  Samples<T> result{.inputs = converted<T>(inputs.values),
                    .samples = inputs.shape[0],
                    .real_nodes = static_cast<int>(inputs.shape[1])};
  if (c.question.has(c.name + "/targets")) {
    result.targets = converted<T>(c.tensor("targets").values);
  }
  const auto whole = [&](const char* of) {
    if (!c.question.has(c.name + "/" + of)) return std::vector<int32_t>{};
    return converted<int32_t>(c.tensor(of).values);
  };
  result.tokens = whole("tokens");
  result.labels = whole("labels");
  result.pair_classes = whole("pair_classes");
  if (c.question.has(c.name + "/pairs")) result.pairs = converted<T>(c.tensor("pairs").values);
  if (c.question.has(c.name + "/hints")) result.hints = converted<T>(c.tensor("hints").values);
  result.hint_weight = c.fields.value("hint_weight", 1.0);
  return result;
}

std::vector<int64_t> output_shape(const ModelSpec& spec, int64_t samples, int64_t real_nodes) {
  return {samples, real_nodes, spec.output_columns};
}

// Outputs, attention of the first sample, loss and every gradient, by each engine.
void answer_gradient(const Case& c, Answer& answer) {
  const ModelSpec spec = c.spec();
  std::vector<uint8_t> mask;
  if (c.question.has(c.name + "/mask")) mask = converted<uint8_t>(c.tensor("mask").values);
  for (const std::string engine_name : c.fields.at("engines")) {
    const std::string prefix = c.name + "/" + engine_name + "/";
    with_engine(engine_name, spec, [&](auto engine) {
      using T = typename decltype(engine)::Number;
      const Samples<T> samples = samples_of<T>(c);
      const Parameters<T> weights = c.weights<T>();
      Parameters<T> gradient(weights.shared_layout());
      answer.add(prefix + "outputs", output_shape(spec, samples.samples, samples.real_nodes),
                 engine.forward(weights, samples));
      const int64_t nodes = samples.real_nodes + spec.scratch_nodes;
      answer.add(prefix + "attention",
                 {spec.applied_layers(static_cast<int>(nodes) - spec.scratch_nodes), spec.heads,
                  nodes, nodes},
                 engine.attention(weights, samples));
      const double loss = engine.gradient(weights, samples, mask, gradient);
      answer.add(prefix + "loss", {}, std::vector{loss});
      for (const TensorInfo& info : gradient.layout().tensors()) {
        if (!info.trained) continue;
        answer.add(prefix + "gradient/" + info.name, info.shape, gradient.slice(info));
      }
    });
  }
}

OptimiserOptions optimiser_options(const json& fields) {
  OptimiserOptions options;
  options.kind = optimiser_kind_from(fields.at("kind").get<std::string>());
  options.beta2 = fields.value("beta2", options.beta2);
  options.epsilon = fields.value("epsilon", options.epsilon);
  options.weight_decay = fields.value("weight_decay", options.weight_decay);
  return options;
}

template <class T>
void take_step(const json& fields, double lr, Parameters<T>& gradient, OptimiserState<T>& state,
               Parameters<T>& weights) {
  if (fields.contains("clip")) clip_gradient(fields.at("clip").get<double>(), gradient);
  optimiser_step(optimiser_options(fields), lr, gradient, state, weights);
}

// The loss of every training step, and the outputs on the first batch after the last.
void answer_steps(const Case& c, Answer& answer) {
  const ModelSpec spec = c.spec();
  const Tensor &inputs = c.tensor("inputs"), &targets = c.tensor("targets");
  for (const std::string engine_name : c.fields.at("engines")) {
    with_engine(engine_name, spec, [&](auto engine) {
      using T = typename decltype(engine)::Number;
      Parameters<T> weights = c.weights<T>();
      Parameters<T> gradient(weights.shared_layout());
      OptimiserState<T> state(weights.shared_layout());
      std::vector<double> losses;
      for (int64_t step = 0; step < inputs.shape[0]; ++step) {
        const Samples<T> batch = batch_of<T>(inputs, targets, step);
        losses.push_back(engine.gradient(weights, batch, {}, gradient));
        take_step(c.fields.at("options"), c.fields.at("lr"), gradient, state, weights);
      }
      const Samples<T> first = batch_of<T>(inputs, targets, 0);
      const std::string prefix = c.name + "/" + engine_name + "/";
      answer.add(prefix + "losses", {inputs.shape[0]}, losses);
      answer.add(prefix + "outputs", output_shape(spec, first.samples, first.real_nodes),
                 engine.forward(weights, first));
    });
  }
}

// The weights after every step of an optimiser that is fed the given gradients.
template <class T>
void answer_optimiser(const Case& c, const std::string& precision, Answer& answer) {
  const Tensor& rates = c.tensor("rates");
  const auto steps = static_cast<int64_t>(rates.values.size());
  Parameters<T> weights = c.weights<T>();
  Parameters<T> gradient(weights.shared_layout());
  OptimiserState<T> state(weights.shared_layout());
  std::map<std::string, std::vector<double>> trajectory;
  for (int64_t step = 0; step < steps; ++step) {
    for (const TensorInfo& info : gradient.layout().tensors()) {
      if (!info.trained) continue;
      const Tensor& all = c.tensor("gradients/" + info.name);
      const auto values = std::span(all.values).subspan(step * info.size, info.size);
      std::copy(values.begin(), values.end(), gradient.slice(info).begin());
    }
    take_step(c.fields.at("options"), rates.values[step], gradient, state, weights);
    for (const TensorInfo& info : weights.layout().tensors()) {
      const auto values = weights.slice(info);
      auto& all = trajectory[info.name];
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  for (const TensorInfo& info : weights.layout().tensors()) {
    std::vector<int64_t> shape = info.shape;
    shape.insert(shape.begin(), steps);
    answer.add(c.name + "/" + precision + "/" + info.name, shape, trajectory[info.name]);
  }
}

// The rate of every epoch (one step each), given the loss of each.
void answer_schedule(const Case& c, Answer& answer) {
  const json& fields = c.fields.at("options");
  ScheduleOptions options;
  options.kind = schedule_kind_from(fields.at("kind").get<std::string>());
  options.lr = fields.at("lr");
  options.patience = fields.value("patience", options.patience);
  options.floor = fields.value("floor", options.floor);
  options.warmup_steps = fields.value("warmup_steps", options.warmup_steps);
  options.total_steps = fields.value("total_steps", options.total_steps);
  ScheduleState state = initial_schedule(options);
  std::vector<double> rates;
  for (const double loss : c.tensor("losses").values) {
    rates.push_back(learning_rate(options, state, static_cast<int64_t>(rates.size())));
    after_epoch(options, loss, state);
  }
  answer.add(c.name + "/rates", {static_cast<int64_t>(rates.size())}, rates);
}

void answer_outputs(const Case& c, const Model& model, Answer& answer) {
  const Samples<float> samples = samples_of<float>(c);
  FloatEngine engine(model.spec, Path::automatic);
  answer.add(c.name + "/outputs", output_shape(model.spec, samples.samples, samples.real_nodes),
             engine.forward(model.parameters, samples));
}

// Outputs, loss and every gradient of a GPT-2 in a folder, by public name.
void answer_gpt2(const Case& c, Answer& answer) {
  const std::filesystem::path folder = c.fields.at("path").get<std::string>();
  const Tensor &tokens = c.tensor("tokens"), &labels = c.tensor("labels");
  const auto length = static_cast<int>(tokens.shape[1]);
  const ModelSpec spec = gpt2_spec(read_gpt2_config(folder), length);
  const Parameters<float> read = read_gpt2_parameters(folder, spec);
  for (const std::string engine_name : c.fields.at("engines")) {
    const std::string prefix = c.name + "/" + engine_name + "/";
    with_engine(engine_name, spec, [&](auto engine) {
      using T = typename decltype(engine)::Number;
      Parameters<T> weights(spec), gradient(spec);
      std::ranges::copy(read.values(), weights.values().begin());
      const Samples<T> samples{.samples = tokens.shape[0],
                               .real_nodes = length,
                               .tokens = converted<int32_t>(tokens.values),
                               .labels = converted<int32_t>(labels.values)};
      answer.add(prefix + "outputs", output_shape(spec, samples.samples, length),
                 engine.forward(weights, samples));
      answer.add(prefix + "loss", {}, std::vector{engine.gradient(weights, samples, {}, gradient)});
      for (const auto& [name, tensor] : gpt2_tensors(spec, gradient)) {
        answer.add(prefix + "gradient/" + name, tensor.shape, tensor.values);
      }
    });
  }
}

void answer_case(const Case& c, Answer& answer) {
  const std::string kind = c.fields.at("kind");
  if (kind == "gradient") {
    answer_gradient(c, answer);
  } else if (kind == "gpt2") {
    answer_gpt2(c, answer);
  } else if (kind == "steps") {
    answer_steps(c, answer);
  } else if (kind == "optimiser") {
    answer_optimiser<double>(c, "double", answer);
    answer_optimiser<float>(c, "float", answer);
  } else if (kind == "schedule") {
    answer_schedule(c, answer);
  } else if (kind == "save") {
    const Model model{c.spec(), c.weights<float>(), {}};
    save_model(c.fields.at("path").get<std::string>(), model);
    answer_outputs(c, model, answer);
  } else if (kind == "load") {
    answer_outputs(c, load_model(c.fields.at("path").get<std::string>()), answer);
  } else {
    throw std::runtime_error("unknown kind " + kind);
  }
}

}  // namespace
}  // namespace posattn::parity

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: parity_tool QUESTION.safetensors ANSWER.safetensors\n";
    return 2;
  }
  std::string current = "the question";
  try {
    const posattn::parity::Question question(argv[1]);
    posattn::parity::Answer answer;
    for (const auto& fields : question.cases()) {
      const posattn::parity::Case one{question, fields};
      current = one.name;
      posattn::parity::answer_case(one, answer);
    }
    answer.write(argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "parity_tool: " << current << ": " << error.what() << "\n";
    return 1;
  }
}
