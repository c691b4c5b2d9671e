#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/report/experiment/results.h"
#include "posattn/report/experiment/sample_experiment_test.h"
#include "posattn/report/well_formed_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::StartsWith;

class ExperimentFilesTest : public testing::Test {
 protected:
  void record(size_t most) {
    for (const ExperimentRun& run : runs_of(experiment_)) {
      if (most-- == 0) return;
      database_.record(sample_result(run));
    }
  }
  ExperimentFiles write() {
    return write_experiment_files(folder_.path(), experiment_, database_, "posattn reproduce x");
  }
  static std::string text(const fs::path& path) { return read_text_file(path, 1 << 24); }

  TemporaryFolder folder_;
  Experiment experiment_ = sample_experiment();
  ResultsDatabase database_{folder_.path(), ResultsDatabase::Access::write};
};

TEST_F(ExperimentFilesTest, WritesTableFigureAndManifest) {
  record(100);
  const ExperimentFiles files = write();
  EXPECT_EQ(files.problem, "");
  EXPECT_EQ(files.csv, folder_.path() / "value-range" / "value-range.csv");
  EXPECT_EQ(files.png, folder_.path() / "value-range" / "value-range.png");
  // 2 tasks, 2 lines, and of each: one training and one validation loss, 4 scales.
  EXPECT_EQ(points_from_csv(text(files.csv), "csv").size(), 2u * 2 * (1 + 1 + 4));
  EXPECT_EQ(markup_problem(text(files.svg)), "");
  EXPECT_THAT(text(files.png), StartsWith("\x89PNG"));

  const auto manifest = nlohmann::json::parse(text(files.manifest));
  EXPECT_EQ(manifest["command_line"], "posattn reproduce x");
  EXPECT_EQ(manifest["experiment"]["tasks"], experiment_.tasks);
  EXPECT_EQ(manifest["experiment"]["lines"][1]["settings"]["architecture"], "standard");
  EXPECT_EQ(manifest["experiment"]["seeds"], experiment_.seeds);
  EXPECT_EQ(manifest["experiment"]["axis"]["values"], experiment_.axis.values);
  EXPECT_EQ(manifest["experiment"]["settings"]["samples"], 2000);
  EXPECT_FALSE(manifest["experiment"]["settings"].contains("task"));
  EXPECT_EQ(manifest["runs"]["done"], 12);
  EXPECT_EQ(manifest["runs"]["missing"], 0);
  EXPECT_EQ(manifest["training_wall_clock_seconds"], 120);
  EXPECT_EQ(manifest["computed"],
            nlohmann::json({{{"device", "cuda"}, {"precision", "fp32"}, {"runs", 12}}}));
  EXPECT_TRUE(manifest["posattn"].contains("commit"));
}

TEST_F(ExperimentFilesTest, CountsWhatIsMissingFailedAndDiverged) {
  const std::vector<ExperimentRun> runs = runs_of(experiment_);
  record(4);
  RunResult result = sample_result(runs[4]);
  result.status = RunStatus::diverged;
  result.measurements.clear();
  database_.record(result);
  result = sample_result(runs[5]);
  result.status = RunStatus::failed;
  result.device = "cpu";
  database_.record(result);
  const auto manifest = nlohmann::json::parse(text(write().manifest));
  EXPECT_EQ(
      manifest["runs"],
      nlohmann::json({{"all", 12}, {"done", 4}, {"diverged", 1}, {"failed", 1}, {"missing", 6}}));
  EXPECT_EQ(manifest["computed"].size(), 2u);
}

TEST_F(ExperimentFilesTest, WithoutResultsThereIsNothingToWrite) {
  try {
    write();
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_THAT(error.hint(), HasSubstr("posattn reproduce"));
  }
  EXPECT_FALSE(fs::exists(folder_.path() / "value-range"));
}

TEST_F(ExperimentFilesTest, WithoutGnuplotThereIsATable) {
  record(100);
  const ExperimentFiles before = write();
  const char* path = std::getenv("PATH");
  const std::string saved = path == nullptr ? "" : path;
  setenv("PATH", "/nonexistent", 1);
  const ExperimentFiles files = write();
  setenv("PATH", saved.c_str(), 1);
  EXPECT_THAT(files.problem, HasSubstr("gnuplot"));
  EXPECT_TRUE(files.svg.empty() && files.png.empty());
  EXPECT_TRUE(fs::exists(files.csv) && fs::exists(files.manifest));
  EXPECT_FALSE(fs::exists(before.svg));  // of other results, perhaps
  EXPECT_FALSE(fs::exists(before.png));
}

}  // namespace
}  // namespace posattn
