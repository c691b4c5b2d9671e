// The commands and flags as data, and the completion scripts made from them.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace posattn {

struct FlagWords {
  std::string name;  // with its dashes
  std::string help;
  bool takes_value = false;
  std::vector<std::string> values;  // known values; empty: a file name
};

// What may stand without a flag.
struct ArgumentWords {
  std::vector<std::string> values;  // known names
  bool files = true;                // also the names of files
};

struct CommandWords {
  std::string name;
  std::string help;
  std::vector<FlagWords> flags;
  ArgumentWords arguments;
};

std::vector<CommandWords> describe_commands(const CLI::App& app);

// Throws unknown_name(usage) for another shell than bash, zsh or fish.
std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands);

}  // namespace posattn
