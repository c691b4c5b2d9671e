// posattn completion: the scripts are made from the description of the commands, so they always
// agree with the program.

#include <algorithm>

#include "posattn/cli/commands.h"
#include "posattn/cli/usage_errors.h"
#include "posattn/experiments/experiment.h"
#include "posattn/model/spec/spec.h"
#include "posattn/programs/language/language.h"
#include "posattn/tasks/task.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

const std::vector<std::string> shells = {"bash", "zsh", "fish"};

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const LibraryProgram& program : library_programs()) names.push_back(program.name);
  return names;
}

// The values that a flag is known to take; none: a file name.
std::vector<std::string> known_values(const std::string& command, const std::string& flag) {
  std::vector<std::string> values;
  if (flag == "task") {
    for (const Task* task : tasks()) values.emplace_back(task->name());
  } else if (flag == "architecture") {
    for (const Preset& preset : presets()) values.push_back(preset.name);
  } else if (flag == "format") {
    values = {"csv", "npy"};
  } else if (flag == "show") {
    values = command == "programs" ? program_names() : experiment_names();
  } else if (flag == "level") {
    values = {"mpc", "static", "network"};
  } else if (flag == "split") {
    values = {"test", "all"};
  } else {
    for (const FieldInfo& field : config_fields()) {
      if (field.name == flag) values = field.choices;
    }
  }
  return values;
}

// What may stand without a flag: known names, and file names.
struct ArgumentWords {
  std::vector<std::string> names;
  bool files = true;
};

ArgumentWords known_arguments(const CLI::App& app, const std::string& name) {
  if (name == "PROGRAM") return {program_names(), true};
  if (name.starts_with("EXPERIMENT")) return {experiment_names(), true};
  if (name == "RUNS") return {experiment_names(), true};  // with --results
  if (name == "COMMAND") return {command_names(app), false};
  if (name == "SHELL") return {shells, false};
  return {};
}

// Single-quoted for every shell; text that goes inside has its quotes taken out.
std::string quoted(std::string text) {
  std::erase(text, '\'');
  return "'" + text + "'";
}

// What each command adds to a script.
struct ScriptParts {
  std::string names;   // of all commands
  std::string values;  // bash: a case for each flag with known values
  std::string flags;   // bash: a case for each command
  std::string fish;
};

void add_command(const CLI::App& app, const CLI::App& command, ScriptParts& parts) {
  const std::string name = command.get_name();
  const std::string seen =
      fmt::format("complete -c posattn -n '__fish_seen_subcommand_from {}'", name);
  ArgumentWords arguments;
  std::string flags;
  parts.names += name + " ";
  parts.fish += fmt::format("complete -c posattn -n __fish_use_subcommand -f -a {} -d {}\n", name,
                            quoted(command.get_description()));
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_positional()) arguments = known_arguments(app, option->get_name(true));
    for (const std::string& flag : option->get_lnames()) {
      const std::string values = fmt::format("{}", fmt::join(known_values(name, flag), " "));
      const bool takes_value = option->get_items_expected_max() > 0;
      flags += (flags.empty() ? "--" : " --") + flag;
      if (!values.empty()) {
        parts.values += fmt::format("    '{} --{}') words='{}' ;;\n", name, flag, values);
      }
      parts.fish += fmt::format("{} -l {}{} -d {}\n", seen, flag,
                                !takes_value     ? ""
                                : values.empty() ? " -r"
                                                 : fmt::format(" -x -a '{}'", values),
                                quoted(option->get_description()));
    }
  }
  const std::string known = fmt::format("{}", fmt::join(arguments.names, " "));
  parts.flags += fmt::format("    {}) flags='{}' names='{}' files={} ;;\n", name, flags, known,
                             arguments.files ? 1 : 0);
  if (known.empty()) return;
  parts.fish += fmt::format("{}{} -a '{}'\n", seen, arguments.files ? "" : " -f", known);
}

std::string completion_script(const std::string& shell, const CLI::App& app) {
  if (std::ranges::find(shells, shell) == shells.end()) {
    throw unknown_name(ExitCode::usage, "shell", shell, shells);
  }
  ScriptParts parts;
  for (const CLI::App* command : app.get_subcommands({})) add_command(app, *command, parts);
  if (shell == "fish") return "# posattn completion for fish\n" + parts.fish;
  return fmt::format(R"(# posattn completion for {}
{}_posattn() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} flags='' words='' names='' files=1
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{}--help --version' -- "$current"))
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
                     shell, shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "",
                     parts.names, parts.values, parts.flags);
}

struct CompletionFlags {
  std::string shell;
  bool json = false;
};

ExitCode completion(const CompletionFlags& options, const CommandLine& line) {
  const std::string script = completion_script(options.shell, line.app);
  write_output(options.json ? json_text({{"shell", options.shell}, {"script", script}}) : script);
  return ExitCode::done;
}

void add_completion_options(CLI::App& command, CompletionFlags& options) {
  argument(command, "SHELL", options.shell, "bash, zsh or fish")->required();
  add_json_flag(command, options.json);
}

const Command registered_completion(
    {.name = "completion",
     .group = Group::machine,
     .summary = "Print a completion script for bash, zsh or fish",
     .examples = {"source <(posattn completion bash)",
                  "posattn completion bash > ~/.local/share/bash-completion/completions/posattn",
                  "posattn completion zsh > ~/.zfunc/_posattn",
                  "posattn completion fish > ~/.config/fish/completions/posattn.fish"},
     .details = "Completes commands, options, file names, and the names of tasks, architectures, "
                "programs and experiments."},
    add_completion_options, completion);

}  // namespace
}  // namespace posattn
