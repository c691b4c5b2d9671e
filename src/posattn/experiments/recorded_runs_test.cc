#include "posattn/experiments/recorded_runs.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/limits.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/experiments/experiment.h"

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
  result.measurements = {{Split::test, "c", 1, "mse", 1.0 / 3},
                         {Split::test, "c", 1, "accuracy", 0.5},
                         {Split::test, "c", 10, "mse", std::numeric_limits<double>::quiet_NaN()},
                         {Split::test, "c", 10, "accuracy", 0},
                         {Split::train, "", 0, "mse", 0.1 + 0.2},
                         {Split::validation, "", 0, "mse", 1e-300}};
  return result;
}

void set_loss(RunResult& result, Split split, double value) {
  set_value(result.measurements, {.split = split, .metric = "mse"}, value);
}

std::optional<double> loss_of(const RunResult& result, Split split) {
  return find_value(result.measurements, {.split = split, .metric = "mse"});
}

double mse_at(const RunResult& result, double c) {
  return find_value(result.measurements, {.axis = "c", .x = c, .metric = "mse"}).value();
}

TEST(RecordedRuns, ComeBackAsTheyWere) {
  const RunResult result = finished_run(3);
  const auto read = run_results_from_text(to_json_line(result) + "\n", "runs.jsonl");
  ASSERT_THAT(read, SizeIs(1));
  EXPECT_EQ(read[0].key, result.key);
  EXPECT_EQ(read[0].configuration, result.configuration);
  EXPECT_EQ(read[0].status, RunStatus::done);
  EXPECT_EQ(read[0].steps, 70);
  EXPECT_EQ(loss_of(read[0], Split::train), 0.1 + 0.2);
  EXPECT_EQ(loss_of(read[0], Split::validation), 1e-300);
  EXPECT_THAT(read[0].measurements, SizeIs(6));
  EXPECT_EQ(mse_at(read[0], 1), 1.0 / 3);
  EXPECT_TRUE(std::isnan(mse_at(read[0], 10)));
}

TEST(RecordedRuns, KeepTheirFirstShape) {
  const std::string line = to_json_line(finished_run(3));
  EXPECT_THAT(line, HasSubstr(R"("train_loss":0.30000000000000004,"validation_loss":1e-300,)"
                              R"("tests":[{"c":1.0,"mse":0.3333333333333333,"accuracy":0.5},)"
                              R"({"c":10.0,"mse":null,"accuracy":0.0}],)"
                              R"("checksum":"0edec17788b37622"})"));
}

TEST(RecordedRuns, OtherRowsComeBackToo) {
  RunResult result = finished_run(3);
  result.measurements.push_back({Split::test, "length", 16, "mse", 2});
  result.measurements.push_back({Split::validation, "", 0, "cross_entropy", 3});
  const std::string line = to_json_line(result);
  EXPECT_THAT(line, HasSubstr(R"("rows":[{"split":"test","axis":"length","x":16.0,)"));
  const RunResult read = run_results_from_text(line, "runs.jsonl").at(0);
  EXPECT_THAT(read.measurements, SizeIs(8));
  EXPECT_EQ(find_value(read.measurements, {.axis = "length", .x = 16, .metric = "mse"}), 2);
  EXPECT_EQ(find_value(read.measurements, {.split = Split::validation, .metric = "cross_entropy"}),
            3);
  EXPECT_EQ(to_json_line(read), line);
}

TEST(RecordedRuns, InfiniteStaysInfinite) {
  RunResult result = finished_run(3);
  set_loss(result, Split::train, infinity);
  set_loss(result, Split::validation, -infinity);
  set_value(result.measurements, {.axis = "c", .x = 1, .metric = "mse"}, infinity);
  const auto read = run_results_from_text(to_json_line(result) + "\n", "runs.jsonl");
  ResultsDatabase database;
  database.record(read.at(0));
  const RunResult found = database.find(result.key).value();
  EXPECT_EQ(loss_of(found, Split::train), infinity);
  EXPECT_EQ(loss_of(found, Split::validation), -infinity);
  EXPECT_EQ(mse_at(found, 1), infinity);
  EXPECT_TRUE(std::isnan(mse_at(found, 10)));
}

TEST(RecordedRuns, AFlippedBitIsRefusedOrChangesNothing) {
  const std::string good =
      to_json_line(finished_run(1)) + "\n" + to_json_line(finished_run(2)) + "\n";
  std::string text = good;
  for (size_t bit = 0; bit < 8 * text.size(); bit += 3) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << bit % 8));
    try {
      const std::vector<RunResult> read = run_results_from_text(text, "runs.jsonl");
      std::string again;
      for (const RunResult& result : read) again += to_json_line(result) + "\n";
      EXPECT_EQ(again, good) << bit;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr("runs.jsonl:"));
    }
    text[bit / 8] = good[bit / 8];
  }
}

TEST(RecordedRuns, TheChecksumIsOfTheValuesNotOfTheirSpelling) {
  const std::string line = to_json_line(finished_run(1));
  const std::string spelled = nlohmann::json::parse(line).dump(1, ' ', true);
  std::string one_line = spelled;
  std::ranges::replace(one_line, '\n', ' ');
  EXPECT_THAT(run_results_from_text(one_line, "runs.jsonl"), SizeIs(1));
}

TEST(RecordedRuns, OnlyOlderVersionsWroteLinesWithoutAChecksum) {
  const auto without = [](const char* version, double loss) {
    RunResult result = finished_run(1);
    result.version = version;
    nlohmann::json line = nlohmann::json::parse(to_json_line(result));
    line.erase("checksum");
    line["train_loss"] = loss;
    return line.dump();
  };
  for (const char* version : {"0.1.0", "0.2.0"}) {
    const auto read = run_results_from_text(without(version, 2), "runs.jsonl");
    EXPECT_EQ(loss_of(read.at(0), Split::train), 2);
  }
  EXPECT_THROW(run_results_from_text(without("0.3.0", 2), "runs.jsonl"), Error);
}

TEST(RecordedRuns, AreReadWithoutADatabase) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "mine");
  write_file(folder.path() / "mine" / "runs.jsonl",
             to_json_line(finished_run(1)) + "\n" + to_json_line(finished_run(2)) + "\n");
  const ResultsDatabase database = open_results(folder.path());
  EXPECT_THAT(database.all(), SizeIs(2));
  EXPECT_TRUE(database.find(finished_run(2).key));
  // Reading must work where nothing can be written.
  const std::filesystem::directory_iterator entries(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(RecordedRuns, ABadLineIsNotPassedOver) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"}) std::filesystem::create_directories(folder.path() / name);
  const std::string good = to_json_line(finished_run(1)) + "\n";
  write_file(folder.path() / "a" / "runs.jsonl", good);
  write_file(folder.path() / "b" / "runs.jsonl", "{}\n");
  EXPECT_THROW(open_results(folder.path()), Error);
  std::filesystem::remove(folder.path() / "b" / "runs.jsonl");
  EXPECT_EQ(open_results(folder.path()).all().size(), 1u);
}

TEST(RecordedRuns, WhatTheDatabaseHasStays) {
  const TemporaryFolder folder;
  ResultsDatabase database(folder.path(), ResultsDatabase::Access::write);
  RunResult here = finished_run(1);
  set_loss(here, Split::train, 5);
  database.record(here);
  std::filesystem::create_directories(folder.path() / "mine");
  write_file(folder.path() / "mine" / "runs.jsonl",
             to_json_line(finished_run(1)) + "\n" + to_json_line(finished_run(2)) + "\n");
  EXPECT_EQ(import_recorded_runs(folder.path(), database), 1);
  EXPECT_EQ(loss_of(*database.find(here.key), Split::train), 5);
}

// Files that come into the folder later, as those of somebody else.
TEST(RecordedRuns, AddToTheDatabaseForReaders) {
  const TemporaryFolder folder;
  RunResult here = finished_run(1), failed = finished_run(2);
  set_loss(here, Split::train, 5);
  failed.status = RunStatus::failed;
  {
    ResultsDatabase database(folder.path(), ResultsDatabase::Access::write);
    database.record(here);
    database.record(failed);
  }
  EXPECT_EQ(open_results(folder.path()).all().size(), 2u);
  std::filesystem::create_directories(folder.path() / "theirs");
  write_file(folder.path() / "theirs" / "runs.jsonl", to_json_line(finished_run(1)) + "\n" +
                                                          to_json_line(finished_run(2)) + "\n" +
                                                          to_json_line(finished_run(3)) + "\n");
  const ResultsDatabase all = open_results(folder.path());
  EXPECT_THAT(all.all(), SizeIs(3));
  EXPECT_EQ(loss_of(*all.find(here.key), Split::train), 5);
  EXPECT_EQ(all.find(failed.key)->status, RunStatus::done);
  EXPECT_THAT(all.find(finished_run(3).key)->measurements, SizeIs(6));
  const ResultsDatabase stored(folder.path(), ResultsDatabase::Access::read);
  EXPECT_THAT(stored.all(), SizeIs(2));  // reading writes nothing
  EXPECT_EQ(stored.find(failed.key)->status, RunStatus::failed);
}

TEST(RecordedRuns, AFolderIsNoDatabase) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "results.db");
  EXPECT_TRUE(has_results(folder.path()));
  for (const bool reading : {true, false}) {
    try {
      if (reading)
        open_results(folder.path());
      else
        ResultsDatabase(folder.path(), ResultsDatabase::Access::write);
      ADD_FAILURE() << "opened";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr("results.db' cannot be used: it is a folder"));
    }
  }
}

TEST(RecordedRuns, RefusesImpossibleResults) {
  const std::string good = to_json_line(finished_run(1));
  ASSERT_THAT(run_results_from_text(good, "runs.jsonl"), SizeIs(1));
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  const std::pair<std::string, std::string> changes[] = {
      {R"("mse":0.3333333333333333)", R"("mse":-1)"},
      {R"("mse":0.3333333333333333)", R"("mse":"-inf")"},
      {R"("accuracy":0.5)", R"("accuracy":1.5)"},
      {R"("accuracy":0.5)", R"("accuracy":-0.1)"},
      {R"("status":"done")", R"("status":"running")"},
      {R"("status":"done")", R"("status":"good")"},
      {R"("c":10.0)", R"("c":1.0)"},
      {R"("c":10.0)", R"("c":0)"},
      {R"("seconds":1.25)", R"("seconds":-1)"},
      {R"("lr":0.00037)", R"("lr":[0.00037])"},
      {R"("lr":0.00037)", R"("lr":)" + deep},
      {R"("epochs":7)", R"("epochs":7,"epochs":7)"}};
  for (const auto& [from, to] : changes) {
    SCOPED_TRACE(to.substr(0, 40));
    std::string text = good;
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    try {
      run_results_from_text(fmt::format("{}\n{}\n", good, text), "runs.jsonl");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr("runs.jsonl:2"));
    }
  }
}

TEST(RecordedRuns, RefusesWhatIsNoRun) {
  const std::string good = to_json_line(finished_run(1));
  std::string other = good;
  other.replace(other.find("\"sort\""), 6, "\"path\"");
  for (const std::string& text :
       {std::string("{}"), std::string("nonsense"), std::string(100000, '['),
        "{\"key\": \"x\", \"settings\": {\"a\": " + std::string(100000, '[') +
            std::string(100000, ']') + "}}",
        other, good.substr(0, good.size() / 2)}) {
    try {
      run_results_from_text(fmt::format("{}\n{}\n", good, text), "runs.jsonl");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.problem(), HasSubstr("runs.jsonl:2"));
    }
  }
}

}  // namespace
}  // namespace posattn
