// Runs gnuplot as a child process: a script in, what it draws out. No shell is involved.
#pragma once

#include "posattn/base/error.h"

namespace posattn {

// Error(failed), with a hint.
class NoGnuplot : public Error {
  using Error::Error;
};

// What a page says in place of its figures then.
inline constexpr std::string_view no_figures =
    "No figures: gnuplot was not found (Debian's package gnuplot-nox).";

// What the script writes to its standard output (with `set terminal svg` and no `set output`).
// Throws NoGnuplot where gnuplot is not installed, and Error(failed).
std::string run_gnuplot(std::string_view script);

struct DrawingText {
  std::string name;                // letters and digits, different for the drawings of one page
  std::string title, description;  // for those who do not see the drawing
};

// A drawing of `set terminal svg` as one element for a page that may hold others: without the XML
// declaration, with `name` in front of every id, with a title that says what it shows, and
// following the reader's choice of a dark page.
std::string svg_element(std::string drawing, const DrawingText& text);

// `text` as one gnuplot string: every sign in ASCII is an escape, so that gnuplot sees neither a
// quote nor a `command` in it. A line break becomes a space, and what SVG cannot hold U+FFFD. In
// enhanced text _ ^ { } @ & keep their meaning: say noenhanced where the string is used.
std::string gnuplot_quote(std::string_view text);

}  // namespace posattn
