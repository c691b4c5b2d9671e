// One sample of each task and of each kind of data, to the bit: recorded runs were trained and
// tested on these.
#include <gtest/gtest.h>

#include <vector>

#include "posattn/tasks/dataset.h"

namespace posattn {
namespace {

using Floats = std::vector<float>;

DatasetRequest request_of(const char* task, int length) {
  return {.task = &find_task(task),
          .length = length,
          .samples = 3,
          .range = training_range(2, false),
          .seed = 11};
}

Floats inputs_of(const Dataset& set, int64_t sample) {
  const float* first = set.inputs.data() + sample * set.shape.input_count();
  return {first, first + set.shape.input_count()};
}

Floats targets_of(const Dataset& set, int64_t sample) {
  const float* first = set.targets.data() + sample * set.shape.target_count();
  return {first, first + set.shape.target_count()};
}

TEST(GoldenSamples, OfEveryTask) {
  const Floats four = {0.975017309f, -0.482844859f, 0.904112816f, -0.428028077f};
  const struct {
    const char* task;
    int length;
    Floats inputs, targets;
  } golden[] = {
      {"cumulative-sum", 4, four, {0.975017309f, 0.49217245f, 1.3962853f, 0.968257189f}},
      {"cumulative-min", 4, four, {0.975017309f, -0.482844859f, -0.482844859f, -0.482844859f}},
      {"cumulative-max", 4, four, {0.975017309f, 0.975017309f, 0.975017309f, 0.975017309f}},
      {"cumulative-median", 4, four, {0.975017309f, 0.246086225f, 0.904112816f, 0.238042369f}},
      {"cumulative-max-subarray", 4, four, {0.975017309f, 0.975017309f, 1.3962853f, 1.3962853f}},
      {"stream-sum", 4, four, {0, 0, 0, 0.968257189f}},
      {"stream-mean", 4, four, {0, 0, 0, 0.242064297f}},
      {"stream-min", 4, four, {0, 0, 0, -0.482844859f}},
      {"sort", 4, four, {-0.482844859f, -0.428028077f, 0.904112816f, 0.975017309f}},
      {"min-sum",
       4,
       {0.975017309f, -0.482844859f, 0.904112816f, -0.428028077f, 0.61160934f, 0.829877019f,
        0.977234244f, -0.0262320638f},
       {1.58662665f, 0.34703216f, 0.34703216f, -0.454260141f, 1.58662665f, 0.34703216f, 0.34703216f,
        -0.454260141f}},
      {"path",
       3,
       {0, 1.15835714f, -0.338616371f, 1.15835714f, 0, 0, -0.338616371f, 0, 0},
       {0, 1.15835714f, -0.338616371f, 1.15835714f, 0, 0.819740772f, -0.338616371f, 0.819740772f,
        0}},
  };
  for (const auto& row : golden) {
    const Dataset set = make_dataset(request_of(row.task, row.length));
    EXPECT_EQ(inputs_of(set, 2), row.inputs) << row.task;
    EXPECT_EQ(targets_of(set, 2), row.targets) << row.task;
  }
}

TEST(GoldenSamples, OfAGraph) {
  const Dataset set = make_dataset(request_of("neighbour-min", 4));
  EXPECT_EQ(inputs_of(set, 2), (Floats{0.975017309f, -0.482844859f, 0.904112816f, -0.428028077f}));
  EXPECT_EQ(targets_of(set, 2),
            (Floats{-0.428028077f, -0.482844859f, 0.904112816f, -0.482844859f}));
  EXPECT_EQ(std::vector<int32_t>(set.pair_classes.begin() + 32, set.pair_classes.end()),
            (std::vector<int32_t>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0}));
}

std::vector<int32_t> labels_of(const Dataset& set, int64_t sample) {
  const auto first = set.labels.begin() + sample * set.shape.real_nodes;
  return {first, first + set.shape.real_nodes};
}

TEST(GoldenSamples, OfNeighbourTasks) {
  const auto of = [](const char* task) { return targets_of(make_dataset(request_of(task, 4)), 2); };
  EXPECT_EQ(of("neighbour-sum"),
            (Floats{0.546989202f, -0.910872936f, 0.904112816f, 0.0641443729f}));
  EXPECT_EQ(of("neighbour-mean"),
            (Floats{0.273494601f, -0.455436468f, 0.904112816f, 0.0213814583f}));
  const Dataset set = make_dataset(request_of("distance-to-marked", 6));
  EXPECT_EQ(inputs_of(set, 2), (Floats{1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(labels_of(set, 2), (std::vector<int32_t>{0, 2, 3, 2, 1, 4}));
}

// The graph and the nodes asked for are the same in every question and form.
TEST(GoldenSamples, OfQuestionsAboutGraphs) {
  const auto drawn = [](const char* task, const char* set, int length) {
    DatasetRequest request = request_of(task, length);
    request.task = &find_task(task, set);
    return make_dataset(request);
  };
  const auto answer = [&](const char* task) {
    return labels_of(drawn(task, "percent=40", 4), 2).back();
  };
  EXPECT_EQ(inputs_of(drawn("graph-distance", "percent=40", 4), 2),
            (Floats{1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 1}));
  const Dataset pairs = drawn("graph-distance", "percent=40,form=pairs", 4);
  EXPECT_EQ(inputs_of(pairs, 2), (Floats{1, 0, 0, 1, 0, 0, 1, 0, 1, 1, 1, 0}));
  EXPECT_EQ(std::vector<int32_t>(pairs.pair_classes.begin() + 32, pairs.pair_classes.end()),
            (std::vector<int32_t>{0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(labels_of(pairs, 2), (std::vector<int32_t>{-1, -1, 8, 8}));
  EXPECT_EQ(targets_of(drawn("graph-count", "percent=40", 4), 2), (Floats{0, 0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(answer("graph-edge"), 0);
  EXPECT_EQ(answer("graph-connected"), 0);
  EXPECT_EQ(answer("graph-distance"), 8);
  EXPECT_EQ(answer("graph-cycle"), 0);
  const Dataset cycles = drawn("one-two-cycle", "form=rows", 6);
  EXPECT_EQ(inputs_of(cycles, 1), (Floats{1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0, 0, 1, 0,
                                          1, 0, 0, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1,
                                          1, 0, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(labels_of(cycles, 1), (std::vector<int32_t>{1, 1, 1, 1, 1, 1}));
}

TEST(GoldenSamples, OfEveryPurposeAndRange) {
  const struct {
    Purpose purpose;
    double scale;
    bool integers;
    Floats inputs;
  } golden[] = {
      {Purpose::validation_data, 1, false, {1.15423357f, 1.12883341f, 1.11386335f, 1.1185106f}},
      {Purpose::test_data, 1, false, {0.927402735f, 1.44989204f, 0.626933336f, 0.297613859f}},
      {Purpose::test_data, 3, false, {-0.325664282f, 0.20211792f, 0.443290949f, -0.346876144f}},
      {Purpose::test_data, 1000, false, {-1016.50391f, -918.161499f, -273.335327f, -796.397949f}},
      {Purpose::evaluation_data,
       2.5,
       false,
       {1.54552507f, -0.849033535f, 1.14445543f, -1.36566913f}},
      {Purpose::train_data, 1, true, {1, 1, 0, -1}},
      {Purpose::test_data, 10, true, {19, 13, 15, 4}},
  };
  for (const auto& row : golden) {
    DatasetRequest request = request_of("sort", 4);
    request.purpose = row.purpose;
    request.scale = row.scale;
    request.range = test_range(2, row.scale, row.integers);
    EXPECT_EQ(inputs_of(make_dataset(request), 1), row.inputs)
        << "purpose " << static_cast<uint32_t>(row.purpose) << ", scale " << row.scale;
  }
}

}  // namespace
}  // namespace posattn
