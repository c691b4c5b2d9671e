// --input of every command: numbers or text as typed, a file, or '-' for standard input; for a
// model, a compiled one with its program, or for a program.
#pragma once

#include <CLI/CLI.hpp>

#include "posattn/evaluation/samples_io.h"
#include "posattn/evaluation/table.h"
#include "posattn/model/file/model_file.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

// What the commands on parallel programs share.

// A program of the library or of a file, at one length.
struct ProgramInput {
  LibraryProgram source;
  StaticProgram program;
  std::vector<ProgramParameter> parameters;  // as set
};
// `whole`: with words and rounds that no output needs, too. Throws Error(usage) for a length below
// 1 or above a million, and for settings that are not the program's.
ProgramInput read_program(const std::string& name_or_path, int64_t length,
                          const Settings& settings = {}, bool whole = false);

// --set K=16,q=4; read it with parse_settings.
CLI::Option* add_set_option(CLI::App& command, std::string& text);

// The program that a compiled model carries; throws Error(data) where it has none.
StaticProgram embedded_program(const Model& model, const std::string& path, bool whole = false);

// How the messages of a compiled model travel; `auto` where the file does not state it.
Routing embedded_routing(const Model& model);
// --routing; read it with parse_routing.
CLI::Option* add_routing_option(CLI::App& command, std::string& name);

// "sort, n = 8: 6 rounds -> 6 layers, 2 heads, 2 words, 4 hidden units, 185 parameters"
std::string plan_summary(const NetworkPlan& plan, int64_t parameters);
// A row for each layer: its round and lines, what it reads, what the words become.
std::string plan_listing(const NetworkPlan& plan);

struct GivenInput {
  std::string bytes;
  std::string name;  // for messages: "--input" of what is typed
};

// Numbers are always numbers: a file with such a name is written as ./5. `takes_text`: words may be
// text too. Throws Error(data) for the name of a file that is not there.
GivenInput given_input(const std::string& input, bool takes_text = false);

// Samples for a model, with their pairs of nodes where it reads some (--pairs, read as --input).
// Those of a compiled one, found at `path`, are checked against its program, and completed with
// what routes their messages. Throws Error(data) where they do not fit.
ReadSamples given_samples(const std::string& input, const std::string& pairs, const Model& model,
                          const std::string& path);
// They as a batch, which looks into them.
Batch batch_of(const ReadSamples& samples, const Model& model, std::string_view name = "--input");

// `target` is a text, or a list of them for an option that may stand several times.
template <class Target>
CLI::Option* add_input_option(CLI::App& command, Target& target, const std::string& what) {
  return command.add_option("--input", target, what + ": typed, a file, or '-' (standard input)")
      ->allow_extra_args(false)
      ->option_text("INPUT");
}

inline void add_pairs_option(CLI::App& command, std::string& target) {
  command
      .add_option("--pairs", target,
                  "The pairs of nodes of each sample, for a model that reads them: as --input")
      ->option_text("INPUT");
}

// The program that a compiled model carries.
struct CarriedProgram {
  StaticProgram program;
  RoutedProgram routed;
};

// Throws Error(data) where the file has none.
CarriedProgram carried_program(const Model& model, const std::string& path);

// Checks rows [rows, processors x inputs] against the program's types and promises, and that the
// program has a value on them: where two messages meet at one word, the network's answer would
// depend on how messages are routed. Switches of Benes networks are added, or checked where the
// rows have them. Rows of another size are left as they are: no model of the program takes them.
// Throws Error(data), which names the row.
void check_rows(const CarriedProgram& carried, Table& table, const std::string& name);

// The numbers [processors, inputs] from one list for each input; a single number of a list behind
// the first is everybody's. Throws Error(data) where they do not fit the program, with `hint` for a
// list of another length, and Error(usage) for another count of lists.
std::vector<double> given_numbers(const std::vector<std::string>& inputs,
                                  const StaticProgram& program, const std::string& hint);

// A program of the library or a file at the length that is asked for, or that of its input.
struct GivenProgram {
  ProgramInput input;
  int64_t length;
  std::vector<double> numbers;  // [processors, inputs]
};
GivenProgram given_program(const std::string& name_or_path, const std::vector<std::string>& inputs,
                           std::optional<int64_t> length, const Settings& settings,
                           bool whole = false);

}  // namespace posattn
