// The one list of a run's settings: visit_fields calls
//   visitor.section("data")                        before each group
//   visitor.field("batch", value, "help", limits)  once per field
// for a RunConfig or a const RunConfig. A value is std::string, bool, int64_t or double. A field
// newer than 0.1.0 has one more argument, Since{"0.2.0", default}: it is left out of files and keys
// while at that default (run_config_origin.h).
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "posattn/base/since.h"
#include "posattn/base/text.h"
#include "posattn/training/run_config.h"

namespace posattn {

// What a field accepts by itself; how fields fit together is validate's matter.
struct FieldLimits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;          // least itself is refused
  std::vector<std::string> choices;  // for text; empty: anything
};

inline FieldLimits between(double least, double most) { return {least, most, false, {}}; }
inline FieldLimits above(double least, double most) { return {least, most, true, {}}; }
inline FieldLimits one_of(std::vector<std::string> choices) {
  return {0, 0, false, std::move(choices)};
}

template <class Config, class Visitor>
void visit_fields(Config& c, Visitor&& v) {
  constexpr double most_nodes = 65536, most_size = 65536, most_count = 1e9;
  constexpr double most_seed = largest_seed;
  constexpr double most_value = 1e30;

  v.section("run");
  v.field("task", c.task, "what to learn; `posattn tasks` lists them", FieldLimits{});
  v.field("architecture", c.architecture, "positional, standard or another preset", FieldLimits{});
  v.field("seed", c.seed, "of data, batches and initial values", between(0, most_seed));

  v.section("model");
  v.field("length", c.length, "numbers per sample, n", between(1, most_nodes));
  v.field("variable-length", c.variable_length, "train on lengths 1..n in equal shares",
          FieldLimits{});
  v.field("width", c.width, "features per node", between(1, most_size));
  v.field("heads", c.heads, "attention heads; divides the width", between(1, most_size));
  v.field("depth", c.depth, "layers; 0: floor(log2 n) + 1", between(0, 1000));
  v.field("mlp-width", c.mlp_width, "hidden features of the MLP", between(1, most_size));
  v.field("mlp-depth", c.mlp_depth, "linear maps in the MLP", between(1, 100));
  v.field("scratch-nodes", c.scratch_nodes, "extra nodes with value 0", between(0, most_nodes));
  v.field("encoding", c.encoding, "positional encoding; empty: the preset's",
          one_of({"", "one-hot", "binary", "sinusoidal", "random", "learned"}));
  v.field("encoding-size", c.encoding_size, "columns of the encoding; 0: its default",
          between(0, most_size));
  v.field("causal", c.causal, "a node hears the nodes up to itself only", FieldLimits{},
          Since{"0.2.0", false});
  v.field("split-heads", c.split_heads, "queries and keys of size source / heads, as in GPT",
          FieldLimits{}, Since{"0.2.0", false});
  v.field("join", c.join, "how attention meets x: MLP([x | o]), or x + o and then + MLP",
          one_of({"concatenate", "add"}), Since{"0.2.0", std::string("concatenate")});
  v.field("normalisation", c.normalisation, "LayerNorm before or after each part of a layer",
          one_of({"none", "before", "after"}), Since{"0.2.0", std::string("none")});
  v.field("activation", c.activation, "of the MLP", one_of({"relu", "gelu", "gelu-tanh"}),
          Since{"0.2.0", std::string("relu")});
  v.field("positions", c.positions, "how the input gets positions, where the architecture has them",
          one_of({"joined", "added"}), Since{"0.2.0", std::string("joined")});
  v.field("tied-output", c.tied_output, "the table of tokens is the decoder too", FieldLimits{},
          Since{"0.2.0", false});
  v.field("codes", c.codes, "fixed random codes in place of learned tokens; the output is tied",
          FieldLimits{}, Since{"0.2.0", false});

  v.section("data");
  v.field("samples", c.samples, "training samples", between(1, most_count));
  v.field("validation-samples", c.validation_samples, "validation samples", between(1, most_count));
  v.field("test-samples", c.test_samples, "test samples per scale", between(1, most_count));
  v.field("range", c.range, "train on values in [-range, range]", above(0, most_value));
  v.field("integers", c.integers, "integer values instead of real ones", FieldLimits{});
  v.field("data-seed", c.data_seed, "of data and batches; -1: the run's seed",
          between(-1, most_seed));
  v.field("weight-seed", c.weight_seed, "of the initial values; -1: the run's seed",
          between(-1, most_seed));
  v.field("fresh", c.fresh, "new training samples every epoch", FieldLimits{},
          Since{"0.2.0", false});

  v.section("start");
  v.field("from", c.from, "start from the weights of this model file, not from random ones",
          FieldLimits{}, Since{"0.2.0", std::string()});
  v.field("from-hash", c.from_hash, "of that file; filled in, and another file is refused",
          FieldLimits{}, Since{"0.2.0", std::string()});
  v.field("from-noise", c.from_noise, "Gaussian noise on them, as a share of each tensor's rms",
          between(0, most_value), Since{"0.2.0", 0.0});
  v.field("initial", c.initial, "first values: the paper's, or GPT-2's N(0, 0.02)",
          one_of({"paper", "gpt"}), Since{"0.2.0", std::string("paper")});

  v.section("training");
  v.field("epochs", c.epochs, "passes over the training samples", between(1, most_count));
  v.field("batch", c.batch, "samples per step", between(1, most_count));
  v.field("lr", c.lr, "learning rate", above(0, most_value));
  v.field("optimiser", c.optimiser, "update rule", one_of({"adam", "adamw"}));
  v.field("beta1", c.beta1, "decay of Adam's first moment", between(0, 0.999999999));
  v.field("beta2", c.beta2, "decay of Adam's second moment", between(0, 0.999999999));
  v.field("epsilon", c.epsilon, "added to Adam's denominator", above(0, 1));
  v.field("weight-decay", c.weight_decay, "pull of the weights to zero", between(0, most_value));
  v.field("decay", c.decay, "what weight decay pulls on: linear leaves biases and tables alone",
          one_of({"all", "linear"}), Since{"0.2.0", std::string("all")});
  v.field("clip", c.clip, "largest norm of the gradient; 0: off", between(0, most_value));
  v.field("schedule", c.schedule, "learning rate over time",
          one_of({"plateau", "constant", "warmup-linear"}));
  v.field("plateau-patience", c.plateau_patience, "epochs without a better loss that are accepted",
          between(0, most_count));
  v.field("plateau-factor", c.plateau_factor, "the rate is multiplied by it",
          above(0, 0.999999999));
  v.field("plateau-threshold", c.plateau_threshold, "share by which a loss must be lower",
          between(0, 1));
  v.field("plateau-floor", c.plateau_floor, "lowest rate", between(0, most_value));
  v.field("plateau-epsilon", c.plateau_epsilon, "a smaller change of rate is skipped",
          between(0, most_value));
  v.field("warmup-steps", c.warmup_steps, "steps from rate 0 to lr (warmup-linear)",
          between(0, most_count));

  v.section("evaluation");
  v.field("validate-every", c.validate_every, "epochs between validations; 0: at the end only",
          between(0, most_count));
  v.field("test-every", c.test_every, "epochs between tests of all scales; 0: at the end only",
          between(0, most_count));
  v.field("test-scales", c.test_scales, "test on [-range c, range c] for these c, as 1..10,100",
          FieldLimits{});

  v.field("test-lengths", c.test_lengths,
          "test at these lengths too, as 4,8,16; empty: at the trained one only", FieldLimits{},
          Since{"0.2.0", std::string()});
  v.field("test-axis", c.test_axis,
          "test along axes of the task's own too, as share=0.1,0.5 or k=0..3;letters=1",
          FieldLimits{}, Since{"0.2.0", std::string()});

  v.section("execution");
  v.field("checkpoint-every", c.checkpoint_every, "seconds between checkpoints; 0: every epoch",
          between(0, most_value));
  v.field("path", c.path, "engine: the folded algebra, the plain one, or the cheaper",
          one_of({"auto", "plain", "folded"}));
  v.field("device", c.device, "where to compute; auto: the GPU if there is a usable one",
          one_of({"auto", "cpu", "cuda"}));
  v.field(
      "precision", c.precision,
      "of products on the GPU; tf32 is faster and rounds more, and the fused engines compute it in "
      "half precision with a power of two per tile; auto: tf32 for models of numbers",
      one_of({"auto", "fp32", "tf32"}));
}

}  // namespace posattn
