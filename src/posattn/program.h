// Parallel programs: written as text or with a builder, compiled into exact weights, verified.
//   posattn::Model model = posattn::compile(posattn::compile_text(text, "mine.par", 8));
// Threads: programs and compiled models are plain values, and the library of programs does not
// change: any number of threads may read them. A builder belongs to one thread.
// Messages are routed by compile(); routed_inputs() adds switches where they go by Benes.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/programs/checking/verify.h"
#include "posattn/programs/form/builder.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/messages/route_messages.h"
