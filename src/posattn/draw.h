// Drawings, each one <svg> element: lines over several runs (by gnuplot), who reads from whom
// in a program, attention matrices; and pages that step through a network.
//   std::string picture = posattn::program_svg(posattn::library_program("sort", 8));
// Threads: these functions only read what they draw, and keep nothing: several threads may draw.
// One of the installed headers (docs/architecture.md, "The interface"). What they include comes
// along, and may change; what they name is meant to stay.
#pragma once

#include "posattn/report/drawn_rounds.h"
#include "posattn/report/plot/figure.h"
#include "posattn/report/plot/line_style.h"
#include "posattn/report/steps/walk.h"
#include "posattn/report/svg/attention_svg.h"
