// JSON from outside, parsed strictly: duplicate keys (which parsers read differently) and deep
// nesting are refused. Throws Error(data) that says what is wrong and where.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace posattn {

// `what` names the text in the error ("header of model.safetensors").
nlohmann::json parse_strict_json(std::string_view text, std::string_view what);

}  // namespace posattn
