// What the commands on parallel programs share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "posattn/model/model_file.h"
#include "posattn/programs/language/library.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

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

}  // namespace posattn
