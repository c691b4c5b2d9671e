// Questions about graphs in every form, against answers found another way.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/tasks/dataset.h"
#include "posattn/tasks/graph.h"

namespace posattn {
namespace {

// A sample as its columns say it.
struct AskedGraph {
  Graph graph;
  std::vector<int> asked;
};

AskedGraph graph_of(const Dataset& set, std::string_view form, int sample) {
  const int n = set.length, nodes = set.shape.real_nodes, columns = set.shape.data_columns;
  AskedGraph result{Graph(n), {}};
  const float* values = set.inputs.data() + sample * set.shape.input_count();
  for (int node = 0; node < nodes; ++node) {
    const float* row = values + node * columns;
    std::vector<int> ones;
    const int first = form == "edges" ? 2 : 3;
    for (int i = first; i < columns; ++i) {
      EXPECT_TRUE(row[i] == 0 || row[i] == 1);
      if (row[i] == 1) ones.push_back(i - first);
    }
    if (form == "edges") {
      const bool last = node == nodes - 1;
      EXPECT_EQ(row[1], last ? 1 : 0);
      if (last) {
        EXPECT_EQ(row[0], 0);
        result.asked = ones;
      } else if (row[0] == 1) {
        EXPECT_EQ(ones.size(), 2u);
        EXPECT_FALSE(result.graph.edge(ones[0], ones[1])) << "twice";
        result.graph.connect(ones[0], ones[1]);
      } else {
        EXPECT_TRUE(ones.empty());  // edges come first
      }
      continue;
    }
    EXPECT_EQ(row[0], 1);
    // The first, then the second.
    if (row[1] == 1) result.asked.insert(result.asked.begin(), node);
    if (row[2] == 1) result.asked.push_back(node);
    for (const int j : ones) result.graph.connect(node, j);
    if (form == "rows") {
      for (int j = 0; j < node; ++j) EXPECT_EQ(row[3 + j], values[j * columns + 3 + node]);
    }
  }
  if (form == "pairs") {
    const int32_t* classes = set.pair_classes.data() + sample * n * n;
    for (int pair = 0; pair < n * n; ++pair) {
      if (classes[pair] == 1) result.graph.connect(pair / n, pair % n);
      EXPECT_EQ(classes[pair], classes[pair % n * n + pair / n]);
    }
  }
  return result;
}

// Hops, by how many steps the marks of a take to b; n where they never come.
int hops_by_spreading(const Graph& graph, int a, int b) {
  std::vector<bool> seen(graph.nodes);
  seen[a] = true;
  for (int hops = 0; hops < graph.nodes; ++hops) {
    if (seen[b]) return hops;
    std::vector<bool> next = seen;
    for (int i = 0; i < graph.nodes; ++i) {
      for (int j = 0; j < graph.nodes; ++j) {
        if (seen[i] && graph.edge(i, j)) next[j] = true;
      }
    }
    seen = next;
  }
  return graph.nodes;
}

// Without leaves until there are none: what is left has a cycle.
bool has_cycle_after_pruning(Graph graph) {
  for (int round = 0; round < graph.nodes; ++round) {
    for (int i = 0; i < graph.nodes; ++i) {
      if (graph.degree(i) != 1) continue;
      for (int j = 0; j < graph.nodes; ++j) {
        graph.edges[i * graph.nodes + j] = graph.edges[j * graph.nodes + i] = 0;
      }
    }
  }
  return graph.edge_count() > 0;
}

int answer_of(std::string_view task, std::string_view count, const Graph& graph,
              const std::vector<int>& asked) {
  if (task == "graph-count") {
    int edges = 0, degree = 0;
    for (int i = 0; i < graph.nodes; ++i) {
      for (int j = 0; j < i; ++j) edges += graph.edge(i, j) ? 1 : 0;
      degree += count == "degree" && graph.edge(i, asked.at(0)) ? 1 : 0;
    }
    return count == "degree" ? degree : edges;
  }
  if (task == "graph-cycle") return has_cycle_after_pruning(graph) ? 1 : 0;
  if (task == "one-two-cycle") {
    for (int j = 0; j < graph.nodes; ++j) {
      if (hops_by_spreading(graph, 0, j) == graph.nodes) return 1;
    }
    return 0;
  }
  const int hops = hops_by_spreading(graph, asked.at(0), asked.at(1));
  if (task == "graph-edge") return hops == 1 ? 1 : 0;
  if (task == "graph-connected") return hops < graph.nodes ? 1 : 0;
  return hops < graph.nodes && hops < 8 ? hops : 8;
}

Dataset drawn(std::string_view task, std::string_view set, int length, int64_t samples,
              std::string axis = "c", double x = 1) {
  return make_dataset({.task = &find_task(task, set),
                       .length = length,
                       .samples = samples,
                       .range = training_range(2, false),
                       .seed = 5,
                       .purpose = Purpose::test_data,
                       .scale = x,
                       .axis = std::move(axis)});
}

constexpr const char* forms[] = {"edges", "rows", "pairs"};
constexpr const char* questions[] = {"graph-count", "graph-edge", "graph-connected",
                                     "graph-distance", "graph-cycle"};

void expect_answers(const Dataset& set, std::string_view task, std::string_view form,
                    std::string_view count) {
  const bool classes = set.targets.empty();
  for (int s = 0; s < set.samples; ++s) {
    const auto [graph, asked] = graph_of(set, form, s);
    const bool names = form == "edges" && count == "degree";
    const bool pair = task != "graph-count" && task != "graph-cycle" && task != "one-two-cycle";
    EXPECT_EQ(asked.size(), names ? 1u : pair ? 2u : 0u);
    for (int node = 0; node < set.shape.real_nodes; ++node) {
      const bool answers = form == "edges" ? node == set.shape.real_nodes - 1
                                           : !pair || std::ranges::count(asked, node) > 0;
      const std::vector<int> of = pair || names ? asked : std::vector{node};
      const int64_t at = int64_t{1} * s * set.shape.real_nodes + node;
      if (answers) {
        EXPECT_EQ(classes ? static_cast<float>(set.labels[at]) : set.targets[at],
                  static_cast<float>(answer_of(task, count, graph, of)));
      } else {
        EXPECT_EQ(classes ? static_cast<float>(set.labels[at]) : set.targets[at], classes ? -1 : 0);
      }
    }
  }
}

TEST(GraphTasks, AnswersFollowFromTheGraphInEveryForm) {
  for (const char* form : forms) {
    for (const char* task : questions) {
      for (const int n : {2, 5, 9}) {
        SCOPED_TRACE(fmt::format("{} {} {}", form, task, n));
        expect_answers(drawn(task, fmt::format("form={}", form), n, 60), task, form, "");
        if (task != std::string_view("graph-count")) continue;
        expect_answers(drawn(task, fmt::format("form={},count=degree", form), n, 60), task, form,
                       "degree");
      }
    }
    SCOPED_TRACE(form);
    expect_answers(drawn("one-two-cycle", fmt::format("form={}", form), 7, 60), "one-two-cycle",
                   form, "");
  }
}

double mean_share(const Dataset& set, std::string_view form) {
  double sum = 0;
  for (int s = 0; s < set.samples; ++s) sum += graph_of(set, form, s).graph.edge_count();
  return sum / static_cast<double>(set.samples) / (set.length * (set.length - 1) / 2.0);
}

TEST(GraphTasks, ParametersAndAxesDecideTheGraph) {
  for (const char* form : forms) {
    for (const int percent : {10, 60, 100}) {
      const std::string set = fmt::format("form={},percent={}", form, percent);
      EXPECT_NEAR(mean_share(drawn("graph-connected", set, 7, 400), form), percent / 100.0, 0.02);
    }
    const std::string set = fmt::format("form={}", form);
    EXPECT_NEAR(mean_share(drawn("graph-connected", set, 7, 900), form), 0.5, 0.04);
    EXPECT_NEAR(mean_share(drawn("graph-distance", set, 7, 400, "density", 0.2), form), 0.2, 0.02);
    EXPECT_NEAR(mean_share(drawn("graph-distance", set, 7, 9, "graphs", 1), form), 6 / 21.0, 1e-9);
    expect_answers(drawn("graph-distance", set, 12, 20, "graphs", 1), "graph-distance", form, "");
    expect_answers(drawn("graph-cycle", set, 9, 20, "graphs", 2), "graph-cycle", form, "");
    for (const double cycles : {1.0, 2.0}) {
      const Dataset of = drawn("one-two-cycle", set, 8, 50, "cycles", cycles);
      EXPECT_TRUE(std::ranges::all_of(
          of.labels, [&](int32_t label) { return label == -1 || label == cycles - 1; }));
      EXPECT_GT(std::ranges::count(of.labels, static_cast<int32_t>(cycles) - 1), 49);
    }
  }
}

// All graphs of four nodes and all pairs of nodes: with one density for each sample, uniform in
// [0, 1], a graph of E of 6 edges has the probability 1 / (7 binomial(6, E)).
TEST(GraphTasks, GraphsAreDrawnWithTheirProbabilities) {
  constexpr int samples = 40000;
  const Dataset set = drawn("graph-edge", "", 4, samples);
  std::vector<int> counts(64);
  for (int s = 0; s < samples; ++s) {
    const Graph graph = graph_of(set, "edges", s).graph;
    int code = 0;
    for (int i = 0, bit = 0; i < 4; ++i) {
      for (int j = 0; j < i; ++j, ++bit) code += graph.edge(i, j) ? 1 << bit : 0;
    }
    ++counts[code];
  }
  constexpr double choices[] = {1, 6, 15, 20, 15, 6, 1};
  for (int code = 0; code < 64; ++code) {
    const double expected = samples / (7 * choices[std::popcount(static_cast<unsigned>(code))]);
    EXPECT_NEAR(counts[code], expected, 5 * std::sqrt(expected)) << code;
  }
}

int degree_answer(std::string_view task, const Graph& graph, const std::vector<int>& asked) {
  if (task == "one-two-cycle") return 0;
  std::vector<int> degrees;
  for (int i = 0; i < graph.nodes; ++i) degrees.push_back(graph.degree(i));
  const int ends = std::accumulate(degrees.begin(), degrees.end(), 0);
  if (task == "graph-cycle") {
    const auto alone = std::ranges::count(degrees, 0);
    return ends > 0 && ends / 2 >= graph.nodes - alone ? 1 : 0;
  }
  const int a = degrees[asked.at(0)], b = degrees[asked.at(1)];
  const bool edge = a > 0 && b > 0 && 2 * a * b >= ends;
  if (task == "graph-edge") return edge ? 1 : 0;
  if (task == "graph-connected") return std::min(a, b) > 0 ? 1 : 0;
  return std::min(a, b) == 0 ? 8 : edge ? 1 : 2;
}

TEST(GraphTasks, BaselineKnowsDegreesAlone) {
  for (const char* form : forms) {
    for (const char* task :
         {"graph-edge", "graph-connected", "graph-distance", "graph-cycle", "one-two-cycle"}) {
      SCOPED_TRACE(fmt::format("{} {}", form, task));
      const Task& asked_task = find_task(task, fmt::format("form={}", form));
      const Baseline baseline = asked_task.baselines().at(0);
      EXPECT_EQ(baseline.name, "degree-only");
      const Dataset set = drawn(task, fmt::format("form={}", form), 7, 100);
      const int64_t inputs = set.shape.input_count();
      std::vector<float> found(set.shape.target_count());
      for (int s = 0; s < set.samples; ++s) {
        const auto [graph, asked] = graph_of(set, form, s);
        SampleView view{.values = {set.inputs.data() + s * inputs, static_cast<size_t>(inputs)},
                        .tokens = {}};
        if (!set.pair_classes.empty()) view.pair_classes = {set.pair_classes.data() + s * 49, 49};
        baseline.predict(7, view, found);
        for (size_t at = 0; at < found.size(); ++at) {
          const bool is_answer =
              static_cast<int>(at) % set.shape.output_columns == degree_answer(task, graph, asked);
          EXPECT_EQ(found[at], is_answer ? 1 : 0);
        }
      }
    }
  }
}

TEST(GraphTasks, BaselineOfCountsIsTheirMean) {
  for (const char* form : forms) {
    for (const char* set :
         {"count=edges", "count=degree", "percent=20", "percent=20,count=degree"}) {
      const std::string given = fmt::format("form={},{}", form, set);
      const Dataset samples = drawn("graph-count", given, 6, 3000);
      double sum = 0;
      for (const float target : samples.targets) sum += target;
      const bool last = samples.shape.read_nodes == -1;
      std::vector<float> found(samples.shape.real_nodes);
      find_task("graph-count", given)
          .baselines()
          .at(0)
          .predict(6, {.values = {}, .tokens = {}}, found);
      EXPECT_NEAR(found.back(), sum / (3000.0 * (last ? 1 : samples.shape.real_nodes)), 0.3)
          << given;
      EXPECT_EQ(std::ranges::count(found, found[0]), std::ssize(found));
    }
  }
}

TEST(GraphTasks, OneOrTwoCyclesAreAsLikely) {
  for (const char* form : forms) {
    const Dataset set = drawn("one-two-cycle", fmt::format("form={}", form), 8, 2000);
    const auto one = std::ranges::count(set.labels, 0), two = std::ranges::count(set.labels, 1);
    EXPECT_NEAR(static_cast<double>(one) / static_cast<double>(one + two), 0.5, 0.05);
    for (int s = 0; s < 100; ++s) {
      const Graph graph = graph_of(set, form, s).graph;
      for (int i = 0; i < 8; ++i) EXPECT_EQ(graph.degree(i), 2);
    }
  }
}

// Edges and questions stand in places that say nothing: each slot is as often any edge.
TEST(GraphTasks, EdgesStandInRandomOrder) {
  const Dataset set = drawn("graph-count", "percent=100", 4, 6000);
  std::vector<int> first(6);
  for (int s = 0; s < 6000; ++s) {
    const float* row = set.inputs.data() + s * set.shape.input_count() + 2;
    int code = 0;
    for (int i = 0, place = 0; i < 4; ++i) {
      for (int j = 0; j < i; ++j, ++place) {
        if (row[i] == 1 && row[j] == 1) code = place;
      }
    }
    ++first[code];
  }
  for (const int count : first) EXPECT_NEAR(count, 1000, 150);
}

TEST(GraphTasks, WhatMakesNoSenseIsRefused) {
  EXPECT_THROW(drawn("one-two-cycle", "", 5, 1), Error);
  EXPECT_THROW(drawn("graph-edge", "", 1, 1), Error);
  EXPECT_THROW(drawn("graph-edge", "", 1 << 20, 1), Error);  // no memory has so many edges
  EXPECT_THROW(drawn("one-two-cycle", "", 8, 1, "cycles", 3), Error);
  EXPECT_FALSE(find_task("graph-edge").supports_variable_length());
  EXPECT_FALSE(find_task("graph-edge", "form=rows").supports_variable_length());
  EXPECT_TRUE(find_task("graph-edge", "form=pairs").supports_variable_length());
}

}  // namespace
}  // namespace posattn
