#include "posattn/mpi/launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace posattn {
namespace {

using testing::Contains;
using testing::Each;
using testing::Not;
using testing::StartsWith;

// The environment of this process, given back at the end of a test.
class LaunchTest : public testing::Test {
 protected:
  ~LaunchTest() override {
    for (const char* name : names) unsetenv(name);
  }
  LaunchTest() {
    for (const char* name : names) unsetenv(name);
  }
  static constexpr const char* names[] = {
      "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PMIX_RANK",
      "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"};
};

TEST_F(LaunchTest, AProcessOnItsOwnIsNoRank) {
  EXPECT_FALSE(launch_from_environment().several());
  setenv("SLURM_NTASKS", "8", 1);  // a batch script
  EXPECT_FALSE(launch_from_environment().several());
  setenv("SLURM_STEP_NUM_TASKS", "8", 1);  // srun --mpi=none
  EXPECT_FALSE(launch_from_environment().several());
}

TEST_F(LaunchTest, EveryLauncherIsHeard) {
  setenv("PMIX_RANK", "5", 1);
  setenv("SLURM_STEP_NUM_TASKS", "8", 1);
  EXPECT_EQ(launch_from_environment().rank, 5);
  EXPECT_EQ(launch_from_environment().size, 8);
  setenv("PMI_RANK", "3", 1);
  setenv("PMI_SIZE", "4", 1);
  EXPECT_EQ(launch_from_environment().rank, 3);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_EQ(launch_from_environment().rank, 1);
  EXPECT_EQ(launch_from_environment().size, 2);
}

TEST_F(LaunchTest, OneRankAndNonsenseAreNoRanks) {
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "1", 1);
  EXPECT_FALSE(launch_from_environment().several());
  setenv("OMPI_COMM_WORLD_SIZE", "8x", 1);
  EXPECT_FALSE(launch_from_environment().several());
}

TEST_F(LaunchTest, AChildHearsNothingOfTheLauncher) {
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  setenv("PMIX_RANK", "1", 1);
  const std::vector<std::string> kept = environment_without_launcher();
  EXPECT_THAT(kept, Contains(StartsWith("PATH=")));
  EXPECT_THAT(kept, Each(Not(StartsWith("OMPI_"))));
  EXPECT_THAT(kept, Each(Not(StartsWith("PMIX_"))));
}

}  // namespace
}  // namespace posattn
