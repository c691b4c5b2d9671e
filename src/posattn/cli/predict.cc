// posattn predict
#include "posattn/evaluation/predict.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <sstream>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/model_paths.h"
#include "posattn/evaluation/measure.h"
#include "posattn/evaluation/samples_io.h"
#include "posattn/evaluation/table.h"
#include "posattn/model/attention/rows.h"
#include "posattn/model/causal_network.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/task_text.h"

namespace posattn {
namespace {

struct PredictFlags {
  std::string model, input = "-", pairs, output = "-", format;
  int threads = 0;
  bool scores = false, json = false, stream = false;
  ModelHints hints;
};

// What a model answers: a row for each sample, and for lines of text a text.
struct Answers {
  Table table;
  std::vector<std::string> lines, texts;  // none for a table, or of scores
};

std::string as_json(const Answers& answers) {
  const Table& table = answers.table;
  Json rows = Json::array();
  const auto add_rows = [&](const auto& numbers) {
    for (auto first = numbers.begin(); first != numbers.end(); first += table.columns) {
      rows.push_back(std::vector(first, first + table.columns));
    }
  };
  add_rows(table.values);
  add_rows(table.whole);
  Json document = Json::object();
  if (table.columns > 0) {  // none where a model answers in writing
    document = {{"rows", table.rows}, {"columns", table.columns}, {"outputs", rows}};
  }
  if (!answers.lines.empty()) {
    document["lines"] = answers.lines;
    document["answers"] = answers.texts;
  }
  return printable(document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n", true);
}

std::string as_text(const Answers& answers) {
  std::string text;
  for (size_t i = 0; i < answers.lines.size(); ++i) {
    text += fmt::format("{} -> {}\n", printable(answers.lines[i]), answers.texts[i]);
  }
  return text;
}

// "csv" or "npy" where the user asks for it, by flag or by the ending of the output.
std::string wanted_format(const PredictFlags& options) {
  if (!options.format.empty()) return options.format;
  if (options.output.ends_with(".npy")) return "npy";
  return options.output.ends_with(".csv") || options.scores ? "csv" : "";
}

std::string formatted(const Answers& answers, const PredictFlags& options) {
  if (options.json) return as_json(answers);
  const std::string format = wanted_format(options);
  if (format.empty() && !answers.lines.empty()) return as_text(answers);
  return format == "npy" ? to_npy(answers.table) : to_csv(answers.table);
}

std::vector<std::string> answer_texts(const Table& table, const TaskText& text) {
  std::vector<std::string> texts;
  for (int64_t at = 0; at < table.rows * table.columns; at += table.columns) {
    texts.push_back(
        table.pattern.whole > 0
            ? text.answers(std::span(table.whole).subspan(at, table.columns))
            : fmt::format("{}",
                          fmt::join(std::span(table.values).subspan(at, table.columns), " ")));
  }
  return texts;
}

// A trained model may answer badly outside its training range; a compiled one is exact everywhere.
void note_numbers_outside(const Model& model, const Table& table) {
  if (is_compiled(model) || model.origin.task.empty()) return;
  const double range = model.origin.range;
  const auto outside =
      std::ranges::count_if(table.values, [range](float x) { return std::abs(x) > range; });
  if (outside == 0) return;
  write_notice(
      fmt::format("note: {0} of {1} lie outside the training range [-{2}, {2}]; posattn evaluate "
                  "--scales 1..10 tests how the model holds there",
                  outside, plural(table.values.size(), "number"), range));
}

Answers answer(const Model& model, ReadSamples input, bool scores, int threads) {
  const Batch samples = batch_of(input, model);
  const int columns = model.spec.output_columns;
  std::vector<float> outputs =
      read_outputs(model.spec, predict(model, samples, threads), samples.real_nodes);
  const int64_t nodes = model.spec.nodes_read(samples.real_nodes);
  Answers answers;
  if (model.spec.loss == Loss::cross_entropy && !scores) {
    answers.table = {.rows = input.table.rows,
                     .columns = nodes,
                     .values = {},
                     .whole = decided_classes(outputs, columns),
                     .pattern = {.whole = 1, .real = 0}};
  } else {
    answers.table = {
        .rows = input.table.rows, .columns = nodes * columns, .values = std::move(outputs)};
  }
  if (!input.lines.empty() && !scores) {
    answers.texts = answer_texts(answers.table, *text_of(model));
    answers.lines = std::move(input.lines);
  }
  return answers;
}

// The task of the model, where its answers are written; otherwise null.
const WrittenAnswers* written_answers_of(const Model& model) {
  const Task* task = task_of(model.origin);
  return task == nullptr ? nullptr : task->written_answers();
}

// One answer for each line of `text`, whose name serves errors.
std::vector<std::string> answers_to(const Model& model, std::string_view text,
                                    const std::string& name, int threads) {
  const WrittenAnswers& written = *written_answers_of(model);
  std::vector<TokenText> prompts;
  int64_t number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    try {
      prompts.push_back(written.tokeniser().encode(std::string(line) + '\n'));
      if (static_cast<int>(prompts.back().size()) > model.spec.real_nodes) {
        throw Error(ExitCode::data, fmt::format("{} tokens", prompts.back().size()),
                    fmt::format("at most {}, the model's nodes", model.spec.real_nodes));
      }
    } catch (const Error& error) {
      throw error.as(error.code(), fmt::format("{}:{}: {}", name, number, error.problem()));
    }
  }
  std::vector<std::string> answers =
      write_answers(TextGenerator(model.spec, model.parameters), written, prompts, threads);
  // A model may write any bytes.
  std::ranges::transform(answers, answers.begin(),
                         [](const auto& answer) { return printable(answer); });
  return answers;
}

// A line of text in, a line of text out.
ExitCode predict_text(const PredictFlags& options, const Model& model) {
  if (!wanted_format(options).empty()) {
    throw Error(ExitCode::usage, "--scores, CSV or NPY for a model that answers in writing",
                "text or --json", "leave them out");
  }
  const auto [text, name] = given_input(options.input, true);
  if (text.empty()) throw Error(ExitCode::data, name + ": no text", "one prompt per line");
  Answers answers;
  answers.texts = answers_to(model, text, name, thread_count(options.threads));
  for (const std::string_view line : split_lines(text)) answers.lines.emplace_back(line);
  write_result(options.output, options.json ? as_json(answers) : as_text(answers));
  return ExitCode::done;
}

// The same model for as many nodes as a stream may have, where their places matter and its weights
// mean something there. One that is not causal reads as many at a time as in training.
ModelSpec spec_of_stream(const ModelSpec& spec) {
  constexpr int most_with_scores = 1024, most = 65536;  // scores of positions are made ahead
  if (!spec.causal) return spec;
  const bool scored = spec.any_layer([](const AttentionChoices& kind) {
    const ScoreBias scores = kind.position_scores();
    return scores != ScoreBias::none && !row_of(scores).window;
  });
  return at_length(spec, std::max(spec.real_nodes, scored ? most_with_scores : most))
      .value_or(spec);
}

CausalNetwork::Nodes node_of_line(const std::string& line, const RowPattern& pattern,
                                  const std::string& where) {
  std::string words = line;
  std::ranges::replace(words, ',', ' ');
  std::istringstream stream(words);
  CausalNetwork::Nodes node;
  for (std::string word; stream >> word;) {
    if (static_cast<int>(node.tokens.size()) < pattern.whole) {
      node.tokens.push_back(static_cast<int32_t>(parse_integer(word, where)));
    } else {
      node.values.push_back(static_cast<float>(parse_number(word, where)));
    }
  }
  const size_t expected = static_cast<size_t>(pattern.whole + pattern.real);
  if (node.tokens.size() + node.values.size() != expected) {
    throw Error(
        ExitCode::data,
        fmt::format("{}: {}", where, plural(node.tokens.size() + node.values.size(), "number")),
        fmt::format("{}, of one node", expected));
  }
  return node;
}

// A node on each line, answered at once; an empty line begins a new sample.
ExitCode predict_stream(const PredictFlags& options, const Model& model) {
  if (options.json || options.scores || !options.format.empty() || options.output != "-") {
    throw Error(ExitCode::usage, "--stream with --json, --scores, --format or --output",
                "--stream alone", "its answers go to standard output, line by line");
  }
  const ModelSpec spec = spec_of_stream(model.spec);
  const CausalNetwork network(spec, model.parameters);
  const RowPattern pattern = row_pattern(model.spec);
  std::ifstream file;
  if (options.input != "-") file.open(options.input);
  if (!file) throw Error(ExitCode::data, "cannot read " + options.input, "a file");
  std::istream& input = options.input == "-" ? std::cin : file;
  CausalNetwork::Memory memory = network.memory(1);
  std::string line;
  for (int64_t number = 1; std::getline(input, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      memory = network.memory(1);
      continue;
    }
    const CausalNetwork::Nodes node = node_of_line(line, pattern, fmt::format("line {}", number));
    const std::vector<float> outputs = network.read({&node, 1}, memory);
    if (spec.loss == Loss::cross_entropy) {
      write_output(fmt::format("{}\n", decided_classes(outputs, spec.output_columns).front()));
    } else {
      write_output(fmt::format("{}\n", fmt::join(outputs, ",")));
    }
  }
  return ExitCode::done;
}

ExitCode predict_file(const PredictFlags& options) {
  if (!options.format.empty() && options.format != "csv" && options.format != "npy") {
    throw unknown_name(ExitCode::usage, "format", options.format, {"csv", "npy"});
  }
  if (options.json && wanted_format(options) == "npy") {
    throw Error(ExitCode::usage, "--json and NPY output are both asked for", "one of them");
  }
  const int threads = thread_count(options.threads);
  const Model model = read_model(find_model(options.model), options.hints);
  if (options.stream) return predict_stream(options, model);
  if (written_answers_of(model) != nullptr) return predict_text(options, model);
  if (options.scores && model.spec.loss != Loss::cross_entropy) {
    throw Error(ExitCode::usage, "--scores for a model whose outputs are numbers",
                "a model of classes", "leave --scores out");
  }
  ReadSamples input = given_samples(options.input, options.pairs, model, options.model);
  if (!options.json) note_numbers_outside(model, input.table);
  write_result(options.output,
               formatted(answer(model, std::move(input), options.scores, threads), options));
  return ExitCode::done;
}

void add_predict_options(CLI::App& command, PredictFlags& options) {
  argument(command, "MODEL", options.model, "A model file or run folder")->required();
  add_input_option(command, options.input, "Rows or lines")->option_text("INPUT [-]");
  add_pairs_option(command, options.pairs);
  add_output_option(command, options.output, "File to write; '-': standard output", "FILE [-]");
  CLI::Option* format = option(command, "--format", options.format, "NAME",
                               "csv or npy; by default as the output ends, and text for text");
  add_threads_option(command, options.threads);
  command.add_flag("--stream", options.stream, "Read a node from each line and answer it at once");
  command.add_flag("--scores", options.scores, "The score of every class instead of the class");
  add_json_flag(command, options.json).excludes(format);
  add_hint_flags(command, options.hints);
}

const Command registered_predict(
    {.name = "predict",
     .group = Group::train,
     .summary = "Print a model's outputs for rows of numbers or tokens, or lines of text",
     .examples = {"echo 1,2,3,4,5,6,7,8 | posattn predict runs/cumulative-sum/positional-seed0",
                  "posattn predict model.safetensors --input rows.csv --output y.csv",
                  "posattn predict model.safetensors --input x.npy --output y.npy",
                  "posattn predict runs/k-hop/standard-seed0 --input words.txt",
                  "printf '1\\n-0.5\\n2\\n' | posattn predict runs/causal --stream"},
     .details =
         "Each row is one sample: n numbers for sequence tasks, 2n for min-sum, n x n for path. "
         "Input is CSV or NPY, recognised by its content. A model of tokens reads whole numbers; "
         "if nodes also hold numbers, the token comes first (-1: none). A model of classes answers "
         "with a class for each node. A model "
         "that reads pairs of nodes also needs --pairs: for each sample a row of its n x n pairs, "
         "each with its class, then its numbers, as far as the task has them.\n\nFor tasks that "
         "people write as text ('posattn tasks') "
         "each line is a sample, and the answer is text: '2 abcab -> --ab-'. A model trained on "
         "written prompts reads one prompt per line and writes its answer.\n\nWith --stream a "
         "causal model (train --causal) reads one node from each line and answers it at once, as "
         "if it had read the whole sample up to there. A model of one layer that is not causal "
         "answers for the last n nodes. An empty line begins a new sample."},
    add_predict_options, predict_file);

}  // namespace
}  // namespace posattn
