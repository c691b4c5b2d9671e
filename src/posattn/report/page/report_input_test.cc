#include "posattn/report/page/report_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/model/model_file.h"
#include "posattn/results/manifest.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReadRuns : public testing::Test {
 protected:
  // A run of two epochs at length 4, as training leaves it.
  std::filesystem::path write_run(const std::string& architecture, int64_t seed,
                                  const std::string& task = "cumulative-sum", int64_t epochs = 2) {
    RunConfig config;
    config.task = task;
    config.architecture = architecture;
    config.seed = seed;
    config.epochs = epochs;
    return write_run(config, architecture + "-" + std::to_string(seed));
  }

  std::filesystem::path write_run(RunConfig config, const std::string& name) {
    std::filesystem::path run = folder_ / "runs" / name;
    create_folder(run);
    config.length = 4;
    config.checkpoint_every = 1.0 + static_cast<double>(config.seed);  // may differ, never matters
    Manifest manifest;
    manifest.configuration = to_json(config);
    manifest.command_line = "posattn train --task " + config.task;
    manifest.status = RunStatus::done;
    manifest.epoch = 2;
    write_file(run / "manifest.json", to_json(manifest));
    EpochRecord record{.epoch = 1,
                       .step = 30,
                       .train_loss = 2,
                       .lr = 1e-3,
                       .validation_loss = {},
                       .tests = {},
                       .seconds = 1};
    std::string metrics = to_json(record) + "\n";
    record.epoch = 2;
    record.train_loss = 1;
    record.validation_loss = 1.5;
    record.seconds = 2;
    record.tests = {{Split::test, "c", 1, "mse", 0},
                    {Split::test, "c", 1, "accuracy", 0},
                    {Split::test, "c", 10, "mse", 7},
                    {Split::test, "c", 10, "accuracy", 0}};
    metrics += to_json(record) + "\n{\"epoch\": 3, \"tr";  // the last line is still being written
    write_file(run / "metrics.jsonl", metrics);

    const ModelSpec spec = model_spec(config);
    Model model{.spec = spec, .parameters = Parameters<float>(spec), .origin = {}};
    initialise(model.parameters, 1);
    model.origin.task = config.task;
    model.origin.length = 4;
    save_model(run / "model.safetensors", model);
    return run;
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path& folder_ = temporary_.path();
};

TEST_F(ReadRuns, FindsEveryRunBelowAFolder) {
  write_run("standard", 0);
  write_run("positional", 10);
  write_run("positional", 2);
  const ReportInput input = read_runs({folder_, folder_ / "runs" / "standard-0"});
  ASSERT_EQ(input.runs.size(), 3U);  // the one named twice only once
  EXPECT_EQ(input.runs[0].architecture, "positional");
  EXPECT_EQ(input.runs[0].seed, 2);
  EXPECT_EQ(input.runs[1].seed, 10);
  EXPECT_EQ(input.runs[2].architecture, "standard");
  EXPECT_EQ(input.title, "cumulative-sum, length 4");
  EXPECT_EQ(input.range, 2);
  EXPECT_THAT(input.commands, ElementsAre("posattn train --task cumulative-sum"));
}

TEST_F(ReadRuns, ReadsCurveTestsAndStatus) {
  const RunReport run = read_runs({write_run("positional", 0)}).runs.at(0);
  EXPECT_EQ(run.status, "done");
  ASSERT_EQ(run.curve.size(), 2U);
  EXPECT_EQ(run.curve[1].train, 1);
  EXPECT_FALSE(run.curve[0].validation.has_value());
  EXPECT_EQ(run.curve[1].validation, 1.5);
  EXPECT_EQ(run.seconds, 2);
  EXPECT_EQ(tested_values(run.tests, "c").size(), 2U);
  EXPECT_EQ(find_value(run.tests, {.axis = "c", .x = 10, .metric = "mse"}), 7);
  EXPECT_THAT(run.manifest, HasSubstr("\"status\": \"done\""));
}

TEST_F(ReadRuns, AttentionOfPositionsHasOneMapAndOfDataTwo) {
  write_run("positional", 0);
  write_run("positional", 1);
  write_run("standard", 0);
  const ReportInput input = read_runs({folder_});
  ASSERT_EQ(input.runs[0].attention.size(), 1U);
  EXPECT_TRUE(input.runs[1].attention.empty());
  ASSERT_EQ(input.runs[2].attention.size(), 2U);
  const AttentionMaps& maps = input.runs[2].attention[0];
  EXPECT_EQ(maps.nodes, 5);
  ASSERT_EQ(maps.weights.size(), size_t{3 * 2 * 5 * 5});
  double row = 0;
  for (int i = 0; i < 5; ++i) row += maps.weights[i];
  EXPECT_NEAR(row, 1, 1e-5);
  EXPECT_NE(maps.weights, input.runs[2].attention[1].weights);
}

TEST_F(ReadRuns, TasksOfOtherProgramsHaveWhatWasRecorded) {
  write_run("positional", 0);
  write_run("standard", 0);
  for (const char* name : {"positional-0", "standard-0"}) {
    const std::filesystem::path file = folder_ / "runs" / name / "manifest.json";
    std::string text = read_text_file(file, 1 << 20);
    const std::string known = "cumulative-sum";
    for (size_t at = text.find(known); at != std::string::npos; at = text.find(known)) {
      text.replace(at, known.size(), "own");
    }
    write_file(file, text);
  }
  const ReportInput input = read_runs({folder_});
  EXPECT_EQ(input.title, "own, length 4");
  EXPECT_EQ(input.runs[0].attention.size(), 1U);
  EXPECT_TRUE(input.runs[1].attention.empty());
  EXPECT_EQ(find_value(input.runs[1].tests, {.axis = "c", .x = 10, .metric = "mse"}), 7);
}

TEST_F(ReadRuns, RefusesWhatDoesNotCompareOrIsNoRun) {
  write_run("positional", 0);
  EXPECT_THROW(read_runs({folder_ / "nothing"}), Error);
  EXPECT_THROW(read_runs({}), Error);
  write_run("positional", 1, "sort");
  EXPECT_THROW(read_runs({folder_}), Error);
}

TEST_F(ReadRuns, RunsOfBothDevicesAreKeptApartAndNamed) {
  RunConfig config;
  config.device = "cuda";
  config.precision = "fp32";
  write_run(config, "a");
  EXPECT_EQ(read_runs({folder_}).runs[0].execution, "");
  config.device = "cpu";
  write_run(config, "b");
  EXPECT_EQ(read_runs({folder_}).runs[0].execution, "cpu");
  config.device = "cuda";
  config.precision = "tf32";
  write_run(config, "c");
  const ReportInput input = read_runs({folder_});
  ASSERT_EQ(input.runs.size(), 3U);
  EXPECT_EQ(input.runs[0].execution, "cpu, fp32");
  EXPECT_EQ(input.runs[1].execution, "cuda, fp32");
  EXPECT_EQ(input.runs[2].execution, "cuda, tf32");
}

TEST_F(ReadRuns, RefusesRunsOfOtherSettings) {
  write_run("positional", 0);
  write_run("standard", 1, "cumulative-sum", 5);
  try {
    read_runs({folder_});
    FAIL() << "runs of 2 and of 5 epochs were compared";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("epochs is 2 there, 5 here"));
  }
}

TEST_F(ReadRuns, LeavesOutARunThatCannotBeRead) {
  write_run("positional", 0);
  const std::filesystem::path empty = write_run("positional", 1), torn = write_run("standard", 2);
  write_file(empty / "manifest.json", std::string_view("{}"));
  write_file(torn / "metrics.jsonl", std::string_view("[1]\n"));
  const ReportInput input = read_runs({folder_});
  EXPECT_EQ(input.runs.size(), 1U);
  EXPECT_THAT(input.left_out, testing::UnorderedElementsAre(
                                  HasSubstr("positional-1/manifest.json: 'status' is missing"),
                                  HasSubstr("standard-2/metrics.jsonl:1")));
}

TEST_F(ReadRuns, RefusesBrokenFiles) {
  const std::filesystem::path run = write_run("positional", 0);
  const std::string manifest = read_text_file(run / "manifest.json", 1 << 20);
  write_file(run / "manifest.json", manifest.substr(0, manifest.size() / 2));
  EXPECT_THROW(read_runs({run}), Error);

  std::string wrong_length = manifest;
  const size_t at = wrong_length.find("\"length\": 4");
  ASSERT_NE(at, std::string::npos);
  wrong_length.replace(at, 11, "\"length\": 2000000000");
  write_file(run / "manifest.json", wrong_length);
  EXPECT_THROW(read_runs({run}), Error);

  write_file(run / "manifest.json", manifest);
  write_file(run / "metrics.jsonl", std::string_view("[1]\n"));
  EXPECT_THROW(read_runs({run}), Error);
}

}  // namespace
}  // namespace posattn
