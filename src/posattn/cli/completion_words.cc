#include "posattn/cli/completion_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "posattn/base/error.h"
#include "posattn/model/spec.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

const std::vector<std::string> shells = {"bash", "zsh", "fish"};

std::vector<std::string> known_values(const std::string& flag) {
  std::vector<std::string> values;
  if (flag == "--task") {
    for (const Task* task : tasks()) values.emplace_back(task->name());
  } else if (flag == "--architecture") {
    for (const Preset& preset : presets()) values.push_back(preset.name);
  } else if (flag == "--device") {
    values = {"auto", "cpu", "cuda"};
  } else if (flag == "--precision") {
    values = {"fp32", "tf32"};
  } else if (flag == "--format") {
    values = {"csv", "npy"};
  }
  return values;
}

std::string flag_list(const CommandWords& command) {
  std::string names;
  for (const FlagWords& flag : command.flags) names += (names.empty() ? "" : " ") + flag.name;
  return names;
}

// Single-quoted for every shell; text that goes inside has its quotes taken out.
std::string quoted(std::string text) {
  std::erase(text, '\'');
  return "'" + text + "'";
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::string names, flag_cases, value_cases;
  for (const CommandWords& command : commands) {
    names += (names.empty() ? "" : " ") + command.name;
    flag_cases += fmt::format("    {}) flags='{}' ;;\n", command.name, flag_list(command));
    for (const FlagWords& flag : command.flags) {
      if (flag.values.empty()) continue;
      value_cases += fmt::format("    '{} {}') words='{}' ;;\n", command.name, flag.name,
                                 fmt::join(flag.values, " "));
    }
  }
  return fmt::format(R"(# posattn completion for bash
_posattn() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} flags='' words=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case "$command $previous" in
{}    'completion completion') words='{}' ;;
  esac
  case "$command" in
{}  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _posattn posattn
)",
                     names, value_cases, fmt::join(shells, " "), flag_cases);
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  // In _arguments, ':' and '[' have meanings of their own.
  const auto plain = [](std::string text) {
    std::erase_if(text, [](char c) { return c == '\'' || c == '[' || c == ']' || c == ':'; });
    return text;
  };
  std::string names, cases;
  for (const CommandWords& command : commands) {
    names += fmt::format("    '{}:{}'\n", command.name, plain(command.help));
    cases += fmt::format("    {}) _arguments", command.name);
    for (const FlagWords& flag : command.flags) {
      std::string value;
      if (flag.takes_value) {
        value = flag.values.empty() ? ":value:_files"
                                    : fmt::format(":value:({})", fmt::join(flag.values, " "));
      }
      cases += fmt::format(" \\\n      '*{}[{}]{}'", flag.name, plain(flag.help), value);
    }
    cases += fmt::format(
        " \\\n      '*:argument:{}' ;;\n",
        command.name == "completion" ? fmt::format("({})", fmt::join(shells, " ")) : "_files");
  }
  return fmt::format(R"(#compdef posattn
# posattn completion for zsh
_posattn() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
compdef _posattn posattn
)",
                     names, cases);
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string text = "# posattn completion for fish\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("complete -c posattn -n __fish_use_subcommand -f -a {} -d {}\n",
                        command.name, quoted(command.help));
    for (const FlagWords& flag : command.flags) {
      std::string value;
      if (flag.takes_value) {
        value =
            flag.values.empty() ? " -r" : fmt::format(" -x -a '{}'", fmt::join(flag.values, " "));
      }
      text += fmt::format("complete -c posattn -n '__fish_seen_subcommand_from {}' -l {}{} -d {}\n",
                          command.name, flag.name.substr(2), value, quoted(flag.help));
    }
  }
  text +=
      fmt::format("complete -c posattn -n '__fish_seen_subcommand_from completion' -f -a '{}'\n",
                  fmt::join(shells, " "));
  return text;
}

}  // namespace

std::vector<CommandWords> describe_commands(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    CommandWords words{command->get_name(), command->get_description(), {}};
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::string flag = "--" + name;
        words.flags.push_back({flag, option->get_description(),
                               option->get_items_expected_max() > 0, known_values(flag)});
      }
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

std::string completion_script(const std::string& shell, const std::vector<CommandWords>& commands) {
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh") return zsh_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw unknown_name(ExitCode::usage, "shell", shell, shells);
}

}  // namespace posattn
