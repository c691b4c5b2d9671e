#include "posattn/programs/language/language.h"

#include <filesystem>

#include "posattn/programs/language/elaborator.h"
#include "posattn/programs/language/parser.h"

namespace posattn {

StaticProgram compile_text(std::string_view text, const std::string& name, int length,
                           const language::Limits& limits) {
  const language::Source source(name);
  const language::SyntaxTree tree = language::parse(text, source, limits);
  const std::string own = std::filesystem::path(name).stem().string();
  return language::elaborate(tree, tree.name.empty() ? own : tree.name, length, source, limits);
}

}  // namespace posattn
