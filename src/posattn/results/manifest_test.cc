#include "posattn/results/manifest.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "posattn/base/error.h"

namespace posattn {
namespace {

Manifest example() {
  Manifest manifest;
  manifest.configuration = R"({"epochs":5,"task":"sort"})";
  manifest.seeds = {{"run", "3"}};
  manifest.engine = {{"path", "auto"}, {"device", "cpu"}};
  manifest.libraries = {{"OpenBLAS", "0.3"}};
  manifest.command_line = "posattn train --task sort";
  manifest.started = "2025-01-31T12:00:00Z";
  manifest.ended = "2025-01-31T12:01:00Z";
  manifest.status = RunStatus::diverged;
  manifest.message = "the loss became nan";
  manifest.epoch = 4;
  manifest.final_metrics = R"({"epoch":4,"train_loss":0.5})";
  return manifest;
}

TEST(Manifest, ReadsBackWhatWasWritten) {
  const Manifest expected = example();
  const Manifest actual = manifest_from_json(to_json(expected), "manifest.json");
  EXPECT_EQ(actual.configuration, expected.configuration);
  EXPECT_EQ(actual.seeds, expected.seeds);
  EXPECT_EQ(actual.engine, expected.engine);
  EXPECT_EQ(actual.libraries, expected.libraries);
  EXPECT_EQ(actual.command_line, expected.command_line);
  EXPECT_EQ(actual.started, expected.started);
  EXPECT_EQ(actual.ended, expected.ended);
  EXPECT_EQ(actual.status, expected.status);
  EXPECT_EQ(actual.message, expected.message);
  EXPECT_EQ(actual.epoch, expected.epoch);
  EXPECT_EQ(actual.final_metrics, expected.final_metrics);
}

TEST(Manifest, NamesTheBuild) {
  const nlohmann::json json = nlohmann::json::parse(to_json(example()));
  EXPECT_FALSE(json["build"]["version"].get<std::string>().empty());
  EXPECT_TRUE(json["build"].contains("commit"));
  EXPECT_TRUE(json["build"].contains("compiler"));
  EXPECT_TRUE(json["build"].contains("flags"));
}

TEST(Manifest, ARunningOneHasNoEnd) {
  Manifest manifest;
  manifest.configuration = "{}";
  const nlohmann::json json = nlohmann::json::parse(to_json(manifest));
  EXPECT_EQ(json["status"], "running");
  EXPECT_TRUE(json["ended"].is_null());
  EXPECT_TRUE(json["final"].is_null());
}

TEST(Manifest, AnyCommandLineCanBeWritten) {
  Manifest manifest = example();
  manifest.command_line = "posattn train --out '\xff\xfe'";
  EXPECT_NO_THROW(manifest_from_json(to_json(manifest), "manifest.json"));
}

TEST(Manifest, RefusesOtherFiles) {
  for (const char* text : {"", "{}", "[]", R"({"status": "done"})", R"({"status": 3})"}) {
    EXPECT_THROW(manifest_from_json(text, "manifest.json"), Error) << text;
  }
  std::string unknown_status = to_json(example());
  unknown_status.replace(unknown_status.find("diverged"), 8, "bored");
  EXPECT_THROW(manifest_from_json(unknown_status, "manifest.json"), Error);
}

TEST(Manifest, TimeIsIso8601) {
  const std::string now = utc_now();
  ASSERT_EQ(now.size(), 20u);
  EXPECT_EQ(now[10], 'T');
  EXPECT_EQ(now[19], 'Z');
  EXPECT_GT(now, "2025");
}

}  // namespace
}  // namespace posattn
