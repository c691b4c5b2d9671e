#include "posattn/cli/rank_agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

std::string to_bytes(const Error& error) {
  return Json::array(
             {static_cast<int>(error.code()), error.problem(), error.expected(), error.hint()})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error from_bytes(const std::string& bytes) {
  const Json parts = Json::parse(bytes);
  return Error(static_cast<ExitCode>(parts.at(0).get<int>()), parts.at(1), parts.at(2),
               parts.at(3));
}

std::string problem_of(const std::function<void()>& action) {
  try {
    action();
    return "";
  } catch (const Error& error) {
    return to_bytes(error);
  } catch (const std::exception& error) {
    return to_bytes(Error(ExitCode::failed, error.what()));
  }
}

}  // namespace

std::optional<Error> first_problem(Ranks& ranks, const std::function<void()>& action) {
  const std::vector<std::string> all = ranks.gather(problem_of(action));
  const auto first = std::ranges::find_if(all, [](const std::string& one) { return !one.empty(); });
  const std::string problem = ranks.broadcast(first == all.end() ? "" : *first, 0);
  if (problem.empty()) return std::nullopt;
  return from_bytes(problem);
}

}  // namespace posattn
