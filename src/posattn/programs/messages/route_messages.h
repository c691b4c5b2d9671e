// A program with messages as one without: every message travels by receives from fixed places, or,
// where attention from the data carries it, by a head that knows the words to look at.
#pragma once

#include <string_view>

#include "posattn/programs/form/static_program.h"

namespace posattn {

// How messages whose destination is data travel in a network whose wires are fixed.
enum class Routing {
  automatic,    // by position where destinations are known beforehand, else gather or sort; never
                // Benes
  by_position,  // destinations are known beforehand: a plain receive
  gather,       // everybody reads from everybody and picks what is meant for it
  sort,         // messages are sorted by destination, inside the network
  benes,        // a Benes network; its switches are further inputs, which somebody must compute
  attention,    // attention from the data looks for the sender: no longer a positional Transformer
};

// "auto", "static", "gather", "sort", "benes", "attention"
std::string_view to_string(Routing routing);
Routing parse_routing(const std::string& name);  // throws unknown_name(usage)

// Messages of one round that share their way.
struct MessageWay {
  int round = 0;        // of the program with messages
  int destination = 0;  // its word
  bool permutation = false;
  Routing by = Routing::by_position;
  int stream = -1;                 // of switches, where it goes by Benes
  std::vector<std::string> words;  // what arrives
};

struct RoutedProgram {
  // Without messages but those of attention; switches of Benes networks are its last inputs.
  StaticProgram program;
  std::vector<MessageWay> ways;  // in the order of rounds
  // Ways by Benes of one round use different streams of switches; how many bits each has.
  std::vector<int> switch_bits;
};

// A program without messages stays as it is. Throws Error(configuration) where the routing cannot
// carry them: destinations that depend on data by position, more machines than can be gathered
// or told apart by scores.
RoutedProgram route_messages(const StaticProgram& program, Routing routing);

// The routed program's inputs [samples, processors, its inputs] for inputs of the program with
// messages. Switches are found by running the program: its interpreter knows who sends to whom.
// Throws Error(data) as run_static does.
template <class T>
std::vector<T> routed_inputs(const StaticProgram& program, const RoutedProgram& routed,
                             std::span<const T> inputs, int64_t samples);

}  // namespace posattn
