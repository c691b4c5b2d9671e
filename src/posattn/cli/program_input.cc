#include "posattn/cli/program_input.h"

#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

constexpr int64_t longest = 1 << 20;

// "3-7,9"; the first ones and how many more, where it would be long.
std::string line_ranges(const std::vector<int>& lines) {
  constexpr size_t enough = 24;
  std::string text;
  for (size_t first = 0; first < lines.size();) {
    size_t last = first;
    while (last + 1 < lines.size() && lines[last + 1] == lines[last] + 1) ++last;
    if (text.size() > enough) return fmt::format("{} and {} more", text, lines.size() - first);
    text += fmt::format("{}{}", text.empty() ? "" : ",", lines[first]);
    if (last > first) text += fmt::format("{}{}", last == first + 1 ? ',' : '-', lines[last]);
    first = last + 1;
  }
  return text;
}

}  // namespace

ProgramInput read_program(const std::string& name_or_path, int64_t length, const Settings& settings,
                          bool whole) {
  if (length < 1 || length > longest) {
    throw Error(ExitCode::usage, fmt::format("--length {}", length),
                fmt::format("1 to {}", longest));
  }
  LibraryProgram source = find_program(name_or_path);
  const auto n = static_cast<int>(length);
  std::vector<std::string> warnings;
  const TextOptions options{.settings = settings, .warnings = &warnings, .whole = whole};
  StaticProgram program = compile_text(source.text, source.file, n, options);
  for (const std::string& line : warnings) write_notice("note: " + line);
  std::vector<ProgramParameter> parameters = text_parameters(source.text, source.file, n, options);
  return {std::move(source), std::move(program), std::move(parameters)};
}

CLI::Option* add_set_option(CLI::App& command, std::string& text) {
  return option(command, "--set", text, "LIST", "Parameters of the program, as K=16,q=4");
}

StaticProgram embedded_program(const Model& model, const std::string& path, bool whole) {
  const auto text = model.origin.notes.find("program");
  const auto length = model.origin.notes.find("length");
  if (text == model.origin.notes.end()) {
    throw Error(ExitCode::data, fmt::format("{} carries no program", path),
                "a model that `posattn compile` wrote",
                "posattn evaluate compares any model with its task's answer");
  }
  try {
    const int64_t n = length == model.origin.notes.end()
                          ? model.origin.length
                          : parse_integer(length->second, path + ": length");
    if (n < 1 || n > longest) {
      throw Error(ExitCode::data, fmt::format("{}: length {}", path, n),
                  fmt::format("1 to {}", longest));
    }
    const auto set = model.origin.notes.find("set");
    TextOptions options;
    options.whole = whole;
    if (set != model.origin.notes.end()) options.settings = parse_settings(set->second);
    const auto name = model.origin.notes.find("name");  // only where the text has none
    if (name != model.origin.notes.end()) options.name = printable(name->second);
    StaticProgram program = compile_text(text->second, path, static_cast<int>(n), options);
    // What follows routes it; that this cannot be done is to be known here.
    if (program.sends()) route_messages(program, embedded_routing(model));
    return program;
  } catch (const Error& error) {  // the file's fault
    throw Error(ExitCode::data, error.problem(), error.expected(), error.hint());
  }
}

Routing embedded_routing(const Model& model) {
  const auto note = model.origin.notes.find("routing");
  if (note == model.origin.notes.end()) return Routing::automatic;
  try {
    return parse_routing(note->second);
  } catch (const Error& error) {  // the file's fault
    throw Error(ExitCode::data, error.problem(), error.expected(), error.hint());
  }
}

CLI::Option* add_routing_option(CLI::App& command, std::string& name) {
  return option(command, "--routing", name, "NAME [auto]",
                "How messages travel whose destination is data: auto, static, gather, sort or "
                "benes");
}

std::string plan_summary(const NetworkPlan& plan, int64_t parameters) {
  return fmt::format("{}, n = {}: {} -> {}, {}, {}, {}, {}", plan.program.name, plan.program.length,
                     plural(plan.program.rounds.size(), "round"),
                     plural(plan.layers.size(), "layer"), plural(plan.heads, "head"),
                     plural(plan.width, "word"), plural(plan.hidden, "hidden unit"),
                     plural(parameters, "parameter"));
}

std::string plan_listing(const NetworkPlan& plan) {
  TextTable table({"layer", "round", "lines", "heads", "hidden", "what happens"}, 6);
  for (size_t k = 0; k < plan.layers.size(); ++k) {
    const PlannedLayer& layer = plan.layers[k];
    const bool passing = layer.round >= static_cast<int>(plan.program.rounds.size());
    const bool goes_on = k > 0 && plan.layers[k - 1].round == layer.round;
    std::string lines = "-", what = "passes the result on";
    if (!passing) {
      const Round& round = plan.program.rounds[layer.round];
      lines = round.lines.empty() ? "-" : line_ranges(round.lines);
      const bool continues = k + 1 < plan.layers.size() && plan.layers[k + 1].round == layer.round;
      const std::vector<std::string> updates = describe_updates(plan.program, round, 58);
      what = updates.empty() ? "" : updates.front();
      if (updates.size() > 1) what += fmt::format("; and {} more", updates.size() - 1);
      if (goes_on) what = "(goes on: nested minima, maxima or comparisons)";
      if (!goes_on && continues) what += " ...";
    }
    table.add_row({std::to_string(k), passing ? "-" : std::to_string(layer.round), lines,
                   layer.silent ? "silent" : std::to_string(layer.heads.size()),
                   std::to_string(layer.units.size()), what});
  }
  return table.to_string();
}

}  // namespace posattn
