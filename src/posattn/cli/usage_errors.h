// What CLI11 found wrong with a command line, in the form of every other error of the program.
#pragma once

#include "posattn/base/error.h"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace posattn {

// Unknown flags and commands are answered with the nearest known name.
Error usage_error(const CLI::App& app, const CLI::Error& error);

// Throws Error(usage) where an option of the chosen command lacks its value; `words` as typed, the
// program's name first. CLI11 would take the next flag for it, or empty text for none given.
void refuse_missing_values(const CLI::App& app, const std::vector<std::string>& words);

// The names of all commands, in the order of --help.
std::vector<std::string> command_names(const CLI::App& app);

// "error: ..." on standard error, red on a terminal.
void print_error(const Error& error);

}  // namespace posattn
