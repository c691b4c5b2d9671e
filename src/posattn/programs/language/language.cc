#include "posattn/programs/language/language.h"

#include <fmt/format.h>

#include <filesystem>

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

}  // namespace posattn
