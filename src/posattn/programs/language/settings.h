// Values for a program's parameters, in place of the defaults that its text has:
//   parameter K in 1 .. 31 = 16
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace posattn {

using Settings = std::map<std::string, double>;  // by the parameter's name

// "K=16,q=4". Throws Error(usage).
Settings parse_settings(std::string_view text);
std::string to_text(const Settings& settings);  // the same form

// A parameter as a program has it at one length.
struct ProgramParameter {
  std::string name;
  double value = 0;
  bool whole = true;  // whole numbers only
  std::optional<double> low, high;
};
std::string to_text(const ProgramParameter& parameter);  // "K = 16 (1 to 31)"

}  // namespace posattn
