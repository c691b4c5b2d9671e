// How messages whose destination is data travel in a network whose wires are fixed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace posattn {

enum class Routing {
  automatic,    // by position where destinations are known beforehand, else gather or sort; never
                // Benes
  by_position,  // destinations are known beforehand: a plain receive
  gather,       // everybody hears everybody and picks what is meant for it
  sort,         // messages are sorted by destination, inside the network
  benes,        // a Benes network; its switches are further inputs, which somebody must compute
};

// "auto", "static", "gather", "sort", "benes"
std::string_view to_string(Routing routing);
Routing parse_routing(const std::string& name);  // throws unknown_name(usage)

}  // namespace posattn
