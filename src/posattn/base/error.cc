#include "posattn/base/error.h"

#include <algorithm>
#include <numeric>

namespace posattn {
namespace {

std::string join_message(const std::string& what, const std::string& expected,
                         const std::string& hint) {
  std::string message = what;
  if (!expected.empty()) message += "\n  expected " + expected;
  if (!hint.empty()) message += "\n  HINT: " + hint;
  return message;
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row.back();
}

}  // namespace

Error::Error(ExitCode code, std::string what, std::string expected, std::string hint)
    : std::runtime_error(join_message(what, expected, hint)),
      code_(code),
      problem_(std::move(what)),
      expected_(std::move(expected)),
      hint_(std::move(hint)) {}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  const std::string wanted = in_lower_case(name);  // "Q" is nearer to "q" than to "K"
  std::string best;
  size_t best_distance = std::max<size_t>(2, name.size() / 2) + 1;
  for (const std::string& candidate : known) {
    const std::string offered = in_lower_case(candidate);
    size_t distance = edit_distance(wanted, offered);
    // A name that contains the other ("sum" in "cumulative-sum") is near whatever its length.
    if (name.size() >= 3 && distance > 1 && offered.find(wanted) != std::string::npos) distance = 1;
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

Error unknown_name(ExitCode code, std::string_view kind, std::string_view name,
                   const std::vector<std::string>& known, std::string_view where) {
  std::string what = "unknown " + std::string(kind) + " '" + std::string(name) + "'";
  if (!where.empty()) what += " " + std::string(where);
  std::string expected = "one of: ";
  for (size_t i = 0; i < known.size(); ++i) expected += (i ? ", " : "") + known[i];
  const std::string near = nearest_name(name, known);
  return Error(code, what, expected, near.empty() ? "" : "did you mean '" + near + "'?");
}

}  // namespace posattn
