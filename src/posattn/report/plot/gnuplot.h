// Runs gnuplot as a child process: a script in, what it draws out. No shell is involved.
#pragma once

#include <string>
#include <string_view>

namespace posattn {

// What the script writes to its standard output (with `set terminal svg` and no `set output`).
// Throws Error(failed), with a hint when gnuplot is not installed.
std::string run_gnuplot(std::string_view script);

// A drawing of `set terminal svg name NAME` as one element for a page that may hold others: without
// the XML declaration, every id with NAME (letters and digits) in front.
std::string svg_element(std::string drawing, const std::string& name);

// `text` as one gnuplot string. Single-quoted, so that neither `commands` nor escapes are expanded;
// a line break would end the string and becomes a space. What SVG cannot hold becomes U+FFFD.
std::string gnuplot_quote(std::string_view text);

}  // namespace posattn
