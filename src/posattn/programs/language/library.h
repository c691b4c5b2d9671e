// The programs that come with posattn (programs/*.par), and those of a user's own files.
#pragma once

#include <string>
#include <vector>

#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"

namespace posattn {

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
