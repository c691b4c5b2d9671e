// The language of parallel programs (docs/language.md): a text and a length n give a static
// program.
//
//   program cumulative-sum
//   word x : real = input
//   for d in 1, 2, 4, ... below n:
//     receive y = x from i - d         # a missing neighbour reads zero
//     x = x + y
//   output x
#pragma once

#include <map>
#include <string_view>

#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/source.h"

namespace posattn {

// Values for a program's parameters, in place of the defaults that its text has:
//   parameter K in 1 .. 31 = 16
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

// The parameter with its value in the settings, if they have one. Throws Error(usage) for a value
// that it does not take.
ProgramParameter with_setting(ProgramParameter parameter, const Settings& settings);
// Throws unknown_name(usage) for a setting of a parameter that is not among these.
void refuse_unknown(const Settings& settings, const std::vector<std::string>& known);

struct TextOptions {
  Settings settings = {};  // of the text's parameters, in place of their defaults
  language::Limits limits = {};
  // Where this is not nullptr it gets lines about what is allowed and odd, "scan.par:3:1: the loop
  // ...".
  std::vector<std::string>* warnings = nullptr;
  bool whole = false;     // also what the output does not need
  std::string name = {};  // of a program whose text says none; empty: as its file
};

// `name` is the file's, for errors: "scan.par:3:7: ...". Throws Error(configuration), and
// Error(usage) for settings that the text's parameters do not take.
StaticProgram compile_text(std::string_view text, const std::string& name, int length,
                           const TextOptions& options = {});

// The name in a text's `program` line; empty where it has none.
std::string text_name(std::string_view text, const std::string& file);

// The parameters of a text with these settings.
std::vector<ProgramParameter> text_parameters(std::string_view text, const std::string& name,
                                              int length, const TextOptions& options = {});

// The programs that come with posattn (programs/*.par), and those of a user's own files.

struct LibraryProgram {
  std::string name;         // "sort", or a file's path
  std::string description;  // the text's first comment
  std::string file;         // for errors: "sort.par"
  std::string text;
};

// All that come with posattn, by name.
const std::vector<LibraryProgram>& library_programs();

// A library program by name, or the file where the name ends with .par or has a slash.
// Throws unknown_name(usage), Error(data).
LibraryProgram find_program(const std::string& name_or_path);

// The program for length n. Throws Error(configuration) for a text that is wrong.
StaticProgram library_program(const std::string& name_or_path, int length,
                              const Settings& settings = {});

}  // namespace posattn
