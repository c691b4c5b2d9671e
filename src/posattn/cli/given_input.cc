#include "posattn/cli/given_input.h"

#include <fmt/format.h>

#include <filesystem>

#include "posattn/base/error.h"
#include "posattn/cli/carried_program.h"
#include "posattn/evaluation/predict.h"
#include "posattn/evaluation/table.h"

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

}  // namespace

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

ReadSamples given_samples(const std::string& input, const Model& model, const std::string& path) {
  const GivenInput given = given_input(input, text_of(model) != nullptr);
  ReadSamples samples = parse_samples(given.bytes, given.name, model);
  if (is_compiled(model) && model.origin.notes.contains("program")) {
    check_rows(carried_program(model, path), samples.table, given.name);
  }
  samples_of(model, samples.table, given.name);  // throws where they do not fit
  return samples;
}

}  // namespace posattn
