#include "posattn/programs/language/language.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/programs/language/arithmetic.h"
#include "posattn/programs/language/elaborator.h"
#include "posattn/programs/language/syntax.h"

namespace posattn {
namespace {

void check_length(int length, const language::Limits& limits) {
  if (length >= 1 && length <= limits.processors) return;
  throw Error(ExitCode::configuration, fmt::format("n = {}", length),
              fmt::format("a length from 1 to {}", limits.processors));
}

constexpr std::string_view suffix = ".par";

std::string description_of(std::string_view text) {
  if (!text.starts_with('#')) return "";
  std::string_view line = text.substr(1, text.find_first_of("\r\n") - 1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  return std::string(line);
}

}  // namespace

StaticProgram compile_text(std::string_view text, const std::string& name, int length,
                           const TextOptions& options) {
  const language::Source source(name);
  const language::SyntaxTree tree = language::parse(text, source, options.limits);
  check_length(length, options.limits);
  const std::string own =
      options.name.empty() ? std::filesystem::path(name).stem().string() : options.name;
  language::Elaborator elaborator(tree, tree.name.empty() ? own : tree.name, length, source,
                                  options.limits, options.settings);
  StaticProgram program = elaborator.run(options.whole);
  if (options.warnings != nullptr) *options.warnings = elaborator.warnings();
  return program;
}

std::string text_name(std::string_view text, const std::string& file) {
  return language::parse(text, language::Source(file), {}).name;
}

std::vector<ProgramParameter> text_parameters(std::string_view text, const std::string& name,
                                              int length, const TextOptions& options) {
  const language::Source source(name);
  const language::SyntaxTree tree = language::parse(text, source, options.limits);
  check_length(length, options.limits);
  language::Arithmetic arithmetic(source, options.limits, length);
  return language::parameters_of(tree, options.settings, arithmetic);
}

Settings parse_settings(std::string_view text) {
  Settings settings;
  if (text.empty()) return settings;
  for (const std::string_view part : split_at_commas(text)) {
    const size_t sign = part.find('=');
    if (sign == std::string_view::npos || sign == 0) {
      throw Error(ExitCode::usage, fmt::format("--set '{}'", text.substr(0, 60)),
                  "NAME=NUMBER, several with commas between them, as K=16,q=4");
    }
    const std::string name(part.substr(0, sign));
    const double value = parse_number(part.substr(sign + 1), "--set " + name);
    if (!settings.emplace(name, value).second) {
      throw Error(ExitCode::usage, fmt::format("--set gives '{}' twice", name.substr(0, 60)),
                  "each parameter once");
    }
  }
  return settings;
}

std::string to_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", name, value);
  }
  return text;
}

std::string to_text(const ProgramParameter& parameter) {
  std::string text = fmt::format("{} = {}", parameter.name, parameter.value);
  if (parameter.low) text += fmt::format(" ({} to {})", *parameter.low, *parameter.high);
  return text;
}

const std::vector<LibraryProgram>& library_programs() {
  static const std::vector<LibraryProgram> programs = [] {
    std::vector<LibraryProgram> list;
    for (const EmbeddedFile& file : embedded_programs()) {
      list.push_back({std::string(file.name.substr(0, file.name.size() - suffix.size())),
                      description_of(file.text), std::string(file.name), std::string(file.text)});
    }
    std::ranges::sort(list, {}, &LibraryProgram::name);
    return list;
  }();
  return programs;
}

LibraryProgram find_program(const std::string& name_or_path) {
  if (name_or_path.ends_with(suffix) || name_or_path.find('/') != std::string::npos) {
    std::string text = read_input_file(name_or_path, language::Limits{}.text_bytes);
    return {name_or_path, description_of(text), name_or_path, std::move(text)};
  }
  std::vector<std::string> known;
  for (const LibraryProgram& program : library_programs()) {
    if (program.name == name_or_path) return program;
    known.push_back(program.name);
  }
  throw unknown_name(ExitCode::usage, "program", name_or_path, known);
}

StaticProgram library_program(const std::string& name_or_path, int length,
                              const Settings& settings) {
  const LibraryProgram program = find_program(name_or_path);
  return compile_text(program.text, program.file, length, {.settings = settings});
}

}  // namespace posattn
