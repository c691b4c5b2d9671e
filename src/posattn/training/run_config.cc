#include "posattn/training/run_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "posattn/base/text.h"
#include "posattn/training/optimiser.h"
#include "posattn/training/run_config_fields.h"

namespace posattn {
namespace {

std::string text_of(const std::string& value) { return value; }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(double value) { return fmt::format("{}", value); }

const char* type_of(const std::string&) { return "text"; }
const char* type_of(bool) { return "flag"; }
const char* type_of(int64_t) { return "integer"; }
const char* type_of(double) { return "number"; }

// Help leaves out what nobody reaches; an error says all.
enum class Detail { help, error };

std::string accepts(const FieldLimits& limits, Detail detail) {
  if (!limits.choices.empty()) {
    std::vector<std::string> shown;
    for (const std::string& choice : limits.choices)
      shown.push_back(choice.empty() ? "\"\"" : choice);
    return fmt::format("one of: {}", fmt::join(shown, ", "));
  }
  if (std::isinf(limits.least)) return {};
  const std::string low = limits.above_least ? fmt::format("above {}", limits.least)
                                             : fmt::format("at least {}", limits.least);
  if (detail == Detail::help && limits.most >= 1e9) return low;
  return fmt::format("{}, at most {}", low, limits.most);
}

// Reads and checks the value of one field.
struct Reader {
  std::string_view key, text, where;
  ExitCode unreadable = ExitCode::configuration;

  template <class T>
  void read(T& value, const FieldLimits& limits) const {
    T parsed{};
    if (!parse(parsed)) refuse(type_name(value), unreadable);
    check(parsed, limits);
    value = parsed;
  }

 private:
  bool parse(std::string& value) const {
    value = text;
    return true;
  }
  bool parse(bool& value) const {
    value = text == "true";
    return text == "true" || text == "false";
  }
  template <class T>
  bool parse(T& value) const {
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, value);
    if (result.ec == std::errc::result_out_of_range && result.ptr == end) {
      using Limits = std::numeric_limits<T>;
      value = text.starts_with('-') ? Limits::lowest() : Limits::max();  // check refuses both
      return true;
    }
    return result.ec == std::errc{} && result.ptr == end;
  }

  void check(bool, const FieldLimits&) const {}
  void check(const std::string& value, const FieldLimits& limits) const {
    if (limits.choices.empty() || std::ranges::count(limits.choices, value) > 0) return;
    std::vector<std::string> named;
    std::ranges::copy_if(limits.choices, std::back_inserter(named),
                         [](const std::string& choice) { return !choice.empty(); });
    throw unknown_name(ExitCode::configuration, key, value, named, where);
  }
  template <class T>
  void check(T value, const FieldLimits& limits) const {
    const auto number = static_cast<double>(value);
    const bool high_enough = limits.above_least ? number > limits.least : number >= limits.least;
    if (!(high_enough && number <= limits.most)) refuse(accepts(limits, Detail::error));
  }

  static const char* type_name(bool) { return "true or false"; }
  static const char* type_name(int64_t) { return "an integer"; }
  static const char* type_name(double) { return "a number"; }
  static const char* type_name(const std::string&) { return "text"; }

  [[noreturn]] void refuse(const std::string& expected,
                           ExitCode code = ExitCode::configuration) const {
    throw Error(code,
                fmt::format("{} = {}{}{}", key, text.empty() ? "''" : text,
                            where.empty() ? "" : " ", where),
                expected);
  }
};

std::vector<std::string> known_keys() {
  std::vector<std::string> names;
  for (const FieldInfo& field : config_fields()) names.push_back(field.name);
  return names;
}

}  // namespace

const std::vector<FieldInfo>& config_fields() {
  static const std::vector<FieldInfo> fields = [] {
    const RunConfig defaults;
    std::vector<FieldInfo> all;
    visit_config(defaults, [&](const FieldRow& row, const auto& value, const auto&...) {
      all.push_back({row.name, row.section, type_of(value), text_of(value), row.help,
                     accepts(row.limits, Detail::help), row.limits.choices});
      std::erase(all.back().choices, "");
    });
    return all;
  }();
  return fields;
}

void set_field(RunConfig& config, std::string_view key, std::string_view value,
               std::string_view where, ExitCode unreadable) {
  bool found = false;
  visit_config(config, [&](const FieldRow& row, auto& field, const auto&...) {
    if (row.name != key) return;
    found = true;
    Reader{key, value, where, unreadable}.read(field, row.limits);
  });
  if (!found) throw unknown_name(ExitCode::configuration, "key", key, known_keys(), where);
}

std::string get_field(const RunConfig& config, std::string_view key) {
  std::optional<std::string> found;
  visit_config(config, [&](const FieldRow& row, const auto& value, const auto&...) {
    if (row.name == key) found = text_of(value);
  });
  if (!found) throw unknown_name(ExitCode::configuration, "key", key, known_keys());
  return *found;
}

std::vector<std::string> split_architectures(std::string_view list) {
  std::vector<std::string> names;
  for (const std::string_view name : split_at_commas(list)) {
    if (name.empty()) {
      throw Error(ExitCode::usage, fmt::format("an empty name in architecture '{}'", list),
                  "names separated by commas, as positional,standard");
    }
    if (std::ranges::find(names, name) != names.end()) {
      throw Error(ExitCode::usage, fmt::format("architecture '{}' is given twice", name));
    }
    names.emplace_back(name);
  }
  return names;
}

const std::vector<std::string>& result_neutral_keys() {
  static const std::vector<std::string> keys = {"checkpoint-every",
                                                "from",  // from-hash says what it held
                                                "hints"};
  return keys;
}

bool can_be_extended(const RunConfig& config) {
  return schedule_kind_from(config.schedule) != ScheduleKind::warmup_linear;
}

}  // namespace posattn
