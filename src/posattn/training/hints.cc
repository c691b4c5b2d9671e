#include "posattn/training/hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "posattn/base/hash.h"
#include "posattn/base/parallel.h"
#include "posattn/evaluation/measure.h"
#include "posattn/model/hooks.h"
#include "posattn/model/spec/scale_wrap.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/programs/language/language.h"

namespace posattn {
namespace {

Error unsuitable(const RunConfig& config, const std::string& what, const std::string& expected) {
  return Error(ExitCode::configuration, fmt::format("hints = '{}': {}", config.hints, what),
               expected, "posattn programs lists those of the library");
}

StaticProgram hint_program(const RunConfig& config, const LibraryProgram& text) {
  return compile_text(text.text, text.file, static_cast<int>(config.length));
}

LibraryProgram hint_text(const RunConfig& config) {
  LibraryProgram text = find_program(config.hints);
  const std::string hash = fmt::format("{:016x}", hash_of(text.text));
  if (!config.hints_hash.empty() && config.hints_hash != hash) {
    throw Error(ExitCode::configuration,
                fmt::format("hints = '{}' has the hash {}", config.hints, hash),
                fmt::format("hints-hash = {}: the text is another than it was", config.hints_hash));
  }
  return text;
}

// A sample at any scale must be an input that the program takes.
void check_inputs(const RunConfig& config, const StaticProgram& program) {
  const TaskShape shape = task_of(config).shape(static_cast<int>(config.length));
  if (program.processors != shape.real_nodes ||
      static_cast<int>(program.inputs.size()) != shape.data_columns) {
    throw unsuitable(
        config,
        fmt::format("{} processors with {} inputs", program.processors, program.inputs.size()),
        fmt::format("{} with {}, the nodes and numbers of task {} at length {}", shape.real_nodes,
                    shape.data_columns, config.task, config.length));
  }
  const bool any_numbers =
      program.promises.empty() && std::ranges::all_of(program.inputs, [&](int word) {
        return program.words[word].type.is_real();
      });
  const bool exact = std::ranges::none_of(program.rounds, [](const Round& round) {
    return std::ranges::any_of(round.instructions, [](const Instruction& instruction) {
      return instruction.kind == Operator::Kind::curve;
    });
  });
  if (!any_numbers || !exact) {
    throw unsuitable(config, "it does not take all real numbers",
                     "a program of real inputs without promises and approximations");
  }
}

}  // namespace

void take_hints(RunConfig& config) {
  if (config.hints.empty()) return;
  if (config.hints == "task") config.hints = config.task;
  const LibraryProgram text = hint_text(config);
  config.hints_hash = fmt::format("{:016x}", hash_of(text.text));
  if (config.depth == 0 && config.from.empty()) {
    config.depth = static_cast<int>(hint_program(config, text).rounds.size());
  }
}

Hints::Hints(const RunConfig& config) : program_(hint_program(config, hint_text(config))) {
  check_inputs(config, program_);
  const auto rounds = static_cast<int64_t>(program_.rounds.size());
  const int64_t depth = model_spec(config).depth;
  const std::vector<std::vector<bool>> live = live_words(program_);
  for (int64_t layer = 1; layer <= depth; ++layer) {
    Labels labels{.round = (layer * rounds + depth - 1) / depth, .words = {}};
    for (size_t word = 0; word < program_.words.size(); ++word) {
      const bool own = program_.words[word].name.find(' ') == std::string::npos;
      if (own && live[labels.round][word]) labels.words.push_back(static_cast<int>(word));
    }
    if (labels.words.empty()) {
      throw unsuitable(config, fmt::format("after round {} it needs no word", labels.round),
                       "a program whose words lead to its output");
    }
    columns_.push_back(static_cast<int>(labels.words.size()));
    layers_.push_back(std::move(labels));
  }
}

void Hints::add_labels(Dataset& set, int threads) const {
  const int64_t inputs = set.shape.input_count(), nodes = program_.processors;
  const int64_t words = static_cast<int64_t>(program_.words.size());
  const int64_t of_sample = nodes * std::accumulate(columns_.begin(), columns_.end(), int64_t{0});
  set.hints.resize(set.samples * of_sample);
  parallel_for(set.samples, threads, [&](int64_t sample) {
    const float* x = set.inputs.data() + sample * inputs;
    const std::vector<double> trace = trace_static(program_, std::vector<double>(x, x + inputs));
    float* next = set.hints.data() + sample * of_sample;
    for (const auto& [round, labels] : layers_) {
      for (int64_t node = 0; node < nodes; ++node) {
        for (const int word : labels) {
          *next++ = static_cast<float>(trace[(round * nodes + node) * words + word]);
        }
      }
    }
  });
}

double Hints::error(const ModelSpec& spec, const Parameters<float>& parameters,
                    const Dataset& set) const {
  constexpr int64_t at_once = 100;
  MetricSum sum;
  const int64_t of_sample = static_cast<int64_t>(set.hints.size()) / set.samples;
  for (int64_t first = 0; first < set.samples; first += at_once) {
    const Batch batch = batch_of(set, first, std::min(at_once, set.samples - first));
    const ScaledBatch<float> scaled(spec, batch);
    size_t layer = 0;
    int64_t before = 0;  // labels of a sample in earlier layers
    run_with_hook(spec, parameters, batch, [&](const ActivationView& view) {
      if (!view.name.ends_with(".state")) return;
      const auto weight = parameters[names::weight(names::hint(static_cast<int>(layer)))];
      const auto bias = parameters[names::bias(names::hint(static_cast<int>(layer)))];
      const int columns = columns_[layer++];
      for (int64_t s = 0; s < batch.samples; ++s) {
        const float* label = set.hints.data() + (first + s) * of_sample + before;
        for (int node = 0; node < batch.real_nodes; ++node) {
          const float* x = view.numbers + s * view.strides[0] + node * view.strides[1];
          for (int column = 0; column < columns; ++column) {
            double y = bias[column];
            for (int i = 0; i < spec.width; ++i) {
              y += double{x[i]} * weight[column * spec.width + i];
            }
            const double error = scaled.batch().unit(s) * y - *label++;
            sum += {error * error, 1};
          }
        }
      }
      before += int64_t{batch.real_nodes} * columns;
    });
  }
  return sum.mean();
}

ModelSpec training_spec(const RunConfig& config) {
  ModelSpec spec = model_spec(config);
  if (!config.hints.empty()) spec.hint_columns = Hints(config).columns();
  return spec;
}

}  // namespace posattn
