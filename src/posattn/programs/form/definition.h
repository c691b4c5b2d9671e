// What programs of the library must compute, as plain loops that share nothing with them: `verify`
// and the tests compare with these where no task has the answer.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace posattn {

struct DefinedColumns {
  int words = 0, rows = 0;  // a row has a column for each processor
  int count(int processors) const { return words + rows * processors; }
};

// Inputs and outputs as the program has them, [processors, columns].
struct Definition {
  std::string_view name;  // as the program's line `task` says
  DefinedColumns inputs, outputs;
  std::vector<double> (*answer)(int processors, std::span<const double> input) = nullptr;
};

const std::vector<Definition>& definitions();
const Definition* find_definition(std::string_view name);  // nullptr: none

}  // namespace posattn
