#include "posattn/cli/completion_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "posattn/base/error.h"
#include "posattn/cli/usage_errors.h"
#include "posattn/experiments/experiment.h"
#include "posattn/model/spec.h"
#include "posattn/programs/language/library.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

const std::vector<std::string> shells = {"bash", "zsh", "fish"};

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const LibraryProgram& program : library_programs()) names.push_back(program.name);
  return names;
}

std::vector<std::string> known_values(const std::string& command, const std::string& flag) {
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
  } else if (flag == "--show") {
    values = command == "programs" ? program_names() : experiment_names();
  } else if (flag == "--level") {
    values = {"mpc", "static", "network"};
  } else if (flag == "--split") {
    values = {"test", "all"};
  }
  return values;
}

// Of a positional argument, by its name in the help.
ArgumentWords known_arguments(const CLI::App& app, const std::string& name) {
  if (name == "PROGRAM") return {program_names(), true};
  if (name.starts_with("EXPERIMENT")) return {experiment_names(), true};
  if (name == "RUNS") return {experiment_names(), true};  // with --results
  if (name == "COMMAND") return {command_names(app), false};
  if (name == "SHELL") return {shells, false};
  return {};
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
    flag_cases +=
        fmt::format("    {}) flags='{}' names='{}' files={} ;;\n", command.name, flag_list(command),
                    fmt::join(command.arguments.values, " "), command.arguments.files ? 1 : 0);
    for (const FlagWords& flag : command.flags) {
      if (flag.values.empty()) continue;
      value_cases += fmt::format("    '{} {}') words='{}' ;;\n", command.name, flag.name,
                                 fmt::join(flag.values, " "));
    }
  }
  return fmt::format(R"(# posattn completion for bash
_posattn() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} flags='' words='' names='' files=1
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  case "$command $previous" in
{}  esac
  case "$command" in
{}  esac
  if [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  elif [[ $current == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$current"))
  else
    COMPREPLY=($(compgen -W "$names" -- "$current"))
    if ((files)); then COMPREPLY+=($(compgen -f -- "$current")); fi
  fi
}}
complete -o filenames -F _posattn posattn
)",
                     names, value_cases, flag_cases);
}

std::string zsh_script(const std::vector<CommandWords>& commands) {
  // In _arguments, ':' and '[' have meanings of their own.
  const auto plain = [](std::string text) {
    std::erase_if(text, [](char c) { return c == '\'' || c == '[' || c == ']' || c == ':'; });
    return text;
  };
  std::string names, cases, functions;
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
    // Names and files together take a function of their own: an action has room for one of them.
    const std::string known = fmt::format("({})", fmt::join(command.arguments.values, " "));
    std::string action = command.arguments.values.empty() ? "_files" : known;
    if (!command.arguments.values.empty() && command.arguments.files) {
      action = fmt::format("_posattn_{}_arguments", command.name);
      functions += fmt::format("{}() {{ _alternative 'names:name:{}' 'files:file:_files' }}\n",
                               action, known);
    }
    cases += fmt::format(" \\\n      '*:argument:{}' ;;\n", action);
  }
  return fmt::format(R"(#compdef posattn
# posattn completion for zsh
{}_posattn() {{
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
                     functions, names, cases);
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
    if (command.arguments.values.empty()) continue;
    text += fmt::format("complete -c posattn -n '__fish_seen_subcommand_from {}'{} -a '{}'\n",
                        command.name, command.arguments.files ? "" : " -f",
                        fmt::join(command.arguments.values, " "));
  }
  return text;
}

}  // namespace

std::vector<CommandWords> describe_commands(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands({})) {
    CommandWords words{command->get_name(), command->get_description(), {}, {}};
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) words.arguments = known_arguments(app, option->get_name(true));
      for (const std::string& name : option->get_lnames()) {
        const std::string flag = "--" + name;
        words.flags.push_back({flag, option->get_description(),
                               option->get_items_expected_max() > 0,
                               known_values(command->get_name(), flag)});
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
