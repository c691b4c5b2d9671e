// The one list of a run's settings; those of the model are in model/spec/spec_fields.h. For a
// RunConfig or a const RunConfig visit_config calls
//   visit(row, value)           once per field
//   visit(row, value, since)    for one newer than 0.1.0: it is left out of files and keys while it
//                               has the default that it came with (settings_of_files)
// A value is std::string, bool, int64_t or double.
#pragma once

#include <algorithm>
#include <functional>
#include <type_traits>

#include "posattn/base/text.h"
#include "posattn/model/spec/spec_fields.h"
#include "posattn/training/run_config.h"

namespace posattn {

struct FieldRow {
  const char* section;
  std::string name;
  const char* help;
  FieldLimits limits = {};
};

inline std::string replaced(std::string_view name, char from, char to) {
  std::string text(name);
  std::ranges::replace(text, from, to);
  return text;
}

// The model's settings as values of the four kinds: enumerations are text here, with hyphens.
template <class Config, class Visitor>
void visit_model(Config& config, Visitor& visit) {
  visit_settings(config, [&visit](const char* name, auto& field, const auto& origin,
                                  Setting setting) {
    using Field = std::remove_cvref_t<decltype(field)>;
    std::vector<std::string>& choices = setting.limits.choices;
    const auto pass = [&](const auto& shown, const auto& stored) {
      const FieldRow row{"model", setting.name == nullptr ? replaced(name, '_', '-') : setting.name,
                         setting.help, setting.limits};
      auto value = shown(field);
      if constexpr (requires { origin.came_with; }) {
        visit(row, value, Since{origin.version, shown(origin.came_with)});
      } else {
        visit(row, value);
      }
      if constexpr (!std::is_const_v<Config>) field = stored(value);
    };
    if constexpr (std::is_enum_v<Field>) {
      for (const std::string& choice : names_of<Field>()) {
        choices.push_back(replaced(choice, '_', '-'));
      }
      if (std::is_same_v<Field, Encoding>) choices.insert(choices.begin(), "");
      pass([](Field value) { return replaced(to_string(value), '_', '-'); },
           [](const std::string& text) {
             if constexpr (std::is_same_v<Field, Encoding>) {
               if (text.empty()) return Encoding::automatic;
             }
             return from_name<Field>(replaced(text, '-', '_'));
           });
    } else if constexpr (std::is_same_v<Field, int>) {
      pass([](int value) { return int64_t{value}; },
           [](int64_t value) { return static_cast<int>(value); });
    } else if constexpr (std::is_same_v<Field, std::string>) {
      pass(std::identity{}, std::identity{});
    } else if (choices.empty()) {
      pass(std::identity{}, std::identity{});
    } else {
      pass([&](bool value) { return choices[value ? 1 : 0]; },
           [&](const std::string& text) { return text == choices[1]; });
    }
  });
}

template <class Config, class Visitor>
void visit_config(Config& c, Visitor&& visit) {
  constexpr double most_nodes = 65536, most_count = 1e9;
  constexpr double most_seed = largest_seed;
  constexpr double most_value = 1e30;

  const char* section = "run";
  const auto field = [&](const char* name, auto& value, const char* help,
                         const FieldLimits& limits = {}, const auto&... since) {
    visit(FieldRow{section, name, help, limits}, value, since...);
  };
  field("task", c.task, "what to learn; `posattn tasks` lists them");
  field("task-set", c.task_set,
        "parameters of the task, as regions=4 or model=sparse,d=8; `posattn tasks` lists them",
        FieldLimits{}, Since{"0.3.0", std::string()});
  field("architecture", c.architecture, "positional, standard or another preset");
  field("seed", c.seed, "seed of data, batches and initial values", between(0, most_seed));

  section = "model";
  field("length", c.length, "numbers per sample, n", between(1, most_nodes));
  field("variable-length", c.variable_length, "train on lengths 1..n in equal shares");
  field("shortest-length", c.shortest_length,
        "with variable-length: the first of these lengths; 0: the shortest that the task has",
        between(0, most_nodes), Since{"0.3.0", int64_t{0}});
  visit_model(c, visit);

  section = "data";
  field("samples", c.samples, "training samples", between(1, most_count));
  field("validation-samples", c.validation_samples, "validation samples", between(1, most_count));
  field("test-samples", c.test_samples, "test samples per scale", between(1, most_count));
  field("range", c.range, "train on values in [-range, range]", above(0, most_value));
  field("integers", c.integers, "integer values instead of real ones");
  field("data-seed", c.data_seed, "seed of data and batches; -1: the run's seed",
        between(-1, most_seed));
  field("weight-seed", c.weight_seed, "seed of the initial values; -1: the run's seed",
        between(-1, most_seed));
  field("fresh", c.fresh, "new training samples every epoch", FieldLimits{}, Since{"0.2.0", false});

  section = "start";
  field("from", c.from, "start from the weights of this model file, not from random ones",
        FieldLimits{}, Since{"0.2.0", std::string()});
  field("from-hash", c.from_hash, "hash of that file; filled in, and another file is refused",
        FieldLimits{}, Since{"0.2.0", std::string()});
  field("from-noise", c.from_noise, "Gaussian noise on them, as a share of each tensor's rms",
        between(0, most_value), Since{"0.2.0", 0.0});
  field("initial", c.initial, "first values: the paper's, or GPT-2's N(0, 0.02)",
        one_of({"paper", "gpt"}), Since{"0.2.0", std::string("paper")});

  section = "hints";
  field("hints", c.hints,
        "learn after each layer what this program holds then: a program's name or file, or task, "
        "the one of the task's name",
        FieldLimits{}, Since{"0.3.0", std::string()});
  field("hints-hash", c.hints_hash, "hash of its text; filled in, and another text is refused",
        FieldLimits{}, Since{"0.3.0", std::string()});
  field("hint-weight", c.hint_weight,
        "of their loss in the model's gradient; 0: the model's states are only read",
        between(0, most_value), Since{"0.3.0", 1.0});

  section = "training";
  field("epochs", c.epochs, "passes over the training samples", between(1, most_count));
  field("batch", c.batch, "samples per step", between(1, most_count));
  field("lr", c.lr, "learning rate", above(0, most_value));
  field("optimiser", c.optimiser, "update rule", one_of({"adam", "adamw"}));
  field("beta1", c.beta1, "decay of Adam's first moment", between(0, 0.999999999));
  field("beta2", c.beta2, "decay of Adam's second moment", between(0, 0.999999999));
  field("epsilon", c.epsilon, "added to Adam's denominator; 0: nothing, and 0 / 0 = 0",
        between(0, 1));
  field("weight-decay", c.weight_decay, "pull of the weights to zero", between(0, most_value));
  field("decay", c.decay, "what weight decay pulls on: linear leaves biases and tables alone",
        one_of({"all", "linear"}), Since{"0.2.0", std::string("all")});
  field("clip", c.clip, "largest norm of the gradient; 0: off", between(0, most_value));
  field("clip-relative", c.clip_relative,
        "largest norm of the gradient, as a multiple of that of earlier steps; 0: off",
        between(0, most_value), Since{"0.3.0", 0.0});
  field("schedule", c.schedule, "learning rate over time",
        one_of({"plateau", "constant", "warmup-linear"}));
  field("plateau-patience", c.plateau_patience, "epochs without a better loss that are accepted",
        between(0, most_count));
  field("plateau-factor", c.plateau_factor, "the rate is multiplied by it", above(0, 0.999999999));
  field("plateau-threshold", c.plateau_threshold, "share by which a loss must be lower",
        between(0, 1));
  field("plateau-floor", c.plateau_floor, "lowest rate", between(0, most_value));
  field("plateau-epsilon", c.plateau_epsilon, "a smaller change of rate is skipped",
        between(0, most_value));
  field("warmup-steps", c.warmup_steps, "steps from rate 0 to lr (warmup-linear)",
        between(0, most_count));

  section = "evaluation";
  field("validate-every", c.validate_every, "epochs between validations; 0: at the end only",
        between(0, most_count));
  field("test-every", c.test_every, "epochs between tests of all scales; 0: at the end only",
        between(0, most_count));
  field("test-scales", c.test_scales, "test on [-range c, range c] for these c, as 1..10,100");

  field("test-lengths", c.test_lengths,
        "test at these lengths too, as 4,8,16; empty: at the trained one only", FieldLimits{},
        Since{"0.2.0", std::string()});
  field("test-loops", c.test_loops,
        "test with the layers applied so many times too, as 1..16; empty: as trained only",
        FieldLimits{}, Since{"0.3.0", std::string()});
  field("test-mixed-scales", c.test_mixed_scales,
        "test with each number times 10^u too, u in [-x, x], for these x, as 0,0.5,1; empty: not",
        FieldLimits{}, Since{"0.3.0", std::string()});
  field("test-axis", c.test_axis,
        "test along axes of the task too, as share=0.1,0.5 or k=0..3;letters=1", FieldLimits{},
        Since{"0.2.0", std::string()});

  section = "execution";
  field("checkpoint-every", c.checkpoint_every, "seconds between checkpoints; 0: every epoch",
        between(0, most_value));
  field("path", c.path, "engine: the folded algebra, the plain one, or the cheaper",
        one_of({"auto", "plain", "folded"}));
  field("device", c.device, "where to compute; auto: the GPU if there is a usable one",
        one_of({"auto", "cpu", "cuda"}));
  field("precision", c.precision,
        "precision of products on the GPU; auto: tf32, which is faster and rounds more, for models "
        "of numbers; in the fused engines tf32 is fp16 with a power of two for each tile",
        one_of({"auto", "fp32", "tf32"}));
}

// The settings of 0.1.0 and their defaults there, as one JSON object. Never changes: recorded runs
// name only what differs from it.
std::string_view first_settings();

// Every setting at the default that it came with: where reading a recorded run starts from.
RunConfig settings_of_files();

}  // namespace posattn
