// How the messages of a program travel in its network, compared with the bounds of Theorem 5.1.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn {

struct MessageReport {
  struct Row {
    int round = 0;  // of the program with messages
    std::string words, way;
    int layers = 0, heads = 0;
  };
  int machines = 0, words = 0, rounds = 0;  // N, s, R
  int layers = 0, heads = 0;                // of the network
  int theorem_layers = 0, theorem_heads = 0;
  std::vector<Row> rows;  // rounds that send
  std::string attained;   // which case of the theorem's count applies
};

MessageReport report_messages(const StaticProgram& program, const RoutedProgram& routed,
                              const NetworkPlan& plan);
// With a row for every round that sends, if asked.
std::string as_text(const MessageReport& report, bool with_rounds);
nlohmann::ordered_json as_json(const MessageReport& report);

}  // namespace posattn
