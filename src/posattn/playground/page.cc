#include "posattn/playground/page.h"

#include <nlohmann/json.hpp>

#include "posattn/base/error.h"

namespace posattn {
namespace {

// playground/page.html has this once.
constexpr std::string_view before = R"(<script type="application/json" id="given">)";
constexpr std::string_view nothing = "null</script>";

std::string base64(const std::vector<std::byte>& bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t three = 0;
    for (size_t k = i; k < i + 3; ++k) {
      three = three << 8 | (k < bytes.size() ? std::to_integer<uint32_t>(bytes[k]) : 0);
    }
    for (size_t k = 0; k < 4; ++k) {
      text += i + k > bytes.size() ? '=' : letters[three >> (18 - 6 * k) & 63];
    }
  }
  return text;
}

std::string json_text(const PageContent& content) {
  nlohmann::ordered_json json = {{"models", nlohmann::ordered_json::array()}};
  for (const PageModel& model : content.models) {
    json["models"].push_back({{"name", model.name}, {"bytes", base64(model.bytes)}});
  }
  if (content.program) {
    const PageProgram& program = *content.program;
    json["program"] = {{"name", program.name},
                       {"text", program.text},
                       {"n", program.length},
                       {"parameters", program.parameters}};
  }
  // The text is ASCII, without the one character that could end the element around it.
  std::string text = json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), safe;
  safe.reserve(text.size());
  for (const char letter : text) letter == '<' ? safe += "\\u003c" : safe += letter;
  return safe;
}

}  // namespace

std::string page_with(std::string_view page, const std::string& file, const PageContent& content) {
  const std::string place = std::string(before) + std::string(nothing);
  const size_t at = page.find(place);
  if (at == std::string_view::npos || page.find(place, at + 1) != std::string_view::npos) {
    throw Error(ExitCode::data, "'" + file + "' is not a playground page that can be filled",
                "the page that scripts/playground_page makes");
  }
  std::string filled(page.substr(0, at));
  filled += before;
  filled += json_text(content);
  filled += "</script>";
  filled += page.substr(at + place.size());
  return filled;
}

}  // namespace posattn
