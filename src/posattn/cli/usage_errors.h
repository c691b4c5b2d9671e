// What CLI11 found wrong with a command line, in the form of every other error of the program.
#pragma once

#include <string>
#include <vector>

#include "posattn/base/error.h"

namespace CLI {
class App;
class Error;
}  // namespace CLI

namespace posattn {

// Unknown flags and commands are answered with the nearest known name.
Error usage_error(const CLI::App& app, const CLI::Error& error);

// Of all commands, in the order of --help.
std::vector<std::string> command_names(const CLI::App& app);

// "error: ..." on standard error, red on a terminal.
void print_error(const Error& error);

}  // namespace posattn
