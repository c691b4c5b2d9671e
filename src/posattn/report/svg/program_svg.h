// Who reads from whom in a static program: a line per processor, a column per round, an arrow from
// the processor that is read to the one that reads it.
#pragma once

#include <string>

#include "posattn/programs/form/static_program.h"

namespace posattn {

// Draws one <svg> element. Throws Error(usage) for more than 128 processors or 200 rounds, which
// nobody could read, and for messages that go where data says.
std::string program_svg(const StaticProgram& program);

}  // namespace posattn
