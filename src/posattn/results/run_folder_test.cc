#include "posattn/results/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "posattn/base/error.h"
#include "posattn/base/temporary_folder_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr const char* configuration = R"({"checkpoint-every":30.0,"epochs":5})";

class RunFolderTest : public testing::Test {
 protected:
  RunFolder take(bool resume, const std::string& settings = configuration) const {
    return RunFolder(path(), settings, {"checkpoint-every"}, resume);
  }
  fs::path path() const { return folder_.path() / "runs" / "positional-seed0"; }

  void leave_a_run() const {
    const RunFolder folder = take(false);
    Manifest manifest;
    manifest.configuration = configuration;
    manifest.status = RunStatus::interrupted;
    manifest.epoch = 2;
    folder.write_manifest(manifest);
  }

  void expect_refused(ExitCode code, const std::string& text, bool resume,
                      const std::string& settings = configuration) const {
    try {
      take(resume, settings);
      FAIL() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }

  static std::string text_of(const fs::path& file) { return read_text_file(file, 1 << 20); }

  TemporaryFolder folder_;
};

TEST_F(RunFolderTest, ANewFolderIsMadeAndHasNoPast) {
  const RunFolder folder = take(false);
  EXPECT_TRUE(fs::is_directory(path()));
  EXPECT_FALSE(folder.previous().has_value());
  EXPECT_TRUE(folder.metrics_lines().empty());
}

// A folder from elsewhere may hold links to what is nobody else's business.
TEST_F(RunFolderTest, LinksInItAreNotWrittenThrough) {
  leave_a_run();
  const fs::path other = folder_.path() / "other";
  fs::copy_file(path() / "manifest.json", other);
  fs::remove(path() / "manifest.json");
  fs::create_symlink(other, path() / "manifest.json");
  const std::string before = text_of(other);
  const RunFolder folder = take(true);
  folder.write_manifest({});
  EXPECT_FALSE(fs::is_symlink(path() / "manifest.json"));
  fs::create_symlink(other, path() / "metrics.jsonl");
  EXPECT_THROW(folder.append_metrics("{}"), Error);
  EXPECT_EQ(text_of(other), before);
}

TEST_F(RunFolderTest, ARunIsRefusedUnlessResumed) {
  leave_a_run();
  expect_refused(ExitCode::configuration, "already holds this run (interrupted after epoch 2)",
                 false);
  const RunFolder folder = take(true);
  ASSERT_TRUE(folder.previous().has_value());
  EXPECT_EQ(folder.previous()->epoch, 2);
}

TEST_F(RunFolderTest, AnotherRunIsRefusedEvenWhenResumed) {
  leave_a_run();
  const std::string other = R"({"checkpoint-every":30.0,"epochs":6})";
  expect_refused(ExitCode::configuration, "holds another run: epochs is 5 there, 6 here", true,
                 other);
  expect_refused(ExitCode::configuration, "holds another run", false, other);
  EXPECT_NO_THROW(take(true, R"({"checkpoint-every":0.0,"epochs":5})"));
}

TEST_F(RunFolderTest, OtherFilesAreRefused) {
  fs::create_directories(path());
  std::ofstream(path() / "thesis.tex") << "text";
  expect_refused(ExitCode::configuration, "holds files of something else", true);
  EXPECT_EQ(text_of(path() / "thesis.tex"), "text");
}

TEST_F(RunFolderTest, ACorruptManifestIsRefused) {
  leave_a_run();
  std::ofstream(path() / "manifest.json") << "{";
  expect_refused(ExitCode::data, "manifest.json", true);
}

TEST_F(RunFolderTest, AFolderInUseIsRefused) {
  leave_a_run();
  const RunFolder held = take(true);
  expect_refused(ExitCode::failed, "in use", true);
}

TEST_F(RunFolderTest, APathBelowAFileIsRefused) {
  std::ofstream(folder_.path() / "runs") << "a file";
  expect_refused(ExitCode::failed, "positional-seed0", false);
}

TEST_F(RunFolderTest, WhatAKilledProcessLeftIsRemoved) {
  leave_a_run();
  const fs::path partial = path() / "checkpoint.safetensors.123-0.partial";
  std::ofstream(partial) << "half";
  take(true);
  EXPECT_FALSE(fs::exists(partial));
}

TEST_F(RunFolderTest, MetricsAfterTheEpochAndATornLineAreDropped) {
  const RunFolder folder = take(false);
  for (int epoch = 1; epoch <= 4; ++epoch) {
    folder.append_metrics("{\"epoch\":" + std::to_string(epoch) + "}");
  }
  EXPECT_EQ(folder.metrics_lines().size(), 4u);
  EXPECT_EQ(folder.metrics_lines().back(), "{\"epoch\":4}");
  std::ofstream(folder.metrics(), std::ios::app) << "{\"epo";
  EXPECT_EQ(folder.metrics_lines().size(), 4u);
  folder.drop_metrics_after(4);
  EXPECT_EQ(text_of(folder.metrics()),
            "{\"epoch\":1}\n{\"epoch\":2}\n{\"epoch\":3}\n{\"epoch\":4}\n");
  folder.drop_metrics_after(2);
  EXPECT_EQ(text_of(folder.metrics()), "{\"epoch\":1}\n{\"epoch\":2}\n");
  folder.replace_last_metrics("{\"epoch\":7}");
  EXPECT_EQ(text_of(folder.metrics()), "{\"epoch\":1}\n{\"epoch\":7}\n");
  folder.drop_metrics_after(0);
  EXPECT_EQ(text_of(folder.metrics()), "");
  EXPECT_TRUE(folder.metrics_lines().empty());
}

TEST_F(RunFolderTest, MetricsThatCannotReachTheDiskAreAnError) {
  const RunFolder folder = take(false);
  EXPECT_NO_THROW(folder.sync_metrics());  // there are none yet
  folder.append_metrics("{\"epoch\":1}");
  EXPECT_NO_THROW(folder.sync_metrics());
  EXPECT_EQ(text_of(folder.metrics()), "{\"epoch\":1}\n");
  fs::remove(folder.metrics());
  fs::create_directory(folder.metrics());
  EXPECT_THROW(folder.sync_metrics(), Error);
}

TEST_F(RunFolderTest, AFullDiskLeavesNoHalfLine) {
  const RunFolder folder = take(false);
  folder.append_metrics("{\"epoch\":1}");
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{20, old_limit.rlim_max};  // room for a part of the next line
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(folder.append_metrics("{\"epoch\":2}"), Error);
  setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(text_of(folder.metrics()), "{\"epoch\":1}\n");
}

}  // namespace
}  // namespace posattn
