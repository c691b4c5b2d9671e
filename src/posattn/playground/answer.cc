#include "posattn/playground/answer.h"

#include <charconv>
#include <new>
#include <nlohmann/json.hpp>

#include "posattn/playground/playground.h"

namespace posattn::playground {
namespace {

// The line and column of "program.par:3:7: ...", nothing where a problem does not begin so.
std::vector<int> place_in(const std::string& problem) {
  const size_t file_end = problem.find(':');
  if (file_end == std::string::npos) return {};
  const char *at = problem.data() + file_end, *end = problem.data() + problem.size();
  std::vector<int> place;
  while (at < end && *at == ':' && place.size() < 2) {
    int number = 0;
    const auto [stop, fault] = std::from_chars(at + 1, end, number);
    if (fault != std::errc()) break;
    place.push_back(number);
    at = stop;
  }
  return place;
}

}  // namespace

Answer& answer() {
  static Answer last;
  return last;
}

int32_t failure() {
  nlohmann::ordered_json text;
  try {
    throw;
  } catch (const Error& error) {
    text = {{"message", error.what()},
            {"problem", error.problem()},
            {"expected", error.expected()},
            {"hint", error.hint()},
            {"exit_code", static_cast<int>(error.code())}};
    const std::vector<int> place = place_in(error.problem());
    if (!place.empty()) text["line"] = place[0];
    if (place.size() > 1) text["column"] = place[1];
  } catch (const std::bad_alloc&) {
    text = {{"message", "there is not enough memory"},
            {"problem", "there is not enough memory"},
            {"expected", ""},
            {"hint", "ask for fewer samples or a smaller model"},
            {"exit_code", static_cast<int>(ExitCode::failed)}};
  } catch (const std::exception& error) {
    text = {{"message", error.what()},
            {"problem", error.what()},
            {"expected", ""},
            {"hint", ""},
            {"exit_code", static_cast<int>(ExitCode::failed)}};
  }
  answer().numbers.clear();
  answer().text = text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return -1;
}

}  // namespace posattn::playground

using posattn::playground::answer;

const char* play_text() { return answer().text.c_str(); }
int32_t play_text_size() { return static_cast<int32_t>(answer().text.size()); }
const double* play_numbers() { return answer().numbers.data(); }
int32_t play_numbers_count() { return static_cast<int32_t>(answer().numbers.size()); }
void* play_allocate(int32_t bytes) {
  return ::operator new(static_cast<size_t>(bytes < 0 ? 0 : bytes), std::nothrow);
}
void play_release(void* pointer) { ::operator delete(pointer); }
