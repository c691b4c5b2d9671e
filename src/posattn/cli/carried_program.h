// The program that a compiled model carries, for commands that give the model inputs.
#pragma once

#include <string>

#include "posattn/evaluation/table.h"
#include "posattn/model/model_file.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

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

}  // namespace posattn
