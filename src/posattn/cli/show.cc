// posattn show

#include <algorithm>

#include "posattn/cli/commands.h"
#include "posattn/cli/given_input.h"
#include "posattn/cli/model_paths.h"
#include "posattn/evaluation/predict.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/messages/route_messages.h"
#include "posattn/report/drawn_rounds.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/steps/walk.h"

namespace posattn {
namespace {

struct ShowFlags {
  std::string program, settings, level = "network", output, letters, pairs;
  std::optional<int> follow;        // a processor, whose output's way is marked
  std::vector<std::string> inputs;  // one list for each input of a program
  std::optional<int64_t> length;
};

ExitCode show_program(const ShowFlags& options) {
  check_ending("--output", options.output, ".svg");
  const ProgramInput input =
      read_program(options.program, options.length.value_or(8), parse_settings(options.settings));
  const std::string path = options.output.empty() ? input.program.name + ".svg" : options.output;
  write_result(path, program_svg(route_messages(input.program, Routing::automatic).program));
  if (is_standard_output(path)) return ExitCode::done;
  write_output(fmt::format("{} of {} in {}\n", plural(input.program.rounds.size(), "round"),
                           plural(input.program.processors, "processor"), path));
  return ExitCode::done;
}

bool names_a_model(const std::string& name) {
  std::error_code ignored;
  return name.ends_with(".safetensors") || std::filesystem::is_directory(name, ignored);
}

// A page, and the name that its file has unless --output says another.
struct NamedWalk {
  Walk walk;
  std::string name;
};

Walk trained_walk(const Model& model, const std::string& path,
                  const std::vector<std::string>& inputs, const std::string& pairs) {
  if (inputs.size() != 1) {
    throw Error(ExitCode::usage, "--input given " + plural(inputs.size(), "time"),
                "once for a trained model: its row, node after node");
  }
  const ReadSamples samples = given_samples(inputs[0], pairs, model, path);
  check_one_row(samples.table, "--input");
  return network_walk(model, batch_of(samples, model));
}

// " --input 1,2,3,4" with as many numbers as it takes, each of this type.
std::string example_input(int numbers, const WordType& type) {
  constexpr int most = 16;
  if (numbers > most) return fmt::format(" --input LIST (of {} numbers)", numbers);
  std::string list;
  for (int64_t k = 1; k <= numbers; ++k) {
    list += fmt::format("{}{}", k == 1 ? "" : ",",
                        type.is_real() ? k : std::clamp(k, type.low, type.high));
  }
  return " --input " + list;
}

// The error for a model that is named without an input: it says which input the model takes.
Error no_input(const std::string& name) {
  const std::filesystem::path path = find_model(name);
  const Model model = read_model(path, {});
  std::string expected = "the input to follow through it", inputs;
  if (model.origin.notes.contains("program")) {
    const StaticProgram program = embedded_program(model, path.string());
    for (const int word : program.inputs) {
      inputs += example_input(program.processors, program.words[word].type);
    }
  } else if (const TaskText* text = text_of(model)) {
    return {ExitCode::usage, "a model without --input",
            fmt::format("{}: {}", expected, text->form())};
  } else {
    const RowPattern pattern = row_pattern(model.spec);
    const auto columns = static_cast<int>(pattern.whole + pattern.real);
    inputs = example_input(model.spec.real_nodes * columns, WordType::real());
  }
  return {ExitCode::usage, "a model without --input", expected,
          fmt::format("posattn show {}{} -o run.html", name, inputs)};
}

// The way of one output.
void mark_followed(Walk& walk, const StaticProgram& program, const std::vector<double>& numbers,
                   const ShowFlags& options) {
  if (!options.follow) return;
  if (*options.follow < 0 || *options.follow >= program.processors) {
    throw Error(ExitCode::usage, fmt::format("--follow {}", *options.follow),
                fmt::format("a processor, 0 to {}", program.processors - 1));
  }
  const auto way = follow(program, numbers, *options.follow);
  for (size_t step = 0; step < way.size(); ++step) {
    if (!way[step]) continue;
    walk.steps[step].followed_node = way[step]->processor;
    walk.steps[step].followed_column = way[step]->word;
  }
  walk.facts.push_back(fmt::format("followed: the output of processor {}", *options.follow));
}

// A program has a walk through its own rounds, with messages as they are sent, or those of the
// network, in which they have been routed; `network` makes or has the network of the routed
// program.
template <class MakeNetwork>
Walk walk_through(const StaticProgram& program, const std::string& text,
                  const std::vector<double>& numbers, Routing routing, const ShowFlags& options,
                  const MakeNetwork& network) {
  if (options.level == "mpc") {
    Walk walk = program_walk(program, text, numbers, options.letters);
    mark_followed(walk, program, numbers, options);
    return walk;
  }
  const RoutedProgram routed = route_messages(program, routing);
  const std::vector<double> inputs = routed_inputs<double>(program, routed, numbers, 1);
  Walk walk = program_walk(routed.program, text, inputs, options.letters);
  compare_with_network(network(routed.program), routed.program, inputs, walk);
  mark_followed(walk, routed.program, inputs, options);
  return walk;
}

NamedWalk model_walk(const ShowFlags& options) {
  if (options.length || !options.settings.empty()) {
    throw Error(ExitCode::usage, options.length ? "--length for a model" : "--set for a model",
                "a program: a model is compiled or trained already");
  }
  const std::filesystem::path path = find_model(options.program);
  const Model model = read_model(path, {});
  const bool in_folder = path.filename() == "model.safetensors";
  NamedWalk found;
  found.name = in_folder ? path.parent_path().filename().string() : path.stem().string();
  const auto text = model.origin.notes.find("program");
  if (text == model.origin.notes.end()) {
    if (options.follow || !options.letters.empty()) {
      throw Error(ExitCode::usage,
                  options.follow ? "--follow for a trained model" : "--letters for a trained model",
                  "a program, or a model compiled from one");
    }
    found.walk = trained_walk(model, path.string(), options.inputs, options.pairs);
  } else {
    const StaticProgram program = embedded_program(model, path.string(), options.level == "mpc");
    const std::vector<double> numbers = given_numbers(
        options.inputs, program, "posattn compile PROGRAM --length N makes a model for another n");
    const auto itself = [&](const StaticProgram&) -> const Model& { return model; };
    found.walk =
        walk_through(program, text->second, numbers, embedded_routing(model), options, itself);
  }
  found.walk.facts.push_back(path.string());
  return found;
}

NamedWalk compiled_walk(const ShowFlags& options) {
  const auto [input, length, numbers] =
      given_program(options.program, options.inputs, options.length,
                    parse_settings(options.settings), options.level == "mpc");
  const auto compiled = [](const StaticProgram& program) { return compile(program); };
  return {walk_through(input.program, input.source.text, numbers, Routing::automatic, options,
                       compiled),
          input.program.name};
}

ExitCode show_steps(const ShowFlags& options) {
  check_ending("--output", options.output, ".html");
  if (options.level != "mpc" && options.level != "network") {
    throw unknown_name(ExitCode::usage, "level", options.level, {"mpc", "network"});
  }
  const NamedWalk found =
      names_a_model(options.program) ? model_walk(options) : compiled_walk(options);
  const std::string path = options.output.empty() ? found.name + ".html" : options.output;
  write_result(path, step_page(found.walk));
  if (is_standard_output(path)) return ExitCode::done;
  write_output(fmt::format("{} of {} in {}\n", plural(found.walk.steps.size() - 1, "step"),
                           plural(found.walk.nodes, found.walk.node_noun), path));
  return ExitCode::done;
}

ExitCode show_or_step(const ShowFlags& options) {
  if (!options.inputs.empty()) return show_steps(options);
  if (options.follow || !options.letters.empty()) {
    throw Error(ExitCode::usage,
                options.follow ? "--follow without --input" : "--letters without --input",
                "an input to step through");
  }
  if (!names_a_model(options.program)) return show_program(options);
  throw no_input(options.program);
}

void add_show_options(CLI::App& command, ShowFlags& options) {
  argument(command, "PROGRAM", options.program,
           "A program's name or its .par file; with --input also a model file or run folder")
      ->required();
  add_input_option(command, options.inputs,
                   "Numbers or text to step through, once for each input of a program");
  add_pairs_option(command, options.pairs);
  option(command, "--length", options.length, "INT [8]",
         "Numbers per input, n; with --input the count of numbers");
  option(command, "--level", options.level, "TEXT [network]",
         "With --input: mpc: messages as the program sends them; network: routed, as the "
         "network has them");
  option(command, "--follow", options.follow, "INT",
         "With --input, of a program: mark who carries this processor's output, from the "
         "start to the end");
  option(command, "--letters", options.letters, "TEXT",
         "With --input, of a program: characters for 0, 1, ... of its first input, as _abcd");
  add_set_option(command, options.settings);
  add_output_option(command, options.output,
                    "The picture or, with --input, the page; '-': standard output",
                    "FILE [PROGRAM.svg]");
}

const Command registered_show(
    {.name = "show",
     .group = Group::algorithms,
     .summary = "Draw how data moves in a parallel program, or step through a network",
     .examples = {"posattn show sort --length 8 -o sort.svg",
                  "posattn show sort --input 3,1,2 -o run.html",
                  "posattn show k-hop --input 1,2,1,3,1,2 --input 2 --letters _abcd --follow 5",
                  "posattn show runs/cumulative-sum/positional-seed0 --input 1,2,3,4,5,6,7,8"},
     .details = "Without --input it draws which processors each processor reads from, round by "
                "round. With --input it writes a page that steps through the rounds of a compiled "
                "program, or the layers of a trained model. The page opens in any browser and "
                "needs no network; use the arrow keys, Home, End and space, or swipe."},
    add_show_options, show_or_step);

}  // namespace
}  // namespace posattn
