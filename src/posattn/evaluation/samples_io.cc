#include "posattn/evaluation/samples_io.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/evaluation/axes/evaluation_axis.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/table.h"

namespace posattn {
namespace {

bool is_text(std::string_view bytes, std::string_view name) {
  if (name.ends_with(".txt")) return true;
  if (name.ends_with(".csv") || name.ends_with(".npy")) return false;
  return !looks_like_npy(bytes) && !looks_like_csv(bytes);
}

// Reads lines into a table, whose size the first line decides.
class LineReader {
 public:
  LineReader(const Model& model, const TaskText& text)
      : model_(model), task_(*task_of(model.origin)), text_(text), length_(length_of(model)) {
    result_.table.pattern = row_pattern(model.spec);
  }

  void add(std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      throw Error(ExitCode::data, "a blank line", "one sample per line: " + form());
    }
    const size_t broken = find_broken_utf8(line);
    if (broken != std::string_view::npos) {
      throw Error(ExitCode::data,
                  fmt::format("byte {} (0x{:02x}) is not UTF-8", broken + 1,
                              static_cast<unsigned char>(line[broken])),
                  "text in UTF-8", "convert it first: iconv -t UTF-8");
    }
    if (model_.origin.variable_length) check_length(text_.length_of(line));
    Table& table = result_.table;
    const auto nodes = static_cast<size_t>(task_.shape(length_).real_nodes);
    table.columns = static_cast<int64_t>(nodes) * (table.pattern.whole + table.pattern.real);
    table.whole.resize(table.whole.size() + nodes * table.pattern.whole);
    table.values.resize(table.values.size() + nodes * table.pattern.real);
    text_.read(line, length_,
               {.values = std::span(table.values).last(nodes * table.pattern.real),
                .tokens = std::span(table.whole).last(nodes * table.pattern.whole),
                .targets = {},
                .labels = {}});
    result_.lines.emplace_back(line);
    ++table.rows;
  }

  ReadSamples take() {
    if (result_.lines.empty()) {
      throw Error(ExitCode::data, "no text", "one sample per line: " + form());
    }
    return std::move(result_);
  }

 private:
  std::string form() const { return std::string(text_.form()); }

  // The first line decides on one of the trained lengths.
  void check_length(int length) {
    if (!result_.lines.empty() && length != length_) {
      throw Error(ExitCode::data, fmt::format("a sample of length {}", length),
                  fmt::format("{}, as in line 1", length_),
                  "samples of another length go to another file");
    }
    const int shortest = std::max(task_.shortest_length(), model_.origin.shortest_length);
    if (length < shortest || length > model_.origin.length) {
      throw Error(ExitCode::data, fmt::format("a sample of length {}", length),
                  fmt::format("{} to {}, as in training", shortest, model_.origin.length));
    }
    length_ = length;
  }

  const Model& model_;
  const Task& task_;
  const TaskText& text_;
  int length_;
  ReadSamples result_;
};

ReadSamples parse_lines(std::string_view bytes, std::string_view name, const Model& model,
                        const TaskText& text) {
  LineReader reader(model, text);
  std::string where(name);
  try {
    int64_t number = 0;
    for (const std::string_view line : lines_of(bytes)) {
      where = fmt::format("{}:{}", name, ++number);
      reader.add(line);
    }
    return reader.take();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", where, error.problem()), error.expected(),
                error.hint());
  }
}

}  // namespace

const TaskText* text_of(const Model& model) {
  const Task* task = task_of(model.origin);
  if (task == nullptr || task->text() == nullptr) return nullptr;
  const TaskShape shape = task->shape(length_of(model));
  const ModelSpec& spec = model.spec;
  const bool fits = shape.real_nodes == spec.real_nodes &&
                    shape.data_columns == spec.data_columns && shape.vocabulary == spec.vocabulary;
  return fits ? task->text() : nullptr;
}

ReadSamples parse_samples(std::string_view bytes, std::string_view name, const Model& model,
                          int64_t expected_columns) {
  const TaskText* text = text_of(model);
  if (text != nullptr && is_text(bytes, name)) return parse_lines(bytes, name, model, *text);
  return {.table = parse_table(bytes, name, expected_columns, row_pattern(model.spec)),
          .lines = {}};
}

std::vector<std::string> node_texts(const TaskText& text, const Batch& one_sample) {
  std::vector<std::string> texts;
  const size_t columns = one_sample.inputs.size() / one_sample.real_nodes;
  for (int node = 0; node < one_sample.real_nodes; ++node) {
    const int32_t token = one_sample.tokens.empty() ? -1 : one_sample.tokens[node];
    std::string held = text.node(token, one_sample.inputs.subspan(node * columns, columns));
    texts.push_back(held == " " ? "\u2423" : std::move(held));
  }
  return texts;
}

}  // namespace posattn
