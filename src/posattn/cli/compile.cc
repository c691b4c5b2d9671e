// posattn compile
#include "posattn/programs/lowering/compile.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "posattn/base/text.h"
#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/learning.h"
#include "posattn/programs/checking/rounding.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {
namespace {

// A gathered message is two words, its destination and what it carries.
bool holds_all_messages(const StaticProgram& program) {
  return program.words.size() >= 2 * static_cast<size_t>(program.processors);
}

// Which case of the theorem's count applies.
std::string attained_by(const StaticProgram& program, const RoutedProgram& routed) {
  const auto goes = [&](Routing by) {
    return std::ranges::any_of(routed.ways, [&](const MessageWay& way) { return way.by == by; });
  };
  if (goes(Routing::sort)) {
    return "sort: the network finds the way itself, in ceil(log2 N) (ceil(log2 N) + 1) / 2 stages "
           "a\n"
           "round; the theorem's count takes switches from outside (--routing benes)";
  }
  if (goes(Routing::attention)) {
    return "attention: the receiver looks for the sender in the data, in one layer for all "
           "messages of a\n"
           "round, and another for squares of destinations; no positional Transformer";
  }
  if (goes(Routing::benes)) {
    return "benes: 2 ceil(log2 N) - 1 stages a round, the theorem's count; the switches are "
           "inputs\n"
           "that the program's interpreter computes for each sample";
  }
  if (goes(Routing::gather)) {
    return holds_all_messages(program)
               ? "gather: every machine reads all N messages and picks its own; within the "
                 "theorem's count,\n"
                 "and without switches, as N messages fit into memory (s >= 2 N)"
               : "gather: every machine reads all N messages and picks its own, without switches; "
                 "not\n"
                 "within the theorem's count, as N messages do not fit into memory (s < 2 N)";
  }
  return "static: destinations are known beforehand, so a round of messages is one layer";
}

// How the messages of a program travel in its network, compared with the bounds of Theorem 5.1 for
// N machines of s words in R rounds; "sending" has the rounds that send.
Json message_report(const StaticProgram& program, const RoutedProgram& routed,
                    const NetworkPlan& plan) {
  Json sending = Json::array();
  for (const MessageWay& way : routed.ways) {
    const std::string words = fmt::format("{}", fmt::join(way.words, ", "));
    if (!sending.empty() && sending.back()["round"] == way.round) {
      sending.back()["words"] = sending.back()["words"].get<std::string>() + "; " + words;
      continue;
    }
    size_t layers = 0, heads = 0;
    for (const PlannedLayer& layer : plan.layers) {
      if (layer.round >= static_cast<int>(plan.program.rounds.size())) continue;
      if (plan.program.rounds[layer.round].origin != way.round) continue;
      ++layers;
      heads = std::max(heads, layer.heads.size());
    }
    sending.push_back({{"round", way.round},
                       {"words", words},
                       {"way", to_string(way.by)},
                       {"layers", layers},
                       {"heads", heads}});
  }
  const size_t rounds = program.rounds.size();
  const auto doublings = std::bit_width(static_cast<unsigned>(std::max(1, program.processors) - 1));
  return {{"machines", program.processors},
          {"words", program.words.size()},
          {"rounds", rounds},
          {"theorem_layers", 2 * rounds * doublings},
          {"theorem_heads", 2 * program.words.size()},
          {"attained", attained_by(program, routed)},
          {"sending", sending}};
}

// `with_rounds` adds a row for each round that sends.
std::string message_text(const Json& report, const NetworkPlan& plan, bool with_rounds) {
  const auto number = [&](const char* key) { return report[key].get<int>(); };
  return fmt::format(
      "{}{}\nTheorem 5.1 for N = {}, s = {}, R = {}: 2 R ceil(log2 N) = {} layers, 2 s = {} heads; "
      "here {} and {}\n",
      with_rounds ? json_table(report["sending"],
                               {{"round", "round"},
                                {"messages", "words"},
                                {"way", "way"},
                                {"layers", "layers"},
                                {"heads", "heads"}},
                               2)
                  : "",
      report["attained"].get<std::string>(), number("machines"), number("words"), number("rounds"),
      number("theorem_layers"), number("theorem_heads"), plan.layers.size(), plan.heads);
}

struct CompileFlags {
  std::string program, settings, output, pad_to, routing = "auto", attention = "positions";
  int64_t length = 8;
  bool dense = false, precision_check = false, layers = false, json = false;
  double sharpness = 1024;
};

// d,H,hidden,L
PlanSizes parse_sizes(const std::string& text) {
  if (text.empty()) return {};
  std::vector<int64_t> numbers;
  for (const std::string_view part : split_at_commas(text)) {
    numbers.push_back(parse_integer(part, "--pad-to"));
  }
  const auto sensible = [](int64_t x) { return x >= 1 && x <= 1 << 16; };
  if (numbers.size() != 4 || !std::all_of(numbers.begin(), numbers.end(), sensible)) {
    throw Error(ExitCode::usage, fmt::format("--pad-to '{}'", text),
                "width,heads,hidden,layers, as 64,2,64,6");
  }
  return {static_cast<int>(numbers[0]), static_cast<int>(numbers[1]), static_cast<int>(numbers[2]),
          static_cast<int>(numbers[3])};
}

Routing routing_of(const CompileFlags& options, const StaticProgram& program) {
  if (options.attention == "positions") return parse_routing(options.routing);
  if (options.attention != "data") {
    throw unknown_name(ExitCode::usage, "attention", options.attention, {"positions", "data"});
  }
  if (!program.sends()) {
    throw Error(ExitCode::configuration,
                fmt::format("attention from the data for program '{}', which sends no messages",
                            program.name),
                "a program with `send`, as k-hop", "leave out --attention");
  }
  return Routing::attention;
}

// How exact the network is: exact for whole numbers, and for reals to this part of the largest
// input.
std::string precision_text(const NetworkPlan& plan, bool dense) {
  const auto is_real = [&](int word) { return plan.program.words[word].type.is_real(); };
  if (std::ranges::none_of(plan.program.outputs, is_real)) {
    return fmt::format(
        "whole numbers: the largest sum is {:.0f} of the 16777216 that fp32 holds exactly ({})\n",
        plan.largest_integer_sum,
        plan.largest_integer_place.empty() ? "no sums" : plan.largest_integer_place);
  }
  // Not whole numbers, which would be exact.
  const std::vector<double> ones(plan.program.processors * plan.program.inputs.size(), 0.99999994);
  const auto is_curve = [](const Instruction& x) { return x.kind == Operator::Kind::curve; };
  if (std::ranges::any_of(plan.program.rounds, [&](const Round& round) {
        return std::ranges::any_of(round.instructions, is_curve);
      })) {
    return "tables: how far off an output may be depends on the input; posattn verify says it\n";
  }
  const auto largest = [&](double roundoff) {
    const BoundedOutputs outputs = bounded_run(plan, ones.data(), roundoff, dense);
    return *std::max_element(outputs.bounds.begin(), outputs.bounds.end());
  };
  return fmt::format(
      "rounding: for inputs of 1 an output is within {:.2g} (fp32) or {:.2g} (double) of exact, "
      "and in proportion for larger ones\n",
      largest(float_roundoff), largest(double_roundoff));
}

// A learning algorithm has no routes, rounds or messages.
void refuse_for_learning(const CompileFlags& options) {
  const CompileFlags standard;
  const std::pair<bool, const char*> given[] = {
      {options.dense, "--dense"},
      {options.layers, "--layers"},
      {options.precision_check, "--precision-check"},
      {!options.pad_to.empty(), "--pad-to"},
      {options.routing != standard.routing, "--routing"},
      {options.attention != standard.attention, "--attention"}};
  for (const auto& [is_given, flag] : given) {
    if (!is_given) continue;
    throw Error(ExitCode::usage, fmt::format("{} with '{}'", flag, options.program),
                "a parallel program", "a learning algorithm takes --length, --set and --output");
  }
}

ExitCode compile_program(const CompileFlags& options) {
  refuse_with_standard_output(options.output, options.json, "--json");
  refuse_with_standard_output(options.output, options.precision_check, "--precision-check");
  refuse_with_standard_output(options.output, options.layers, "--layers");
  const Settings settings = parse_settings(options.settings);
  if (const LearningAlgorithm* algorithm = find_learning_algorithm(options.program)) {
    refuse_for_learning(options);
    const int nodes = static_cast<int>(std::clamp<int64_t>(options.length, 0, 1 << 30));
    return compile_learning(LearningProgram(*algorithm, nodes, settings), options.output,
                            options.json);
  }
  const ProgramInput input = read_program(options.program, options.length, settings);
  if (!(options.sharpness > 0) || !std::isfinite(options.sharpness)) {
    throw Error(ExitCode::usage, fmt::format("--sharpness {}", options.sharpness),
                "a number above 0");
  }
  const Routing routing = routing_of(options, input.program);
  const RoutedProgram routed = route_messages(input.program, routing);
  const NetworkPlan plan = plan_network(routed.program, parse_sizes(options.pad_to));
  CompileOptions how;
  how.dense = options.dense;
  how.sharpness = options.sharpness;
  how.program = input.source.text;
  Model model = compile(plan, how);
  if (text_name(input.source.text, input.source.file).empty()) {
    model.origin.notes["name"] = input.program.name;  // the file's, which the text does not say
  }
  model.origin.notes["length"] = std::to_string(options.length);
  if (!settings.empty()) model.origin.notes["set"] = to_text(settings);
  if (input.program.sends()) model.origin.notes["routing"] = to_string(routing);
  const std::string path =
      options.output.empty() ? plan.program.name + ".safetensors" : options.output;
  write_result(path, model_bytes(model));
  if (is_standard_output(path)) return ExitCode::done;
  const int64_t parameters = model.parameters.layout().parameter_count();
  const Json messages = message_report(input.program, routed, plan);
  if (options.json) {
    Json document = {{"model", path},
                     {"program", plan.program.name},
                     {"length", options.length},
                     {"rounds", plan.program.rounds.size()},
                     {"layers", plan.layers.size()},
                     {"heads", plan.heads},
                     {"words", plan.width},
                     {"hidden", plan.hidden},
                     {"parameters", parameters},
                     {"architecture", plan.program.sends() ? preset_name(model.spec)
                                      : plan.constants     ? "m1"
                                                           : "m5"},
                     {"attention", plan.program.sends() ? "data"
                                   : options.dense      ? "dense"
                                                        : "routes"},
                     {"largest_integer_sum", plan.largest_integer_sum}};
    if (input.program.sends()) document["messages"] = messages;
    write_output(json_text(document));
    return ExitCode::done;
  }
  std::string text = plan_summary(plan, parameters) + "\n";
  text += fmt::format("{}; {}\n",
                      plan.constants ? "M1: constants enter through the positions in the input"
                                     : "M5: zero stays zero, the input is the value alone",
                      model.spec.routed()
                          ? "attention as routes"
                          : fmt::format("queries and keys, sharpness {}", options.sharpness));
  if (options.layers) text += "\n" + plan_listing(plan) + "\n";
  if (input.program.sends()) text += message_text(messages, plan, options.layers);
  if (options.precision_check) text += precision_text(plan, !model.spec.routed());
  text += fmt::format(
      "written to {0}\nnext:  posattn verify {0}\n"
      "       posattn evaluate {0}{1}\n",
      path, model.origin.integers ? "" : " --scales 1..10,1000");
  write_output(text);
  return ExitCode::done;
}

void add_compile_options(CLI::App& command, CompileFlags& options) {
  argument(command, "PROGRAM", options.program, "A program's or algorithm's name, or a .par file")
      ->required();
  option(command, "--length", options.length, "INT [8]", "Numbers per input, n");
  add_set_option(command, options.settings);
  add_output_option(command, options.output, "The model file; '-': standard output",
                    "FILE [PROGRAM.safetensors]");
  CLI::Option* dense =
      command.add_flag("--dense", options.dense,
                       "Queries and keys instead of routes, as PyTorch loads them (n up to 128)");
  option(command, "--sharpness", options.sharpness, "NUMBER [1024]",
         "Sharpness of dense attention; from 104 on it is exactly one-hot in fp32")
      ->needs(dense);
  option(command, "--pad-to", options.pad_to, "D,H,M,L",
         "Embed in an architecture of width,heads,hidden,layers");
  CLI::Option* routing = add_routing_option(command, options.routing);
  option(command, "--attention", options.attention, "NAME [positions]",
         "What finds messages whose destination is data: positions, or data, with one layer of "
         "softmax attention a round, for up to 256 processors")
      ->excludes(routing);
  CLI::Option* layers =
      command.add_flag("--layers", options.layers, "Say what happens in every layer");
  CLI::Option* check = command.add_flag("--precision-check", options.precision_check,
                                        "Say how exact the network's arithmetic is");
  add_json_flag(command, options.json).excludes(check)->excludes(layers);
}

const Command registered_compile(
    {.name = "compile",
     .group = Group::algorithms,
     .summary = "Turn a parallel program or a learning algorithm into an exact Transformer",
     .examples = {"posattn compile sort --length 8 -o sort.safetensors",
                  "posattn compile sort --length 8 --layers",
                  "posattn compile list-ranking --length 100 --attention data -o ranks.safetensors",
                  "posattn compile in-context-ridge --length 11 --set d=5,steps=20 -o "
                  "ridge.safetensors",
                  "posattn compile mine.par --length 16 --precision-check -o mine.safetensors",
                  "posattn compile sort --length 8 --dense --sharpness 15 --pad-to 64,2,64,6 -o "
                  "dense.safetensors"},
     .details = "The model file also holds the text of the program, which `posattn verify` reads. "
                "A program that cannot be exact is refused with the reason. docs/language.md "
                "describes the language.\n\nA learning algorithm (in-context-lasso, "
                "in-context-ridge, in-context-select) learns from the examples of its sample, by "
                "ReLU attention from the data: the query at the first node, then the examples, "
                "columns [x | y]. --length counts all of them."},
    add_compile_options, compile_program);

}  // namespace
}  // namespace posattn
