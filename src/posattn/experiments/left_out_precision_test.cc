#include "posattn/experiments/left_out_precision.h"

#include <gtest/gtest.h>

#include "posattn/base/temporary_folder_test.h"

namespace posattn {
namespace {

// A run's device can be named where there is none: nothing is trained here.
Experiment value_range(const char* device, const char* precision = "") {
  return load_experiment("value-range", {.device = device, .precision = precision});
}

TEST(LeftOutPrecision, IsTf32OnTheGpu) {
  const TemporaryFolder results;
  EXPECT_EQ(precision_to_train(value_range("cuda"), results.path()), "tf32");
  EXPECT_EQ(precision_to_train(value_range("cpu"), results.path()), "");
  EXPECT_EQ(value_range("cuda", "tf32").output_name, "value-range-tf32");
}

TEST(LeftOutPrecision, ResultsInFp32GoOnInFp32) {
  const TemporaryFolder results;
  std::filesystem::create_directories(results.path() / "value-range");
  EXPECT_EQ(precision_to_train(value_range("cuda"), results.path()), "");
  EXPECT_EQ(precision_to_read(value_range("cuda"), results.path()), "");
  std::filesystem::create_directories(results.path() / "value-range-tf32");
  EXPECT_EQ(precision_to_train(value_range("cuda"), results.path()), "");
  EXPECT_EQ(precision_to_read(value_range("cuda"), results.path()), "");
}

TEST(LeftOutPrecision, ResultsInTf32AloneAreRead) {
  const TemporaryFolder results;
  EXPECT_EQ(precision_to_read(value_range("cpu"), results.path()), "");
  std::filesystem::create_directories(results.path() / "value-range-tf32");
  EXPECT_EQ(precision_to_read(value_range("cpu"), results.path()), "tf32");
}

TEST(LeftOutPrecision, ModelsOfTokensStayInFp32) {
  const TemporaryFolder results;
  const Experiment tokens = load_experiment("k-hop", {.device = "cuda"});
  EXPECT_EQ(precision_to_train(tokens, results.path()), "");
}

// The keys of all results that there are.
TEST(LeftOutPrecision, ChangesNoKey) {
  const Experiment plain = value_range("cuda"), named = value_range("cpu", "fp32");
  EXPECT_EQ(runs_of(plain).front().key, runs_of(named).front().key);
  EXPECT_NE(runs_of(plain).front().key, runs_of(value_range("cuda", "tf32")).front().key);
}

TEST(LeftOutPrecision, AFileMayStateIt) {
  const std::string text =
      "tasks = [\"sort\"]\nseeds = \"0\"\n[axis]\nkey = \"test-scales\"\nvalues = [1]\n"
      "[settings]\ntest-scales = \"1\"\nprecision = \"fp32\"\n"
      "[[lines]]\nname = \"positional\"\narchitecture = \"positional\"\n";
  const TemporaryFolder results;
  const Experiment stated = read_experiment(text, "mine", "mine.toml", {.device = "cuda"});
  EXPECT_EQ(precision_to_train(stated, results.path()), "");
}

}  // namespace
}  // namespace posattn
