#include "posattn/cli/message_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "posattn/cli/text_table.h"

namespace posattn {
namespace {

// A gathered message is two words, its destination and what it carries.
bool holds_all_messages(const MessageReport& report) { return report.words >= 2 * report.machines; }

std::string attained_by(const RoutedProgram& routed, const MessageReport& report) {
  const auto goes = [&](Routing by) {
    return std::ranges::any_of(routed.ways, [&](const MessageWay& way) { return way.by == by; });
  };
  if (goes(Routing::sort)) {
    return "sort: the network finds the way itself, in ceil(log2 N) (ceil(log2 N) + 1) / 2 stages "
           "a\n"
           "round; the theorem's count takes switches from outside (--routing benes)";
  }
  if (goes(Routing::benes)) {
    return "benes: 2 ceil(log2 N) - 1 stages a round, the theorem's count; the switches are "
           "inputs\n"
           "that the program's interpreter computes for each sample";
  }
  if (goes(Routing::gather)) {
    return holds_all_messages(report)
               ? "gather: every machine reads all N messages and picks its own; within the "
                 "theorem's count,\n"
                 "and without switches, as N messages fit into memory (s >= 2 N)"
               : "gather: every machine reads all N messages and picks its own, without switches; "
                 "not\n"
                 "within the theorem's count, as N messages do not fit into memory (s < 2 N)";
  }
  return "static: destinations are known beforehand, so a round of messages is one layer";
}

}  // namespace

MessageReport report_messages(const StaticProgram& program, const RoutedProgram& routed,
                              const NetworkPlan& plan) {
  MessageReport report;
  report.machines = program.processors;
  report.words = static_cast<int>(program.words.size());
  report.rounds = static_cast<int>(program.rounds.size());
  report.layers = static_cast<int>(plan.layers.size());
  report.heads = plan.heads;
  const auto doublings =
      static_cast<int>(std::bit_width(static_cast<unsigned>(std::max(1, program.processors) - 1)));
  report.theorem_layers = 2 * report.rounds * doublings;
  report.theorem_heads = 2 * report.words;
  report.attained = attained_by(routed, report);
  for (const MessageWay& way : routed.ways) {
    const std::string words = fmt::format("{}", fmt::join(way.words, ", "));
    if (!report.rows.empty() && report.rows.back().round == way.round) {
      report.rows.back().words += "; " + words;
      continue;
    }
    MessageReport::Row row{way.round, words, std::string(to_string(way.by)), 0, 0};
    for (const PlannedLayer& layer : plan.layers) {
      if (layer.round >= static_cast<int>(plan.program.rounds.size())) continue;
      if (plan.program.rounds[layer.round].origin != way.round) continue;
      ++row.layers;
      row.heads = std::max(row.heads, static_cast<int>(layer.heads.size()));
    }
    report.rows.push_back(std::move(row));
  }
  return report;
}

std::string as_text(const MessageReport& report, bool with_rounds) {
  TextTable table({"round", "messages", "way", "layers", "heads"}, 2);
  for (const MessageReport::Row& row : report.rows) {
    table.add_row({std::to_string(row.round), row.words, row.way, std::to_string(row.layers),
                   std::to_string(row.heads)});
  }
  return fmt::format(
      "{}{}\nTheorem 5.1 for N = {}, s = {}, R = {}: 2 R ceil(log2 N) = {} layers, 2 s = {} heads; "
      "here {} and {}\n",
      with_rounds ? table.to_string() : "", report.attained, report.machines, report.words,
      report.rounds, report.theorem_layers, report.theorem_heads, report.layers, report.heads);
}

nlohmann::ordered_json as_json(const MessageReport& report) {
  nlohmann::ordered_json rounds = nlohmann::ordered_json::array();
  for (const MessageReport::Row& row : report.rows) {
    rounds.push_back({{"round", row.round},
                      {"words", row.words},
                      {"way", row.way},
                      {"layers", row.layers},
                      {"heads", row.heads}});
  }
  return {{"machines", report.machines},
          {"words", report.words},
          {"rounds", report.rounds},
          {"theorem_layers", report.theorem_layers},
          {"theorem_heads", report.theorem_heads},
          {"attained", report.attained},
          {"sending", rounds}};
}

}  // namespace posattn
