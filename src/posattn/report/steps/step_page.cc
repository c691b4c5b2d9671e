#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/base/embedded_file.h"
#include "posattn/base/error.h"
#include "posattn/report/markup.h"
#include "posattn/report/page/page_parts.h"
#include "posattn/report/plot/line_style.h"
#include "posattn/report/steps/walk.h"

namespace posattn {
namespace {

using nlohmann::ordered_json;

// JSON has no word for what is not finite.
ordered_json number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (x == std::floor(x) && std::abs(x) < 1e15) return static_cast<int64_t>(x);  // shorter
  return x;
}

ordered_json numbers(const std::vector<double>& values) {
  ordered_json list = ordered_json::array();
  for (const double x : values) list.push_back(number(x));
  return list;
}

ordered_json column_json(const WalkColumn& column) {
  ordered_json json = {{"name", column.name},
                       {"type", column.type},
                       {"first", column.first_step},
                       {"real", column.real_nodes_only}};
  if (!column.letters.empty()) json["letters"] = column.letters;
  return json;
}

// Reads of a node lie flat: node, weight, node, weight.
ordered_json reading_json(const WalkReading& reading) {
  ordered_json reads = ordered_json::array();
  for (const auto& of_node : reading.reads) {
    ordered_json flat = ordered_json::array();
    for (const auto& [node, weight] : of_node) {
      flat.push_back(node);
      flat.push_back(number(weight));
    }
    reads.push_back(std::move(flat));
  }
  return {{"label", reading.label},
          {"style", reading.style % line_style_count},
          {"names", reading.names},
          {"columns", reading.columns},
          {"reads", std::move(reads)}};
}

ordered_json step_json(const WalkStep& step) {
  ordered_json readings = ordered_json::array();
  for (const WalkReading& reading : step.readings) readings.push_back(reading_json(reading));
  ordered_json json = {{"title", step.title},
                       {"notes", step.notes},
                       {"lines", step.lines},
                       {"readings", std::move(readings)},
                       {"values", numbers(step.values)}};
  if (!step.kept.empty()) json["kept"] = step.kept;
  if (step.followed_node >= 0) json["followed"] = {step.followed_node, step.followed_column};
  return json;
}

// The text is ASCII, without characters that end or open an element: programs and names of files
// come from outside.
std::string walk_json(const Walk& walk) {
  ordered_json document = {{"noun", walk.node_noun},        {"nodes", walk.nodes},
                           {"scratch", walk.scratch_nodes}, {"columns", ordered_json::array()},
                           {"source", walk.source},         {"steps", ordered_json::array()}};
  for (const WalkColumn& column : walk.columns) document["columns"].push_back(column_json(column));
  for (const WalkStep& step : walk.steps) document["steps"].push_back(step_json(step));
  std::string text;
  for (const char c : document.dump(-1, ' ', true, ordered_json::error_handler_t::replace)) {
    if (c == '<' || c == '>' || c == '&') {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string step_page(const Walk& walk) {
  std::string styles;
  for (const WalkStep& step : walk.steps) {
    for (const WalkReading& reading : step.readings) {
      const int style = reading.style % line_style_count;
      styles += fmt::format("style{0}\"stroke{0}\"", style);
    }
  }
  // The page may load nothing: what it shows is all in it.
  const std::string head = fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
      "style-src 'unsafe-inline'; script-src 'unsafe-inline'\"/>\n<style>{}{}</style>\n",
      page_asset("steps.css"),
      style_colours("style", "background", styles) + style_colours("stroke", "stroke", styles));
  const std::string body =
      fmt::format("<p class=\"facts\">{}</p>\n{}",
                  escape_markup(fmt::format("{}", fmt::join(walk.facts, " · "))),
                  page_asset("steps.html")) +
      "<script type=\"application/json\" id=\"walk\">" + walk_json(walk) + "</script>\n<script>\n" +
      std::string(page_asset("steps.js")) + "</script>\n";
  return html_page(walk.title, body, head);
}

void check_walk_size(int64_t nodes, int64_t numbers) {
  if (nodes <= most_walk_nodes && numbers <= most_walk_numbers) return;
  throw Error(ExitCode::usage,
              fmt::format("a page of {} nodes with {} numbers in all steps", nodes, numbers),
              fmt::format("at most {} nodes and {} numbers", most_walk_nodes, most_walk_numbers),
              "a shorter input shows the same pattern");
}

std::string short_list(std::span<const double> values, const std::vector<std::string>& letters) {
  constexpr size_t most = 16;
  std::string text;
  for (size_t k = 0; k < std::min(values.size(), most); ++k) {
    const bool has_letter = values[k] >= 0 && values[k] < static_cast<double>(letters.size());
    text += k == 0 ? "" : ", ";
    text += has_letter ? letters[static_cast<size_t>(values[k])] : fmt::format("{:.4g}", values[k]);
  }
  return values.size() > most ? text + ", …" : text;
}

}  // namespace posattn
