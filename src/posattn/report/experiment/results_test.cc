#include "posattn/report/experiment/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/report/experiment/sample_experiment_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* mine = R"toml(
tasks = ["sort"]
seeds = "0..1"
[axis]
key = "test-scales"
values = [1, 10]
[[lines]]
architecture = "positional"
[quick]
seeds = "0"
settings = { epochs = 20 }
)toml";

class ExperimentResultsTest : public testing::Test {
 protected:
  ExperimentResultsTest() { write_file(file_, std::string_view(mine)); }

  void record(const ExperimentChanges& changes, bool files) {
    const Experiment experiment = load_experiment(file_.string(), changes);
    for (const ExperimentRun& run : runs_of(experiment)) database_.record(sample_result(run));
    if (!files) return;
    create_folder(folder_.path() / experiment.output_name);
    write_file(folder_.path() / experiment.output_name / "manifest.json",
               std::string_view("{\"x\": 1}"));
  }
  std::vector<std::string> found(const std::vector<std::string>& names) const {
    std::vector<std::string> outputs;
    for (const ExperimentResults& results : read_results(folder_.path(), names)) {
      outputs.push_back(results.experiment.output_name);
    }
    return outputs;
  }

  TemporaryFolder folder_;
  fs::path file_ = folder_.path() / "mine.toml";
  ResultsDatabase database_{folder_.path(), ResultsDatabase::Access::write};
};

TEST_F(ExperimentResultsTest, FindsTheExperimentAndWhatFlagsMadeOfIt) {
  record({}, false);
  record({.quick = true}, true);
  record({.epochs = 7}, true);
  record({.quick = true, .epochs = 9}, true);
  EXPECT_THAT(found({file_.string()}),
              ElementsAre("mine", "mine-epochs7", "mine-quick", "mine-quick-epochs9"));
  const auto all = read_results(folder_.path(), {file_.string()});
  EXPECT_EQ(all[0].manifest, "");
  EXPECT_EQ(all[3].manifest, "{\"x\": 1}");
  EXPECT_EQ(all[3].tally.done, 1);
  EXPECT_EQ(all[0].tally.done, 2);
  EXPECT_EQ(all[0].curves.size(), 3u);
  EXPECT_EQ(all[3].command, "posattn reproduce " + file_.string() +
                                " --quick --epochs 9 --results " + folder_.path().string());
}

TEST_F(ExperimentResultsTest, FoldersOfOtherNamesAreOthersResults) {
  record({}, true);
  for (const char* name : {"mine-other", "mine-epochs", "mine-epochsx", "mine-epochs99999999999"}) {
    create_folder(folder_.path() / name);
    write_file(folder_.path() / name / "manifest.json", std::string_view("{}"));
  }
  EXPECT_THAT(found({file_.string()}), ElementsAre("mine"));
}

TEST_F(ExperimentResultsTest, SaysWhatToDoWithoutResults) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{}, {file_.string()}, {"value-range"}}) {
    try {
      read_results(folder_.path(), names);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::data);
      EXPECT_THAT(error.hint(), HasSubstr("posattn reproduce"));
    }
  }
  EXPECT_THROW(read_results(folder_.path() / "none", {}), Error);
  EXPECT_THROW(read_results(folder_.path(), {"value-rnage"}), Error);
}

}  // namespace
}  // namespace posattn
