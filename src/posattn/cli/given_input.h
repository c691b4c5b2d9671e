// --input of every command: numbers or text as typed, a file, or '-' for standard input.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "posattn/evaluation/samples_io.h"

namespace posattn {

struct GivenInput {
  std::string bytes;
  std::string name;  // for messages: "--input" of what is typed
};

// Numbers are always numbers: a file with such a name is written as ./5. `takes_text`: words may be
// text too. Throws Error(data) for the name of a file that is not there.
GivenInput given_input(const std::string& input, bool takes_text = false);

// Samples for a model. Those of a compiled one, found at `path`, are checked against its program,
// and completed with what routes their messages. Throws Error(data) where they do not fit.
ReadSamples given_samples(const std::string& input, const Model& model, const std::string& path);

// `target` is a text, or a list of them for an option that may stand several times.
template <class Target>
CLI::Option* add_input_option(CLI::App& command, Target& target, const std::string& what) {
  return command.add_option("--input", target, what + ": typed, a file, or '-' (standard input)")
      ->allow_extra_args(false)
      ->option_text("INPUT");
}

}  // namespace posattn
