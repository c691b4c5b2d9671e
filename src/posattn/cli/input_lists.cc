#include "posattn/cli/input_lists.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {

InputLists parse_inputs(const std::vector<std::string>& texts) {
  InputLists lists;
  for (const std::string& text : texts) {
    std::vector<double>& numbers = lists.emplace_back();
    for (const std::string_view part : split_at_commas(text)) {
      numbers.push_back(parse_number(part, "--input"));
    }
  }
  return lists;
}

std::vector<double> arranged(const InputLists& lists, const StaticProgram& program,
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
    const std::vector<double>& list = lists[c];
    const bool one_for_all = c > 0 && list.size() == 1;
    if (!one_for_all && static_cast<int>(list.size()) != program.processors) {
      throw Error(ExitCode::usage, fmt::format("{} numbers in --input", list.size()),
                  fmt::format("{}, one for each processor of '{}' at length {}", program.processors,
                              program.name, program.length),
                  hint);
    }
    for (int i = 0; i < program.processors; ++i) {
      const double x = one_for_all ? list[0] : list[i];
      numbers[i * columns + c] = x;
    }
  }
  if (const std::optional<InputFault> fault = input_fault(program, numbers)) {
    throw Error(ExitCode::usage, fault->problem + " in --input", fault->expected);
  }
  return numbers;
}

}  // namespace posattn
