// posattn matrix
#include <cmath>

#include "posattn/base/text.h"
#include "posattn/bounds/value_matrix.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/evaluation/predict.h"

namespace posattn {
namespace {

using bounds::MatrixShare;
using bounds::ValueMatrix;

struct MatrixFlags {
  std::string model, input, pairs;
  bool round = false, all = false, json = false;
  double range = 0, confidence = 0.99;
  int64_t samples = 0;
  uint64_t seed = 0;
  int threads = 0;
  ModelHints hints;
};

// One row of the input, and what the model does with it.
struct GivenSample {
  ValueMatrix matrix;
  std::vector<float> answer;
  std::vector<double> rounded;
};

std::vector<GivenSample> given_matrices(const Model& model, const MatrixFlags& flags) {
  const ReadSamples read = given_samples(flags.input, flags.pairs, model, flags.model);
  const Batch all = batch_of(read, model);
  std::vector<GivenSample> samples;
  for (int64_t s = 0; s < all.samples; ++s) {
    const auto part = [&](const auto& numbers) {
      const size_t each = numbers.size() / all.samples;
      return numbers.subspan(s * each, each);
    };
    const Batch one{.inputs = part(all.inputs),
                    .samples = 1,
                    .real_nodes = all.real_nodes,
                    .tokens = part(all.tokens),
                    .pairs = part(all.pairs),
                    .pair_classes = part(all.pair_classes)};
    GivenSample sample{.matrix = bounds::value_matrix(model, one), .answer = {}, .rounded = {}};
    sample.answer = read_outputs(model.spec, predict(model, one, 1), one.real_nodes);
    sample.rounded = bounds::rounded_answer(sample.matrix, one);
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::string matrix_text(const GivenSample& sample, double range) {
  const ValueMatrix& matrix = sample.matrix;
  std::vector<std::string> header = {"output"};
  for (const int input : matrix.inputs) header.push_back(fmt::format("x{}", input));
  TextTable table(header);
  for (int64_t row = 0; row < matrix.rows(); ++row) {
    std::vector<std::string> cells = {fmt::format("y{}", row)};
    for (size_t column = 0; column < matrix.inputs.size(); ++column) {
      cells.push_back(fmt::format("{:.3f}", matrix.entries[row * matrix.inputs.size() + column]));
    }
    table.add_row(cells);
  }
  return fmt::format(
      "{}distance to the nearest matrix of 0 and 1: {}{}\n"
      "error with numbers in [-{}, {}]: at most {}\n"
      "answer {}, of the rounded matrix {}\n",
      table.to_string(), short_number(matrix.distance()),
      matrix.distance() < 0.5 ? "" : ", too far to be certain of it", range, range,
      short_number(range * matrix.row_distance()), fmt::join(sample.answer, ", "),
      fmt::join(sample.rounded, ", "));
}

std::string matrices_text(const std::vector<GivenSample>& samples, double range) {
  std::string text;
  for (const GivenSample& sample : samples) {
    text += (text.empty() ? "" : "\n") + matrix_text(sample, range);
  }
  return text;
}

std::string matrices_json(const std::vector<GivenSample>& samples, double range) {
  Json list = Json::array();
  for (const GivenSample& sample : samples) {
    const ValueMatrix& matrix = sample.matrix;
    Json rows = Json::array();
    const auto columns = static_cast<int64_t>(matrix.inputs.size());
    for (int64_t row = 0; row < matrix.rows(); ++row) {
      const auto first = matrix.entries.begin() + row * columns;
      rows.push_back(std::vector<double>(first, first + columns));
    }
    list.push_back({{"inputs", matrix.inputs},
                    {"matrix", rows},
                    {"distance", matrix.distance()},
                    {"range", range},
                    {"largest_error", range * matrix.row_distance()},
                    {"answer", sample.answer},
                    {"rounded_answer", sample.rounded}});
  }
  return json_text({{"samples", list}});
}

std::string share_text(const MatrixShare& share, double range, bool all) {
  const std::string whole =
      all ? share.right == share.samples
                ? "these are all: the rounded matrix is right for every sample and all real numbers"
                : "these are all"
          : fmt::format("of all samples at least {:.3f} %, with confidence {:.3g} %",
                        100 * share.at_least, 100 * share.confidence);
  return fmt::format(
      "{} of {} {}: the rounded matrix gives the task's exact answer\n"
      "{}\n"
      "largest distance to the nearest matrix of 0 and 1: {}\n"
      "largest error of the model with numbers in [-{}, {}]: {}\n",
      share.right, share.samples, all ? "symbol inputs" : "samples", whole,
      short_number(share.distance), range, range, short_number(range * share.row_distance));
}

std::string share_json(const MatrixShare& share, double range) {
  return json_text({{"samples", share.samples},
                    {"right", share.right},
                    {"right_share_at_least", share.at_least},
                    {"confidence", share.confidence},
                    {"largest_distance", share.distance},
                    {"range", range},
                    {"largest_error", range * share.row_distance}});
}

ExitCode show_matrix(const MatrixFlags& flags) {
  constexpr int64_t most_samples = 10'000'000;
  if ((flags.input.empty() ? 0 : 1) + (flags.samples == 0 ? 0 : 1) + (flags.all ? 1 : 0) != 1) {
    throw Error(ExitCode::usage, "none or several of --input, --samples and --all", "one of them");
  }
  if (flags.samples < 0 || flags.samples > most_samples) {
    throw Error(ExitCode::usage, fmt::format("--samples {}", flags.samples),
                fmt::format("1 to {}", most_samples));
  }
  if (!(flags.confidence > 0 && flags.confidence < 1)) {
    throw Error(ExitCode::usage, fmt::format("--confidence {}", flags.confidence),
                "a number between 0 and 1, as 0.99");
  }
  if (!(flags.range >= 0 && std::isfinite(flags.range))) {
    throw Error(ExitCode::usage, fmt::format("--range {}", flags.range), "a number above 0");
  }
  if (flags.round && flags.input.empty()) {
    throw Error(ExitCode::usage, "--round without --input", "--round with --input");
  }
  const Model model = read_model(find_model(flags.model), flags.hints);
  const double range = flags.range > 0 ? flags.range : model.origin.range;
  if (flags.input.empty()) {
    const MatrixShare share = bounds::matrix_share({.model = &model,
                                                    .task = &task_of(model.origin, flags.model),
                                                    .samples = flags.samples,
                                                    .all = flags.all,
                                                    .seed = flags.seed,
                                                    .confidence = flags.confidence,
                                                    .threads = thread_count(flags.threads)});
    write_output(flags.json ? share_json(share, range) : share_text(share, range, flags.all));
    return ExitCode::done;
  }
  const std::vector<GivenSample> samples = given_matrices(model, flags);
  if (flags.round) {
    std::string text;
    Json rows = Json::array();
    for (const GivenSample& sample : samples) {
      text += fmt::format("{}\n", fmt::join(sample.rounded, ","));
      rows.push_back(sample.rounded);
    }
    write_output(flags.json ? json_text({{"outputs", rows}}) : text);
    return ExitCode::done;
  }
  write_output(flags.json ? matrices_json(samples, range) : matrices_text(samples, range));
  return ExitCode::done;
}

void add_matrix_options(CLI::App& command, MatrixFlags& flags) {
  argument(command, "MODEL", flags.model, "A model file or run folder")->required();
  add_input_option(command, flags.input, "Rows of tokens and numbers");
  add_pairs_option(command, flags.pairs);
  command.add_flag("--round", flags.round, "Only the answers of the rounded matrix");
  option(command, "--range", flags.range, "A",
         "Bound the error for numbers in [-A, A]; default: the training range");
  option(command, "--samples", flags.samples, "INT",
         "Count on so many samples of the task how often the rounded matrix is right");
  command.add_flag("--all", flags.all,
                   "Count over all symbol inputs of a small task: pointer, recall, sort-by-key");
  option(command, "--confidence", flags.confidence, "SHARE [0.99]",
         "Of the statement on all samples");
  option(command, "--seed", flags.seed, "INT [0]", "Seed of the samples");
  add_threads_option(command, flags.threads);
  add_json_flag(command, flags.json);
  add_hint_flags(command, flags.hints);
}

const Command registered_matrix(
    {.name = "matrix",
     .group = Group::theory,
     .summary = "Print the matrix that a linear model of two streams writes for its symbols",
     .examples = {"posattn matrix runs/recall/two-streams-linear-seed0 --input sample.csv",
                  "posattn matrix runs/recall/two-streams-linear-seed0 --input sample.csv --round",
                  "posattn matrix runs/recall/two-streams-linear-seed0 --samples 10000",
                  "posattn matrix runs/pointer/two-streams-linear-seed0 --all"},
     .details =
         "With --architecture two-streams-linear the outputs are f(s, x) = M(s) x: tokens and "
         "positions s decide a matrix, which multiplies the numbers x. This command reads M off, "
         "and compares it with the nearest matrix R of zeros and ones. The error is then (M - R) x "
         "for all numbers x, of any size. A number that is 0 has no column.\n\nWhere the task "
         "moves and adds numbers, R x is its exact answer, and --round prints it. --samples says "
         "in how many samples of the task that is so, and in which share of all samples it is at "
         "least, with the stated confidence (docs/streams.md). --all tries every input of letters "
         "and places that the task has. Where all are right, the trained network is proved right "
         "for all real numbers, if its matrix is rounded."},
    add_matrix_options, show_matrix);

}  // namespace
}  // namespace posattn
