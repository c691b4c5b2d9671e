#include "posattn/experiments/recorded_runs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/experiments/experiment.h"
#include "posattn/results/temporary_folder_test.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

RunResult finished_run(int64_t seed) {
  RunConfig config;
  config.seed = seed;
  config.task = "sort";
  config.lr = 0.00037;
  config.device = "cuda";
  RunResult result;
  result.key = run_key(config);
  result.configuration = to_json(config);
  result.epochs = 7;
  result.steps = 70;
  result.seconds = 1.25;
  result.device = "cuda";
  result.version = "0.1.0";
  result.commit = "abc";
  result.ended = "2026-01-01T00:00:00Z";
  result.train_loss = 0.1 + 0.2;
  result.validation_loss = 1e-300;
  ScaleResult one, ten;
  one.c = 1;
  one.mse = one.mse_over_c2 = 1.0 / 3;
  one.accuracy = 0.5;
  ten.c = 10;
  ten.mse = ten.mse_over_c2 = std::numeric_limits<double>::quiet_NaN();
  result.tests = {one, ten};
  return result;
}

TEST(RecordedRuns, ComeBackAsTheyWere) {
  const RunResult result = finished_run(3);
  const auto read = run_results_from_text(to_json_line(result) + "\n", "runs.jsonl");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_EQ(read[0].key, result.key);
  EXPECT_EQ(read[0].configuration, result.configuration);
  EXPECT_EQ(read[0].status, RunStatus::done);
  EXPECT_EQ(read[0].steps, 70);
  EXPECT_EQ(read[0].train_loss, result.train_loss);
  EXPECT_EQ(read[0].validation_loss, result.validation_loss);
  ASSERT_THAT(read[0].tests, SizeIs(2));
  EXPECT_EQ(read[0].tests[0].mse, 1.0 / 3);
  EXPECT_TRUE(std::isnan(read[0].tests[1].mse));
}

TEST(RecordedRuns, MakeTheDatabaseAgain) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "mine");
  write_file(folder.path() / "mine" / "runs.jsonl",
             to_json_line(finished_run(1)) + "\n" + to_json_line(finished_run(2)) + "\n");
  const ResultsDatabase database = open_results(folder.path());
  EXPECT_THAT(database.all(), SizeIs(2));
  EXPECT_TRUE(database.find(finished_run(2).key));
}

TEST(RecordedRuns, ABadLineLeavesNoDatabaseBehind) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) std::filesystem::create_directories(folder.path() / name);
  const std::string good = to_json_line(finished_run(1)) + "\n";
  write_file(folder.path() / "a" / "runs.jsonl", good);
  write_file(folder.path() / "b" / "runs.jsonl", "{}\n");
  EXPECT_THROW(open_results(folder.path()), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "results.db"));
  std::filesystem::remove(folder.path() / "b" / "runs.jsonl");
  EXPECT_EQ(open_results(folder.path()).all().size(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "results.db.new"));
}

TEST(RecordedRuns, WhatTheDatabaseHasStays) {
  const TemporaryFolder folder;
  ResultsDatabase database(folder.path(), ResultsDatabase::Access::write);
  RunResult here = finished_run(1);
  here.train_loss = 5;
  database.record(here);
  std::filesystem::create_directories(folder.path() / "mine");
  write_file(folder.path() / "mine" / "runs.jsonl",
             to_json_line(finished_run(1)) + "\n" + to_json_line(finished_run(2)) + "\n");
  EXPECT_EQ(import_recorded_runs(folder.path(), database), 1);
  EXPECT_EQ(database.find(here.key)->train_loss, 5);
}

TEST(RecordedRuns, RefusesWhatIsNoRun) {
  const std::string good = to_json_line(finished_run(1));
  std::string other = good;
  other.replace(other.find("\"sort\""), 6, "\"path\"");
  for (const std::string& text :
       {std::string("{}"), std::string("nonsense"), other, good.substr(0, good.size() / 2)}) {
    try {
      run_results_from_text(good + "\n" + text + "\n", "runs.jsonl");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr("runs.jsonl:2"));
    }
  }
}

}  // namespace
}  // namespace posattn
