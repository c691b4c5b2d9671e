// Enumerations as files and flags spell them: a list of values with their names.
#pragma once

#include <array>

#include "posattn/base/error.h"

namespace posattn {

template <class T, size_t count>
using EnumNames = std::array<std::pair<T, std::string_view>, count>;

template <class T, size_t count>
std::string_view name_of(const EnumNames<T, count>& names, T value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "";
}

// Throws unknown_name(code) for a `kind` of thing that has no such value.
template <class T, size_t count>
T value_of(const EnumNames<T, count>& names, ExitCode code, std::string_view kind,
           std::string_view name) {
  std::vector<std::string> known;
  for (const auto& [value, its_name] : names) {
    if (its_name == name) return value;
    known.emplace_back(its_name);
  }
  throw unknown_name(code, kind, name, known);
}

}  // namespace posattn
