#include "posattn/bounds/certificate/certificate_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "posattn/base/json_fields.h"
#include "posattn/base/strict_json.h"

namespace posattn::bounds {

std::map<std::string, double> certified_risks(std::string_view text, const std::string& file) {
  std::map<std::string, double> risks;
  int number_of_line = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    const std::string where = fmt::format("{}:{}", file, ++number_of_line);
    if (line.empty()) continue;
    const nlohmann::json row = parse_strict_json(line, where);
    const JsonFields fields(row, where);
    risks[fields.text("run")] = JsonFields(fields.at("randomised"), where).number("bound");
  }
  return risks;
}

}  // namespace posattn::bounds
