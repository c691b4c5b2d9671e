#include "posattn/cli/usage_errors.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "posattn/base/text.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/training/run_config.h"

namespace posattn {
namespace {

std::vector<std::string> flag_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

Error unknown_argument(const CLI::App& app, const CLI::App* command, const std::string& argument) {
  if (argument.starts_with("-")) {
    const std::string flag = argument.substr(0, argument.find('='));
    const std::string where = command == nullptr
                                  ? "(flags of a command come after its name)"
                                  : fmt::format("of 'posattn {}'", command->get_name());
    return unknown_name(ExitCode::usage, "flag", flag,
                        flag_names(command == nullptr ? app : *command), where);
  }
  if (command == nullptr) {
    return unknown_name(ExitCode::usage, "command", argument, command_names(app));
  }
  return Error(
      ExitCode::usage,
      fmt::format("unexpected argument '{}' of 'posattn {}'", argument, command->get_name()), "",
      fmt::format("posattn {} --help", command->get_name()));
}

// "Could not convert: --epochs = 1e9" in words; only numbers can fail so.
Error no_number(const CLI::App& command, std::string text) {
  text.erase(0, text.find(": ") + 2);
  const std::string flag = text.substr(0, text.find(" = "));
  const CLI::Option* option = command.get_option_no_throw(flag);
  std::string expected = "a whole number, written in digits";
  if (option != nullptr && option->get_type_name() == "FLOAT") expected = "a number";
  const std::string value = option == nullptr ? "" : option->results().back();
  if (!value.empty() && value.find_first_not_of("-0123456789") == std::string::npos) {
    expected = "a number nearer to 0";
  }
  return Error(ExitCode::usage, text, expected,
               fmt::format("'posattn {} --help' shows the options", command.get_name()));
}

// "--trace excludes --json", "--sharpness requires --dense" in the form of other errors.
std::optional<Error> wrong_together(const CLI::Error& error) {
  const bool both = dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr;
  if (!both && dynamic_cast<const CLI::RequiresError*>(&error) == nullptr) return std::nullopt;
  const std::string text = error.what();
  const size_t space = text.find(' '), last = text.rfind(' ');
  const std::string first = text.substr(0, space), second = text.substr(last + 1);
  const std::string hint = fmt::format("leave {} out", first);
  if (both) {
    return Error(ExitCode::usage, fmt::format("both {} and {} are given", first, second),
                 "one of them: together one would have no effect", hint);
  }
  return Error(ExitCode::usage, fmt::format("{} without {}", first, second),
               "both: alone it would have no effect", hint + fmt::format(", or add {}", second));
}

const CLI::App* find_command(const CLI::App& app, const std::string& name) {
  const std::vector<const CLI::App*> all = app.get_subcommands({});
  const auto found =
      std::ranges::find(all, name, [](const CLI::App* one) { return one->get_name(); });
  return found == all.end() ? nullptr : *found;
}

// Whose flag the word is: "--seeds", "--seeds=1", "-o"; a number below 0 is none.
const CLI::Option* named_option(const CLI::App& command, const std::string& word) {
  if (!word.starts_with("-")) return nullptr;
  return command.get_option_no_throw(word.substr(0, word.find('=')));
}

// Empty text is a meaningful value of a run's setting: the preset's encoding, no model to start
// from.
bool may_be_empty(const CLI::App& command, const CLI::Option& option) {
  return command.get_name() == "train" &&
         std::ranges::any_of(config_fields(), [&](const FieldInfo& field) {
           return option.check_lname(field.name);
         });
}

// What a value would have to be where `next` is none; empty where it is one.
std::string missing_value(const CLI::App& command, const CLI::Option& option,
                          const std::string* next) {
  if (next == nullptr || *next == "--") return "one behind it";
  if (next->empty()) return may_be_empty(command, option) ? "" : "one that is not empty";
  if (named_option(command, *next) == nullptr) return "";
  return fmt::format("one behind it: '{}' is a flag", *next);
}

// "--epochs: At Most 1 required but received 2" in words.
std::optional<Error> given_too_often(const CLI::Error& error) {
  const std::string text = error.what();
  const size_t colon = text.find(": At Most 1 "), count = text.rfind(' ');
  if (colon == std::string::npos) return std::nullopt;
  const std::string flag = text.substr(0, colon);
  return Error(ExitCode::usage, fmt::format("{} given {} times", flag, text.substr(count + 1)),
               "once", fmt::format("leave all but one {} out", flag));
}

}  // namespace

void refuse_missing_values(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = words.size() < 2 ? nullptr : find_command(app, words[1]);
  if (command == nullptr) return;
  for (size_t w = 2; w < words.size() && words[w] != "--"; ++w) {
    const CLI::Option* option = named_option(*command, words[w]);
    if (option == nullptr) continue;
    const size_t equals = words[w].find('=');
    const std::string flag = words[w].substr(0, equals);
    std::string expected;
    if (equals != std::string::npos) {
      if (equals + 1 == words[w].size()) expected = "one behind '='";
    } else if (option->get_items_expected_max() > 0) {
      ++w;
      expected = missing_value(*command, *option, w < words.size() ? &words[w] : nullptr);
    }
    if (expected.empty()) continue;
    throw Error(ExitCode::usage, fmt::format("{} without a value", flag), expected,
                fmt::format("'posattn {} --help' shows the options", command->get_name()));
  }
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

Error usage_error(const CLI::App& app, const CLI::Error& error) {
  const auto selected = app.get_subcommands();
  const CLI::App* command = selected.empty() ? nullptr : selected.front();
  const std::vector<std::string> left_over = app.remaining(true);
  if (!left_over.empty()) return unknown_argument(app, command, left_over.front());
  if (command != nullptr && std::string_view(error.what()).starts_with("Could not convert: ")) {
    return no_number(*command, error.what());
  }
  if (const auto together = wrong_together(error)) return *together;
  if (const auto often = given_too_often(error)) return *often;
  const std::string name = command == nullptr ? "" : " " + command->get_name();
  return Error(ExitCode::usage, error.what(), "",
               fmt::format("'posattn{} --help' shows the options and examples", name));
}

void print_error(const Error& error) {
  // Messages contain names from files and flags: no escape sequence of theirs reaches the
  // terminal.
  const auto shown = [](const std::string& message) { return printable(message, true); };
  // Long lists of names are wrapped; hints are not, as they may hold commands to paste.
  constexpr int columns = 100;
  std::string text = in_red("error:", stderr) + " " + shown(error.problem()) + "\n";
  if (!error.expected().empty()) {
    text += "  " + wrapped("expected " + shown(error.expected()), columns, 4) + "\n";
  }
  if (!error.hint().empty()) text += "  HINT: " + shown(error.hint()) + "\n";
  // Nothing can be done when standard error itself cannot be written to.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
}

}  // namespace posattn
