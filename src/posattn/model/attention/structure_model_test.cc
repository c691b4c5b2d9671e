// Models that attend by the structural positions of graphs.
#include <gtest/gtest.h>

#include <cmath>

#include "posattn/model/spec/random_spec_test.h"
#include "posattn/tasks/structure.h"

namespace posattn {
namespace {

// A sample of one graph with n nodes.
struct GraphSample {
  std::vector<double> inputs, targets, pairs;
  std::vector<int32_t> classes;
  std::vector<uint8_t> mask;
  GraphSample(const Graph& graph, const Structure& structure, std::vector<double> values)
      : inputs(std::move(values)), targets(inputs.size()), mask(inputs.size(), 1) {
    TaskShape shape{.real_nodes = graph.nodes};
    add_pairs(structure, shape);
    std::vector<float> numbers(shape.pair_number_count());
    classes.resize(shape.pair_class_count());
    fill_pairs(structure, graph,
               {.values = {},
                .tokens = {},
                .targets = {},
                .labels = {},
                .pairs = numbers,
                .pair_classes = classes});
    pairs.assign(numbers.begin(), numbers.end());
  }
  ReferenceBatch batch() const {
    return {inputs, targets, 1, static_cast<int>(inputs.size()), {}, {}, {}, pairs, classes};
  }
};

Graph with_labels(const Graph& graph, const std::vector<int>& label) {
  Graph result(graph.nodes);
  for (int i = 0; i < graph.nodes; ++i) {
    for (int j = 0; j < i; ++j) {
      if (graph.edge(i, j)) result.connect(label[i], label[j]);
    }
  }
  return result;
}

// f(c x) = c f(x), and labels of nodes have no meaning, whatever the pairs hold.
TEST(StructureModels, AreHomogeneousAndFollowALabelling) {
  const auto count = static_cast<int>(structure_parameters()[0].words.size());
  for (int named = 0; named < count; ++named) {
    const int values[] = {named, 3};
    const Structure structure = structure_of(values);
    TaskShape shape{.real_nodes = 16};
    add_pairs(structure, shape);
    ModelSpec spec;
    apply_preset("structural", spec);
    spec.real_nodes = 16;
    spec.width = spec.mlp_width = 6;
    spec.depth = 2;
    spec.pair_columns = shape.pair_columns;
    spec.pair_classes = shape.pair_classes;
    spec = resolve(spec);
    const Parameters<double> parameters = to_double(testing::random_parameters(spec, 3));
    RandomStream random(7, Purpose::test_data, 0, 0);
    // Of another number of nodes than the model's; the grid's eigenvalues are not all different.
    for (const Graph& graph : {random_graph(random, 9, 0.3f), grid_graph(9), path_graph(13)}) {
      const auto n = static_cast<size_t>(graph.nodes);
      std::vector<double> x(n), scaled(n), moved(n);
      std::vector<int> label(n);
      for (size_t i = 0; i < n; ++i) {
        x[i] = random.uniform(-2, 2);
        label[i] = static_cast<int>(i);
      }
      shuffle(random, label);
      for (size_t i = 0; i < n; ++i) {
        scaled[i] = 1000 * x[i];
        moved[label[i]] = x[i];
      }
      const auto outputs = [&](const Graph& of, const std::vector<double>& inputs) {
        const GraphSample sample(of, structure, inputs);
        return reference_forward(spec, parameters, sample.batch());
      };
      const std::vector<double> y = outputs(graph, x), z = outputs(graph, scaled),
                                w = outputs(with_labels(graph, label), moved);
      double largest = 0;
      for (const double value : y) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 1e-3);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(z[i], 1000 * y[i], 1e-13 * 1000 * largest);
        // Numbers of pairs are floats: another order of sums may round them elsewhere.
        EXPECT_NEAR(w[label[i]], y[i], (shape.pair_columns > 0 ? 1e-6 : 1e-13) * largest);
      }
    }
  }
}

// Structure as a symbol: f(graph, c x) = c f(graph, x), where scores or a mask read the pairs.
TEST(StructureModels, OfTwoStreamsAreHomogeneous) {
  const int values[] = {0, 3};
  const Structure structure = structure_of(values);
  TaskShape shape{.real_nodes = 9};
  add_pairs(structure, shape);
  RandomStream random(9, Purpose::test_data, 0, 0);
  const Graph graph = random_graph(random, 9, 0.3f), other = path_graph(9);
  for (const char* preset : {"two-streams", "two-streams-gated", "two-streams-linear"}) {
    for (const bool masked : {false, true}) {
      SCOPED_TRACE(std::string(preset) + (masked ? ", masked" : ""));
      ModelSpec spec;
      spec.width = spec.mlp_width = 12;
      spec.value_width = 6;
      spec.depth = 2;
      apply_preset(preset, spec);
      if (masked) spec.pair_mask = PairMask::edges;
      spec.real_nodes = 9;
      spec.pair_columns = shape.pair_columns;
      spec.pair_classes = shape.pair_classes;
      if (!masked) spec.score_bias = ScoreBias::pairs;
      spec = resolve(spec);
      const Parameters<double> parameters = to_double(testing::random_parameters(spec, 3));
      std::vector<double> x(9), scaled(9);
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = random.uniform(-2, 2);
        scaled[i] = 1000 * x[i];
      }
      const auto outputs = [&](const Graph& of, const std::vector<double>& inputs) {
        return reference_forward(spec, parameters, GraphSample(of, structure, inputs).batch());
      };
      const std::vector<double> y = outputs(graph, x), z = outputs(graph, scaled);
      double largest = 0;
      for (const double value : y) largest = std::max(largest, std::abs(value));
      ASSERT_GT(largest, 1e-3);
      for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(z[i], 1000 * y[i], 1e-10 * largest);
      EXPECT_NE(outputs(other, x), y);  // it reads the graph
    }
  }
}

}  // namespace
}  // namespace posattn
