// What a round does, for drawings: compare-exchange, where two processors hold a number each, one
// keeps the smaller and the other the larger; and what processors read, where receives with one
// route are one bundle of arrows.
#pragma once

#include "posattn/programs/form/static_program.h"

namespace posattn {

// min(x, p) on some processors and max(x, p) on the others, as Expression::Kind::exchange.
struct Exchange {
  int word = 0;                    // x, which is replaced
  size_t other = 0, lowering = 0;  // receives: p; and what only the network's second head reads
  bool keeps_minimum(const Round& round, int processor) const;
  bool keeps_own(const Round& round, int processor) const;  // it reads itself
};
std::vector<Exchange> exchanges_of(const Round& round);

struct Comparator {
  int smaller = 0, larger = 0;  // the processors that keep them
};
// The pairs of a round that does nothing but compare-exchange; nothing for other rounds.
std::vector<Comparator> comparators_of(const Round& round, int processors);

struct RouteBundle {
  const Route* route;              // the round's own
  std::vector<std::string> names;  // of what is read
  std::vector<int> words;          // of the program, one for each name
};

// These are the program's: what only the lowering of an exchange reads is left out.
std::vector<RouteBundle> route_bundles(const Round& round);

// Who reads from whom in a static program: a line per processor, a column per round, an arrow from
// the processor that is read to the one that reads it.

// Draws one <svg> element. Throws Error(usage) for more than 128 processors or 200 rounds, which
// nobody could read, and for messages that go where data says.
std::string program_svg(const StaticProgram& program);

}  // namespace posattn
