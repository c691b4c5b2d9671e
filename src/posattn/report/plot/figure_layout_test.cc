#include "posattn/report/plot/figure_layout.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace posattn {
namespace {

Experiment experiment_of(size_t tasks, size_t lines) {
  Experiment experiment;
  experiment.title = "A title of some words";
  experiment.axis = {.key = "test-scales", .values = {1, 2, 3}, .label = "c"};
  for (size_t i = 0; i < tasks; ++i) experiment.tasks.push_back("task-" + std::to_string(i));
  for (size_t i = 0; i < lines; ++i) {
    experiment.lines.push_back({"line-with-a-long-name-" + std::to_string(i), {}});
  }
  return experiment;
}

std::vector<std::string> labels_of(const Experiment& experiment) {
  std::vector<std::string> labels;
  labels.reserve(experiment.lines.size());
  for (const ExperimentLine& line : experiment.lines) labels.push_back(line.name);
  return labels;
}

TEST(FigureLayout, RowsOfUpToThree) {
  const size_t columns[] = {1, 2, 3, 2, 3, 3, 3};
  for (size_t tasks = 1; tasks <= 7; ++tasks) {
    EXPECT_EQ(lay_out(experiment_of(tasks, 2), "note", {"a", "b"}).columns, columns[tasks - 1]);
  }
}

TEST(FigureLayout, NarrowHasOneColumn) {
  for (size_t tasks = 1; tasks <= 7; ++tasks) {
    const FigureLayout layout =
        lay_out(experiment_of(tasks, 2), "note", {"a", "b"}, FigureShape::narrow);
    EXPECT_EQ(layout.columns, 1u);
    EXPECT_GE(layout.panels[0].right - layout.panels[0].left, 200);
  }
}

TEST(FigureLayout, NothingOverlapsOrLeavesTheCanvas) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 200; ++trial) {
    Experiment experiment = experiment_of(1 + random() % 9, 1 + random() % 12);
    if (random() % 2) experiment.reduction = "quick: 100 epochs, 2 runs";
    const std::string note(random() % 300, 'x');
    std::vector<std::string> labels = labels_of(experiment);
    if (random() % 2) labels.emplace_back("published");
    const FigureShape shape = random() % 2 ? FigureShape::wide : FigureShape::narrow;
    const FigureLayout layout =
        lay_out(experiment, fmt::format("{0} words {0}", note), labels, shape);
    EXPECT_EQ(layout.width, shape == FigureShape::wide ? 720 : 320);
    ASSERT_EQ(layout.legend.size(), labels.size());
    EXPECT_EQ(layout.legend.back().text, labels.back());
    ASSERT_EQ(layout.panels.size(), experiment.tasks.size());
    double lowest_panel = 0;
    for (size_t i = 0; i < layout.panels.size(); ++i) {
      const Box& box = layout.panels[i];
      EXPECT_GE(box.left, 0);
      EXPECT_LT(box.left + 100, box.right);
      EXPECT_LE(box.right, layout.width);
      EXPECT_LE(box.bottom, layout.height);
      lowest_panel = std::max(lowest_panel, box.bottom);
      for (size_t j = 0; j < i; ++j) {
        const Box& other = layout.panels[j];
        EXPECT_TRUE(box.left >= other.right || box.top >= other.bottom);
      }
      for (const PlacedText& entry : layout.legend) {
        EXPECT_TRUE(entry.x >= box.right || entry.y >= box.bottom || entry.y <= box.top);
      }
    }
    for (const PlacedText& text : layout.texts) {
      EXPECT_TRUE(text.y < layout.panels[0].top || text.y > lowest_panel);
      EXPECT_LT(text.y, layout.height);
      EXPECT_GE(text.size * 72 / 96, 10);  // points
    }
    for (const PlacedText& entry : layout.legend) EXPECT_LT(entry.y, layout.height);
  }
}

TEST(FigureLayout, LegendTakesAFreeCell) {
  const Experiment experiment = experiment_of(5, 1);
  const FigureLayout below = lay_out(experiment, "", {experiment.lines[0].name, "published"});
  ASSERT_EQ(below.legend.size(), 2u);
  EXPECT_GT(below.legend[0].y, below.panels[4].bottom);  // the name is too long for the cell
  const FigureLayout free_cell = lay_out(experiment, "", {"positional", "published"});
  EXPECT_GT(free_cell.legend[0].y, free_cell.panels[4].top);
  EXPECT_LT(free_cell.legend[1].y, free_cell.panels[4].bottom);
}

TEST(FigureLayout, AxisIsLogarithmicForGeometricValues) {
  const auto logarithmic = [](const std::string& key, const std::vector<double>& values) {
    return horizontal_axis_of({.key = key, .values = values, .label = ""}, 180).logarithmic;
  };
  EXPECT_TRUE(logarithmic("length", {2, 4, 8, 16, 32}));
  EXPECT_TRUE(logarithmic("mlp-width", {2, 4, 8, 16}));
  EXPECT_TRUE(logarithmic("lr", {1e-4, 3e-4, 1e-3}));
  EXPECT_FALSE(logarithmic("samples", {5000, 10000, 15000, 20000, 25000}));
  EXPECT_FALSE(logarithmic("samples", {5000, 20000, 50000}));
  EXPECT_TRUE(logarithmic("samples", {640, 1600, 6400, 16000, 64000}));
  EXPECT_FALSE(logarithmic("letters", {0, 1, 2, 3}));
  EXPECT_FALSE(logarithmic("test-scales", {1, 2, 4, 8}));
  EXPECT_FALSE(logarithmic("length", {8}));
  EXPECT_TRUE(logarithmic("test-scales", {1, 2, 5, 10, 1000}));
  // An axis of tests says itself how it is shown.
  EXPECT_TRUE(horizontal_axis_of({.key = "test-lengths",
                                  .values = {4, 6, 64},
                                  .label = "",
                                  .test_axis = find_evaluation_axis("length")},
                                 180)
                  .logarithmic);
}

TEST(FigureLayout, TicsFitAndIncludeTheLargest) {
  std::vector<double> values;
  for (int i = 1; i <= 10; ++i) values.push_back(5000.0 * i);
  const HorizontalAxis axis =
      horizontal_axis_of({.key = "samples", .values = values, .label = ""}, 160);
  EXPECT_LE(axis.tics.size(), 5u);
  EXPECT_GE(axis.tics.size(), 3u);
  EXPECT_EQ(axis.tics.back().first, "50k");
  EXPECT_LT(axis.first, 5000);
  EXPECT_GT(axis.last, 50000);
  const HorizontalAxis one =
      horizontal_axis_of({.key = "test-scales", .values = {3}, .label = ""}, 160);
  EXPECT_LT(one.first, one.last);
}

}  // namespace
}  // namespace posattn
