// How GPT-2's files write bytes: every byte is one printable character. Those that print stand for
// themselves (as in Latin-1), the others for U+0100, U+0101, ... in their order; a space is U+0120.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace posattn {

std::string bytes_to_characters(std::string_view bytes);
// Nothing where some character stands for no byte.
std::optional<std::string> characters_to_bytes(std::string_view characters);

}  // namespace posattn
