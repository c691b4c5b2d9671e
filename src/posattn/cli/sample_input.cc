#include "posattn/cli/sample_input.h"

#include <fmt/format.h>

#include <filesystem>

#include "posattn/base/error.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/table_io.h"

namespace posattn {

ReadSamples read_input(const std::string& input, const Model& model) {
  const RowPattern pattern = row_pattern(model.spec);
  const int64_t columns =
      model.origin.variable_length ? 0 : model.spec.real_nodes * (pattern.whole + pattern.real);
  std::error_code ignored;
  if (std::filesystem::exists(input, ignored)) {
    return parse_samples(read_bytes(input), input, model, columns);
  }
  const bool is_name = input.find('/') != std::string::npos || input.ends_with(".txt") ||
                       input.ends_with(".csv") || input.ends_with(".npy");
  const TaskText* text = text_of(model);
  if (is_name ||
      (text == nullptr && input.find_first_not_of("0123456789+-.eE, \t") != std::string::npos)) {
    throw Error(ExitCode::data, fmt::format("--input '{}': there is no such file", input),
                fmt::format("a file, or {}",
                            text == nullptr ? "the numbers of one row, as 1,2,3" : text->form()));
  }
  return parse_samples(input, "--input", model, columns);
}

}  // namespace posattn
