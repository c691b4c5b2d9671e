#include "posattn/cli/evaluate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>

#include "posattn/cli/terminal.h"
#include "posattn/cli/text_table.h"
#include "posattn/evaluation/metrics/metric.h"
#include "posattn/evaluation/summary.h"

namespace posattn {
namespace {

// What may differ between models of one task, architecture and length, in words.
std::vector<std::string> traits_of(const EvaluatedModel& model) {
  const ModelOrigin& origin = model.origin;
  std::vector<std::string> traits = {
      !origin.variable_length      ? "one length"
      : origin.shortest_length > 0 ? fmt::format("lengths from {} on", origin.shortest_length)
                                   : "several lengths",
      origin.integers ? fmt::format("integers in [-{0}, {0})", origin.range)
                      : fmt::format("values in [-{0}, {0}]", origin.range)};
  if (!origin.task_set.empty()) traits.push_back("task-set " + origin.task_set);
  const Json spec = Json::parse(to_json(model.spec));
  for (const auto& [key, value] : spec.items()) {
    std::string words = key;
    std::replace(words.begin(), words.end(), '_', ' ');
    traits.push_back(words + " " + (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return traits;
}

// Models that differ in nothing but their weights, such as the seeds of a fleet.
struct ModelGroup {
  std::string task, architecture;
  int length = 0;
  std::vector<std::string> traits;
  const EvaluatedModel* first = nullptr;
  std::string differs = {};  // the traits that set it apart from its namesakes, or ""
  std::vector<std::string> paths = {};
  std::vector<const Evaluation*> results = {};             // by model
  std::vector<const std::vector<Measurement>*> rows = {};  // by model

  bool same_name(const ModelGroup& other) const {
    return task == other.task && architecture == other.architecture && length == other.length;
  }
  std::string title() const {
    return fmt::format("{}, {}, length {}{}: {}", task, architecture, length, differs,
                       paths.size() == 1 ? paths[0] : fmt::format("{} models", paths.size()));
  }
  const std::vector<TestDetails>& tests() const { return results.front()->details; }
  const Metric& loss() const { return loss_among(*rows.front()); }

  // The spread over the models: of a metric, and of a number of test `test`.
  Spread over_models(const EvaluationAxis& axis, double x, const Metric& metric) const {
    return spread_at(rows, {.axis = axis.name, .x = x, .metric = metric.name});
  }
  template <class Get>
  Spread over_details(size_t test, Get get) const {
    std::vector<double> values;
    for (const Evaluation* result : results) values.push_back(get(result->details[test]));
    return spread_of(values);
  }
};

// Those that the axis and the task have.
std::vector<const Metric*> shown_metrics(const EvaluationAxis& axis, const Evaluation& evaluation) {
  std::vector<const Metric*> shown = metrics();
  const double x = evaluation.details.front().x;
  std::erase_if(shown, [&](const Metric* metric) {
    return !find_value(evaluation.rows, {.axis = axis.name, .x = x, .metric = metric->name});
  });
  return shown;
}

std::string cell(const Metric& metric, double value) {
  return metric.percent ? fmt::format("{:.1f} %", 100 * value) : short_number(value);
}

std::vector<ModelGroup> grouped(const std::vector<EvaluatedModel>& models) {
  std::vector<ModelGroup> groups;
  for (const EvaluatedModel& model : models) {
    const std::string task = model.program.empty() ? model.origin.task : "program " + model.program;
    const ModelGroup wanted{task, preset_name(model.spec), model.origin.length, traits_of(model),
                            &model};
    auto group = std::find_if(groups.begin(), groups.end(), [&](const ModelGroup& known) {
      return known.same_name(wanted) && known.traits == wanted.traits;
    });
    if (group == groups.end()) group = groups.insert(group, wanted);
    group->paths.push_back(model.path);
    group->results.push_back(&model.evaluation);
    group->rows.push_back(&model.evaluation.rows);
  }
  for (ModelGroup& group : groups) {
    for (const std::string& trait : group.traits) {
      const bool differs = std::any_of(groups.begin(), groups.end(), [&](const ModelGroup& other) {
        return other.same_name(group) && !std::ranges::count(other.traits, trait);
      });
      if (differs) group.differs += ", " + trait;
    }
  }
  return groups;
}

// The same samples, so the same errors, for every model of a group.
const std::vector<BaselineRows>& baselines_of(const ModelGroup& group) {
  return group.results.front()->baselines;
}

double loss_of(const BaselineRows& baseline, const EvaluationAxis& axis, double x,
               const Metric& loss) {
  return find_value(baseline.rows, {.axis = axis.name, .x = x, .metric = loss.name}).value();
}

std::vector<std::string> baseline_headings(const ModelGroup& group) {
  std::vector<std::string> headings;
  for (const BaselineRows& baseline : baselines_of(group)) headings.push_back(baseline.name);
  return headings;
}

std::vector<std::string> baseline_cells(const ModelGroup& group, const EvaluationAxis& axis,
                                        double x) {
  std::vector<std::string> cells;
  for (const BaselineRows& baseline : baselines_of(group)) {
    cells.push_back(short_number(loss_of(baseline, axis, x, group.loss())));
  }
  return cells;
}

// The model's error as a share of the first baseline's.
std::string share_of_baseline(const ModelGroup& group, const EvaluationAxis& axis, double x) {
  const double baseline = loss_of(baselines_of(group).front(), axis, x, group.loss());
  const double model = group.over_models(axis, x, group.loss()).median;
  return baseline > 0 ? fmt::format("{:.3g} %", 100 * model / baseline) : "-";
}

// The loss with its spread, the medians of the other metrics, then the baselines.
std::string metric_table(const ModelGroup& group, const EvaluationAxis& axis) {
  const bool several = group.paths.size() > 1;
  const bool has_place = group.first->has_scale || group.tests().size() > 1;
  std::vector<const Metric*> shown = shown_metrics(axis, *group.results.front());
  if (!has_place) std::erase_if(shown, [](const Metric* one) { return one->derived_on == "c"; });
  std::vector<std::string> header;
  if (has_place) header.push_back(axis.name);
  for (const Metric* metric : shown) {
    const bool spread = several && metric->is_loss;
    header.push_back(fmt::format("{}{}", spread ? "median " : "", metric->heading));
    if (spread) header.insert(header.end(), {"min", "max"});
  }
  std::ranges::copy(baseline_headings(group), std::back_inserter(header));
  if (!baselines_of(group).empty()) header.push_back("of " + baselines_of(group).front().name);
  TextTable table(header, 0);
  for (const TestDetails& test : group.tests()) {
    std::vector<std::string> row;
    if (has_place) row.push_back(short_number(test.x));
    for (const Metric* metric : shown) {
      const Spread spread = group.over_models(axis, test.x, *metric);
      row.push_back(cell(*metric, spread.median));
      if (several && metric->is_loss) {
        row.insert(row.end(), {cell(*metric, spread.minimum), cell(*metric, spread.maximum)});
      }
    }
    std::ranges::copy(baseline_cells(group, axis, test.x), std::back_inserter(row));
    if (!baselines_of(group).empty()) row.push_back(share_of_baseline(group, axis, test.x));
    table.add_row(row);
  }
  return table.to_string();
}

// Rows of a table with one row per test and one column per node or length (medians over models). A
// part without a mean in models that have one is a part of which nothing counts: "-".
template <class Get>
std::string detail_table(const ModelGroup& group, const EvaluationAxis& axis, const char* kind,
                         const std::vector<std::string>& names, Get get) {
  std::vector<std::string> header = {fmt::format("{} \\ {}", axis.name, kind)};
  header.insert(header.end(), names.begin(), names.end());
  TextTable table(header, 1);
  for (size_t test = 0; test < group.tests().size(); ++test) {
    const double x = group.tests()[test].x;
    const Spread whole = group.over_models(axis, x, group.loss());
    std::vector<std::string> row = {short_number(x)};
    for (size_t column = 0; column < names.size(); ++column) {
      const Spread spread = group.over_details(
          test, [&](const TestDetails& details) { return get(details, column); });
      const bool empty = std::isnan(spread.median) && !std::isnan(whole.median);
      row.push_back(empty ? "-" : short_number(spread.median));
    }
    table.add_row(row);
  }
  return table.to_string();
}

std::string per_node_table(const ModelGroup& group, const EvaluationAxis& axis) {
  // Tests of other lengths have other nodes.
  size_t nodes = 0;
  for (const TestDetails& test : group.tests()) nodes = std::max(nodes, test.mse_per_node.size());
  std::vector<std::string> names;
  for (size_t node = 0; node < nodes; ++node) names.push_back(std::to_string(node));
  return detail_table(group, axis, "node", names, [](const TestDetails& details, size_t node) {
    return node < details.mse_per_node.size() ? details.mse_per_node[node] : NAN;
  });
}

std::string per_length_table(const ModelGroup& group, const EvaluationAxis& axis) {
  std::vector<std::string> names;
  for (const LengthPart& part : group.tests()[0].per_length) {
    names.push_back(std::to_string(part.length));
  }
  return detail_table(group, axis, "length", names, [&](const TestDetails& details, size_t part) {
    return find_value(details.per_length.at(part).rows,
                      {.axis = axis.name, .x = details.x, .metric = group.loss().name})
        .value();
  });
}

std::string comparison_table(const std::vector<ModelGroup>& groups, const EvaluationAxis& axis) {
  std::vector<std::string> header = {axis.name};
  const bool one_task = std::all_of(groups.begin(), groups.end(), [&](const ModelGroup& group) {
    return group.task == groups[0].task && group.length == groups[0].length;
  });
  for (const ModelGroup& group : groups) {
    header.push_back((one_task
                          ? group.architecture
                          : fmt::format("{}/{}/{}", group.task, group.architecture, group.length)) +
                     group.differs);
  }
  if (one_task) std::ranges::copy(baseline_headings(groups[0]), std::back_inserter(header));
  TextTable table(header, 0);
  for (const TestDetails& test : groups[0].tests()) {
    std::vector<std::string> row = {short_number(test.x)};
    for (const ModelGroup& group : groups) {
      row.push_back(short_number(group.over_models(axis, test.x, group.loss()).median));
    }
    if (one_task) {
      std::ranges::copy(baseline_cells(groups[0], axis, test.x), std::back_inserter(row));
    }
    table.add_row(row);
  }
  return table.to_string();
}

Json place_json(const EvaluationAxis& axis, double x) {
  return axis.whole ? Json(std::llround(x)) : Json(x);
}

Json test_json(const Evaluation& evaluation, const EvaluationAxis& axis,
               const TestDetails& details) {
  Json object = {{axis.name, place_json(axis, details.x)}};
  for (const Metric* metric : shown_metrics(axis, evaluation)) {
    object[std::string(metric->name)] =
        find_value(evaluation.rows, {.axis = axis.name, .x = details.x, .metric = metric->name})
            .value();
  }
  object["mse_per_node"] = details.mse_per_node;
  for (const BaselineRows& baseline : evaluation.baselines) {
    for (const Measurement& row : baseline.rows) {
      if (row.x == details.x) object["baselines"][baseline.name][row.metric] = row.value;
    }
  }
  if (details.per_length.empty()) return object;
  Json parts = Json::array();
  for (const LengthPart& part : details.per_length) {
    Json of_length = {{"length", part.length}, {"samples", part.samples}};
    for (const Measurement& row : part.rows) of_length[row.metric] = row.value;
    parts.push_back(of_length);
  }
  object["per_length"] = parts;
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

Json summary_json(const ModelGroup& group, const EvaluationAxis& axis) {
  Json tests = Json::array();
  for (const TestDetails& test : group.tests()) {
    Json values = {{axis.name, place_json(axis, test.x)}};
    for (const Metric* metric : shown_metrics(axis, *group.results.front())) {
      values[std::string(metric->name)] = spread_json(group.over_models(axis, test.x, *metric));
    }
    tests.push_back(values);
  }
  Json object = compared_with(*group.first);
  object.update({{"architecture", group.architecture},
                 {"length", group.length},
                 {"variable_length", group.first->origin.variable_length},
                 {"range", group.first->origin.range},
                 {"integers", group.first->origin.integers},
                 {"spec", Json::parse(to_json(group.first->spec))},
                 {"models", group.paths.size()},
                 {axis.plural, tests}});
  return object;
}

std::string axis_text(const AxisResults& results, bool per_node) {
  const EvaluationAxis& axis = results.axis;
  const std::vector<ModelGroup> groups = grouped(results.models);
  std::string text;
  for (const ModelGroup& group : groups) {
    text += (text.empty() ? "" : "\n") + group.title() + "\n" + metric_table(group, axis);
    const std::string median =
        fmt::format("{}{}", group.paths.size() > 1 ? "median " : "", group.loss().heading);
    // Only squared errors are known node by node.
    if (per_node && !group.tests()[0].mse_per_node.empty())
      text += "\n" + median + " per node\n" + per_node_table(group, axis);
    if (!group.tests()[0].per_length.empty()) {
      text += "\n" + median + " per length\n" + per_length_table(group, axis);
    }
  }
  if (groups.size() > 1) {
    text += fmt::format("\nmedian {}, side by side\n{}", groups[0].loss().heading,
                        comparison_table(groups, axis));
  }
  return text;
}

Json model_json(const EvaluatedModel& model, const EvaluationAxis& axis) {
  Json tests = Json::array();
  for (const TestDetails& details : model.evaluation.details) {
    tests.push_back(test_json(model.evaluation, axis, details));
  }
  Json entry = {{"path", model.path}};
  entry.update(compared_with(model));
  entry.update({{"architecture", preset_name(model.spec)},
                {"length", model.origin.length},
                {axis.plural, tests}});
  return entry;
}

// Tests along a further axis are added to the entry, to those of the same kind if there are any.
void add_tests(Json& entries, size_t index, Json entry, const std::string& plural) {
  if (index == entries.size()) {
    entries.push_back(std::move(entry));
    return;
  }
  Json& tests = entries[index][plural];
  for (Json& test : entry[plural]) tests.push_back(std::move(test));
}

}  // namespace

std::string evaluation_text(const std::vector<AxisResults>& results, bool per_node) {
  std::string text;
  for (const AxisResults& of_axis : results) {
    text += (text.empty() ? "" : "\n") + axis_text(of_axis, per_node);
  }
  return text;
}

std::string evaluation_json(const std::vector<AxisResults>& results,
                            const std::vector<std::string>& unfinished) {
  Json list = Json::array(), summary = Json::array();
  for (const auto& [axis, models] : results) {
    size_t index = 0;
    for (const EvaluatedModel& model : models) {
      add_tests(list, index++, model_json(model, axis), axis.plural);
    }
    index = 0;
    for (const ModelGroup& group : grouped(models)) {
      add_tests(summary, index++, summary_json(group, axis), axis.plural);
    }
  }
  return json_text({{"models", list}, {"summary", summary}, {"unfinished", unfinished}});
}

}  // namespace posattn
