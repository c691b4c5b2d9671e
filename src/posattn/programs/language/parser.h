// Tokens to a tree.
#pragma once

#include <string_view>

#include "posattn/programs/language/syntax.h"

namespace posattn::language {

SyntaxTree parse(std::string_view text, const Source& source, const Limits& limits);

}  // namespace posattn::language
