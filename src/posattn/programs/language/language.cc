#include "posattn/programs/language/language.h"

#include <fmt/format.h>

#include <filesystem>

#include "posattn/base/error.h"
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

}  // namespace posattn
