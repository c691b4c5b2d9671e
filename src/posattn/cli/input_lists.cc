#include "posattn/cli/input_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "posattn/base/error.h"
#include "posattn/cli/given_input.h"
#include "posattn/evaluation/table.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

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

}  // namespace

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

}  // namespace posattn
