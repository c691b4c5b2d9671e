#include "posattn/cli/evaluate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "posattn/cli/text_table.h"
#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

// What may differ between models of one task, architecture and length, in words.
std::vector<std::string> traits_of(const EvaluatedModel& model) {
  const ModelOrigin& origin = model.origin;
  std::vector<std::string> traits = {origin.variable_length ? "several lengths" : "one length",
                                     origin.integers
                                         ? fmt::format("integers in [-{0}, {0})", origin.range)
                                         : fmt::format("values in [-{0}, {0}]", origin.range)};
  const Json spec = Json::parse(to_json(model.spec));
  for (const auto& [key, value] : spec.items()) {
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    traits.push_back(words + " " + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return traits;
}

// Models that differ in nothing but their weights, such as the seeds of a fleet.
struct Group {
  std::string task, architecture;
  int length = 0;
  std::vector<std::string> traits;
  const EvaluatedModel* first = nullptr;
  std::string differs = {};  // the traits that set it apart from its namesakes, or ""
  std::vector<std::string> paths = {};
  std::vector<std::vector<ScaleResult>> results = {};  // by model, then by scale

  bool same_name(const Group& other) const {
    return task == other.task && architecture == other.architecture && length == other.length;
  }
  std::string title() const {
    return fmt::format("{}, {}, length {}{}: {}", task, architecture, length, differs,
                       paths.size() == 1 ? paths[0] : fmt::format("{} models", paths.size()));
  }
  size_t scale_count() const { return results.front().size(); }

  // The spread over the models of a number that each has at scale number `scale`.
  template <class Get>
  Spread over_models(size_t scale, Get get) const {
    std::vector<double> values;
    for (const auto& scales : results) values.push_back(get(scales[scale]));
    return spread_of(values);
  }
};

std::vector<Group> grouped(const std::vector<EvaluatedModel>& models) {
  std::vector<Group> groups;
  for (const EvaluatedModel& model : models) {
    const std::string task = model.program.empty() ? model.origin.task : "program " + model.program;
    const Group wanted{task, preset_name(model.spec), model.origin.length, traits_of(model),
                       &model};
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& known) {
      return known.same_name(wanted) && known.traits == wanted.traits;
    });
    if (group == groups.end()) group = groups.insert(group, wanted);
    group->paths.push_back(model.path);
    group->results.push_back(model.scales);
  }
  for (Group& group : groups) {
    for (size_t i = 0; i < group.traits.size(); ++i) {
      const bool tells = std::any_of(groups.begin(), groups.end(), [&](const Group& other) {
        return other.same_name(group) && other.traits[i] != group.traits[i];
      });
      if (tells) group.differs += ", " + group.traits[i];
    }
  }
  return groups;
}

std::string scale_table(const Group& group) {
  const bool several = group.paths.size() > 1;
  std::vector<std::string> header = {"c", several ? "median MSE" : "MSE"};
  if (several) header.insert(header.end(), {"min", "max"});
  header.insert(header.end(), {"MSE/c^2", "accuracy"});
  TextTable table(header, 0);
  for (const ScaleSummary& summary : summarise(group.results)) {
    std::vector<std::string> row = {short_number(summary.c), short_number(summary.mse.median)};
    if (several) {
      row.insert(row.end(), {short_number(summary.mse.minimum), short_number(summary.mse.maximum)});
    }
    row.insert(row.end(), {short_number(summary.mse_over_c2.median),
                           fmt::format("{:.1f} %", 100 * summary.accuracy.median)});
    table.add_row(row);
  }
  return table.to_string();
}

// Rows of a table with one row per scale and one column per node or length (medians over models).
// A part without a mean in models that have one is a part of which nothing counts: "-".
template <class Get>
std::string detail_table(const Group& group, const std::string& first, size_t columns,
                         const std::vector<std::string>& names, Get get) {
  std::vector<std::string> header = {first};
  header.insert(header.end(), names.begin(), names.end());
  TextTable table(header, 1);
  for (size_t scale = 0; scale < group.scale_count(); ++scale) {
    std::vector<std::string> row = {short_number(group.results[0][scale].c)};
    const Spread whole =
        group.over_models(scale, [](const ScaleResult& result) { return result.mse; });
    for (size_t column = 0; column < columns; ++column) {
      const Spread spread =
          group.over_models(scale, [&](const ScaleResult& result) { return get(result, column); });
      const bool empty = std::isnan(spread.median) && !std::isnan(whole.median);
      row.push_back(empty ? "-" : short_number(spread.median));
    }
    table.add_row(row);
  }
  return table.to_string();
}

std::string per_node_table(const Group& group) {
  const size_t nodes = group.results[0][0].mse_per_node.size();
  std::vector<std::string> names;
  for (size_t node = 0; node < nodes; ++node) names.push_back(std::to_string(node));
  return detail_table(group, "c \\ node", nodes, names, [](const ScaleResult& result, size_t node) {
    return result.mse_per_node.at(node);
  });
}

std::string per_length_table(const Group& group) {
  std::vector<std::string> names;
  for (const LengthResult& part : group.results[0][0].per_length) {
    names.push_back(std::to_string(part.length));
  }
  return detail_table(
      group, "c \\ length", names.size(), names,
      [](const ScaleResult& result, size_t part) { return result.per_length.at(part).mse; });
}

std::string comparison_table(const std::vector<Group>& groups) {
  std::vector<std::string> header = {"c"};
  const bool one_task = std::all_of(groups.begin(), groups.end(), [&](const Group& group) {
    return group.task == groups[0].task && group.length == groups[0].length;
  });
  for (const Group& group : groups) {
    header.push_back((one_task
                          ? group.architecture
                          : fmt::format("{}/{}/{}", group.task, group.architecture, group.length)) +
                     group.differs);
  }
  TextTable table(header, 0);
  for (size_t scale = 0; scale < groups[0].scale_count(); ++scale) {
    std::vector<std::string> row = {short_number(groups[0].results[0][scale].c)};
    for (const Group& group : groups) {
      const Spread spread =
          group.over_models(scale, [](const ScaleResult& result) { return result.mse; });
      row.push_back(short_number(spread.median));
    }
    table.add_row(row);
  }
  return table.to_string();
}

Json scale_json(const ScaleResult& result) {
  Json object = {{"c", result.c},
                 {"mse", result.mse},
                 {"mse_over_c2", result.mse_over_c2},
                 {"accuracy", result.accuracy},
                 {"mse_per_node", result.mse_per_node}};
  if (!result.per_length.empty()) {
    Json parts = Json::array();
    for (const LengthResult& part : result.per_length) {
      parts.push_back({{"length", part.length},
                       {"samples", part.samples},
                       {"mse", part.mse},
                       {"accuracy", part.accuracy}});
    }
    object["per_length"] = parts;
  }
  return object;
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median},
          {"min", spread.minimum},
          {"max", spread.maximum},
          {"lower_quartile", spread.lower_quartile},
          {"upper_quartile", spread.upper_quartile},
          {"mean", spread.mean},
          {"non_finite", spread.non_finite}};
}

Json compared_with(const EvaluatedModel& model) {
  if (model.program.empty()) return {{"task", model.origin.task}};
  return {{"task", nullptr}, {"program", model.program}};
}

Json summary_json(const Group& group) {
  Json scales = Json::array();
  for (const ScaleSummary& summary : summarise(group.results)) {
    scales.push_back({{"c", summary.c},
                      {"mse", spread_json(summary.mse)},
                      {"mse_over_c2", spread_json(summary.mse_over_c2)},
                      {"accuracy", spread_json(summary.accuracy)}});
  }
  Json object = compared_with(*group.first);
  object.update({{"architecture", group.architecture},
                 {"length", group.length},
                 {"variable_length", group.first->origin.variable_length},
                 {"range", group.first->origin.range},
                 {"integers", group.first->origin.integers},
                 {"spec", Json::parse(to_json(group.first->spec))},
                 {"models", group.paths.size()},
                 {"scales", scales}});
  return object;
}

}  // namespace

std::string evaluation_text(const std::vector<EvaluatedModel>& models, bool per_node) {
  const std::vector<Group> groups = grouped(models);
  std::string text;
  for (const Group& group : groups) {
    text += (text.empty() ? "" : "\n") + group.title() + "\n" + scale_table(group);
    const std::string median = group.paths.size() > 1 ? "median MSE" : "MSE";
    if (per_node) text += "\n" + median + " per node\n" + per_node_table(group);
    if (!group.results[0][0].per_length.empty()) {
      text += "\n" + median + " per length\n" + per_length_table(group);
    }
  }
  if (groups.size() > 1) text += "\nmedian MSE, side by side\n" + comparison_table(groups);
  return text;
}

std::string evaluation_json(const std::vector<EvaluatedModel>& models,
                            const std::vector<std::string>& unfinished) {
  Json list = Json::array(), summary = Json::array();
  for (const EvaluatedModel& model : models) {
    Json scales = Json::array();
    for (const ScaleResult& result : model.scales) scales.push_back(scale_json(result));
    Json entry = {{"path", model.path}};
    entry.update(compared_with(model));
    entry.update({{"architecture", preset_name(model.spec)},
                  {"length", model.origin.length},
                  {"scales", scales}});
    list.push_back(std::move(entry));
  }
  for (const Group& group : grouped(models)) summary.push_back(summary_json(group));
  // A path need not be UTF-8; JSON must be.
  return Json{{"models", list}, {"summary", summary}, {"unfinished", unfinished}}.dump(
             2, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace posattn
