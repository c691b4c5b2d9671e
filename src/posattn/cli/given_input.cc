#include "posattn/cli/given_input.h"

#include <algorithm>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/evaluation/predict.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

bool is_list_of_numbers(const std::string& input) {
  return input.find_first_of("0123456789") != std::string::npos &&
         input.find_first_not_of("0123456789+-.eE, \t") == std::string::npos;
}

// Whether `input` can only be meant as the name of a file.
bool reads_like_a_name(const std::string& input, bool takes_text) {
  for (const char* ending : {".txt", ".csv", ".npy"}) {
    if (input.ends_with(ending)) return true;
  }
  return input.find('/') != std::string::npos ||
         (!takes_text && input.find_first_of(", \t") == std::string::npos);
}

struct InputList {
  std::string name;
  std::vector<double> numbers;
};

InputList read_list(const std::string& input) {
  GivenInput given = given_input(input);
  if (!looks_like_npy(given.bytes)) {
    return {given.name, parse_csv_row(given.bytes, given.name)};
  }
  const Table table = parse_npy(given.bytes, given.name);
  check_one_row(table, given.name);
  return {given.name, {table.values.begin(), table.values.end()}};
}

std::vector<InputList> read_lists(const std::vector<std::string>& inputs) {
  if (std::ranges::count(inputs, "-") > 1) {
    throw Error(ExitCode::usage, "--input - given several times", "once",
                "standard input can be read once: put the other lists into files");
  }
  std::vector<InputList> lists;
  for (const std::string& input : inputs) lists.push_back(read_list(input));
  return lists;
}

std::vector<double> arranged(const std::vector<InputList>& lists, const StaticProgram& program,
                             const std::string& hint) {
  const size_t columns = program.inputs.size();
  if (lists.size() != columns) {
    std::vector<std::string> names;
    for (const int word : program.inputs) names.push_back(program.words[word].name);
    throw Error(ExitCode::usage, "--input given " + plural(lists.size(), "time"),
                fmt::format("{}, once for each input of '{}': {}", plural(columns, "time"),
                            program.name, fmt::join(names, ", ")));
  }
  std::vector<double> numbers(columns * program.processors);
  for (size_t c = 0; c < columns; ++c) {
    const std::vector<double>& list = lists[c].numbers;
    const bool one_for_all = c > 0 && list.size() == 1;
    if (!one_for_all && static_cast<int>(list.size()) != program.processors) {
      throw Error(ExitCode::data,
                  fmt::format("{} in {}", plural(list.size(), "number"), lists[c].name),
                  fmt::format("{}, one for each processor of '{}' at length {}", program.processors,
                              program.name, program.length),
                  hint);
    }
    for (int i = 0; i < program.processors; ++i) {
      numbers[i * columns + c] = one_for_all ? list[0] : list[i];
    }
  }
  if (const std::optional<InputFault> fault = input_fault(program, numbers)) {
    throw Error(ExitCode::data, fault->problem + " in --input", fault->expected);
  }
  return numbers;
}

constexpr int64_t longest = 1 << 20;

// "3-7,9"; the first ones and how many more, where it would be long.
std::string line_ranges(const std::vector<int>& lines) {
  constexpr size_t enough = 24;
  std::string text;
  for (size_t first = 0; first < lines.size();) {
    size_t last = first;
    while (last + 1 < lines.size() && lines[last + 1] == lines[last] + 1) ++last;
    if (text.size() > enough) return fmt::format("{} and {} more", text, lines.size() - first);
    text += fmt::format("{}{}", text.empty() ? "" : ",", lines[first]);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ',' : '-', lines[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

CarriedProgram carried_program(const Model& model, const std::string& path) {
  CarriedProgram carried;
  carried.program = embedded_program(model, path);
  carried.routed = route_messages(carried.program, embedded_routing(model));
  return carried;
}

void check_rows(const CarriedProgram& carried, Table& table, const std::string& name) {
  const StaticProgram& program = carried.program;
  const size_t n = program.processors, own = program.inputs.size();
  const size_t all = carried.routed.program.inputs.size();
  const auto columns = static_cast<size_t>(table.columns);
  if (columns != n * own && columns != n * all) return;
  const size_t given = columns / n;
  std::vector<float> rows;
  for (size_t k = 0; k < table.values.size(); ++k) {
    if (k % given < own) rows.push_back(table.values[k]);
  }
  for (int64_t r = 0; r < table.rows; ++r) {
    const auto first = rows.begin() + r * static_cast<int64_t>(n * own);
    const std::vector<double> row(first, first + static_cast<int64_t>(n * own));
    const std::string place = fmt::format("{}, row {}: ", name, r + 1);
    if (const std::optional<InputFault> fault = input_fault(program, row)) {
      throw Error(ExitCode::data, place + fault->problem, fault->expected);
    }
    try {
      run_static<double>(program, row, 1);
    } catch (const Error& error) {
      throw error.as(error.code(), place + error.problem());
    }
  }
  if (own == all) return;
  std::vector<float> complete = routed_inputs<float>(program, carried.routed, rows, table.rows);
  if (given == all && complete != table.values) {
    const auto wrong = std::ranges::mismatch(complete, table.values).in1 - complete.begin();
    throw Error(ExitCode::data,
                fmt::format("{}, row {}: switches that do not carry the row's messages", name,
                            wrong / static_cast<int64_t>(n * all) + 1),
                "those of this input", "leave them out: the program in the file finds them");
  }
  table.values = std::move(complete);
  table.columns = static_cast<int64_t>(n * all);
}

GivenInput given_input(const std::string& input, bool takes_text) {
  if (input == "-") return {read_bytes(input), "standard input"};
  const GivenInput typed{input, "--input"};
  if (is_list_of_numbers(input)) return typed;
  std::error_code ignored;
  if (std::filesystem::exists(input, ignored)) return {read_bytes(input), input};
  if (!reads_like_a_name(input, takes_text)) return typed;
  throw Error(ExitCode::data, fmt::format("--input '{}': there is no such file", input),
              takes_text ? "text, a file, or '-' for standard input"
                         : "numbers as 1,2,3, a file, or '-' for standard input");
}

ReadSamples given_samples(const std::string& input, const std::string& pairs, const Model& model,
                          const std::string& path) {
  const GivenInput given = given_input(input, text_of(model) != nullptr);
  ReadSamples samples = parse_samples(given.bytes, given.name, model);
  if (is_compiled(model) && model.origin.notes.contains("program")) {
    check_rows(carried_program(model, path), samples.table, given.name);
  }
  if (!pairs.empty()) {
    const RowPattern pattern = pair_pattern(model.spec);
    const GivenInput file = given_input(pairs);
    samples.pairs = parse_table(file.bytes, file.name, 0, pattern);
  }
  batch_of(samples, model, given.name);  // throws where they do not fit
  return samples;
}

Batch batch_of(const ReadSamples& samples, const Model& model, std::string_view name) {
  return samples_of(model, samples.table, samples.pairs ? &*samples.pairs : nullptr, name);
}

std::vector<double> given_numbers(const std::vector<std::string>& inputs,
                                  const StaticProgram& program, const std::string& hint) {
  return arranged(read_lists(inputs), program, hint);
}

GivenProgram given_program(const std::string& name_or_path, const std::vector<std::string>& inputs,
                           std::optional<int64_t> length, const Settings& settings, bool whole) {
  const std::vector<InputList> lists = read_lists(inputs);
  const auto count = static_cast<int64_t>(lists[0].numbers.size());
  GivenProgram given{.input = read_program(name_or_path, length.value_or(count), settings, whole),
                     .length = length.value_or(count),
                     .numbers = {}};
  const bool one_each = given.input.program.processors == given.length;
  given.numbers =
      arranged(lists, given.input.program,
               length && one_each ? fmt::format("--length {}", count) : "--length says what n is");
  return given;
}

ProgramInput read_program(const std::string& name_or_path, int64_t length, const Settings& settings,
                          bool whole) {
  if (length < 1 || length > longest) {
    throw Error(ExitCode::usage, fmt::format("--length {}", length),
                fmt::format("1 to {}", longest));
  }
  LibraryProgram source = find_program(name_or_path);
  const auto n = static_cast<int>(length);
  std::vector<std::string> warnings;
  const TextOptions options{.settings = settings, .warnings = &warnings, .whole = whole};
  StaticProgram program = compile_text(source.text, source.file, n, options);
  for (const std::string& line : warnings) write_notice("note: " + line);
  std::vector<ProgramParameter> parameters = text_parameters(source.text, source.file, n, options);
  return {std::move(source), std::move(program), std::move(parameters)};
}

CLI::Option* add_set_option(CLI::App& command, std::string& text) {
  return option(command, "--set", text, "LIST", "Parameters of the program, as K=16,q=4");
}

StaticProgram embedded_program(const Model& model, const std::string& path, bool whole) {
  const auto text = model.origin.notes.find("program");
  const auto length = model.origin.notes.find("length");
  if (text == model.origin.notes.end()) {
    throw Error(ExitCode::data, fmt::format("{} carries no program", path),
                "a model that `posattn compile` wrote",
                "posattn evaluate compares any model with its task's answer");
  }
  try {
    const int64_t n = length == model.origin.notes.end()
                          ? model.origin.length
                          : parse_integer(length->second, path + ": length");
    if (n < 1 || n > longest) {
      throw Error(ExitCode::data, fmt::format("{}: length {}", path, n),
                  fmt::format("1 to {}", longest));
    }
    const auto set = model.origin.notes.find("set");
    TextOptions options;
    options.whole = whole;
    if (set != model.origin.notes.end()) options.settings = parse_settings(set->second);
    const auto name = model.origin.notes.find("name");  // only where the text has none
    if (name != model.origin.notes.end()) options.name = printable(name->second);
    StaticProgram program = compile_text(text->second, path, static_cast<int>(n), options);
    // The caller routes the program afterwards, so a program that cannot be routed is refused here.
    if (program.sends()) route_messages(program, embedded_routing(model));
    return program;
  } catch (const Error& error) {  // the file's fault
    throw error.as(ExitCode::data);
  }
}

Routing embedded_routing(const Model& model) {
  const auto note = model.origin.notes.find("routing");
  if (note == model.origin.notes.end()) return Routing::automatic;
  try {
    return parse_routing(note->second);
  } catch (const Error& error) {  // the file's fault
    throw error.as(ExitCode::data);
  }
}

CLI::Option* add_routing_option(CLI::App& command, std::string& name) {
  return option(command, "--routing", name, "NAME [auto]",
                "How messages travel whose destination is data: auto, static, gather, sort, benes "
                "or attention");
}

std::string plan_summary(const NetworkPlan& plan, int64_t parameters) {
  return fmt::format("{}, n = {}: {} -> {}, {}, {}, {}, {}", plan.program.name, plan.program.length,
                     plural(plan.program.rounds.size(), "round"),
                     plural(plan.layers.size(), "layer"), plural(plan.heads, "head"),
                     plural(plan.width, "word"), plural(plan.hidden, "hidden unit"),
                     plural(parameters, "parameter"));
}

std::string plan_listing(const NetworkPlan& plan) {
  TextTable table({"layer", "round", "lines", "heads", "hidden", "what happens"}, 6);
  for (size_t k = 0; k < plan.layers.size(); ++k) {
    const PlannedLayer& layer = plan.layers[k];
    const bool passing = layer.round >= static_cast<int>(plan.program.rounds.size());
    const bool goes_on = k > 0 && plan.layers[k - 1].round == layer.round;
    std::string lines = "-", what = "passes the result on";
    if (!passing) {
      const Round& round = plan.program.rounds[layer.round];
      lines = round.lines.empty() ? "-" : line_ranges(round.lines);
      const bool continues = k + 1 < plan.layers.size() && plan.layers[k + 1].round == layer.round;
      const std::vector<std::string> updates = describe_updates(plan.program, round, 58);
      what = updates.empty() ? "" : updates.front();
      if (updates.size() > 1) what += fmt::format("; and {} more", updates.size() - 1);
      if (goes_on) what = "(goes on: nested minima, maxima or comparisons)";
      if (!goes_on && continues) what += " ...";
    }
    table.add_row({std::to_string(k), passing ? "-" : std::to_string(layer.round), lines,
                   layer.silent ? "silent" : std::to_string(layer.heads.size()),
                   std::to_string(layer.units.size()), what});
  }
  return table.to_string();
}

}  // namespace posattn
