#include "posattn/experiments/slurm_script.h"

#include <gmock/gmock.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

SlurmJob small_job() {
  SlurmJob job;
  job.name = "grid";
  job.program = "/opt/posattn";
  job.directory = "/home/me";
  job.results = "/home/me/all results";
  job.arguments = {"reproduce", "my grid.toml", "--results", job.results.string()};
  job.command_line = "posattn submit 'my grid.toml'";
  return job;
}

TEST(SlurmScript, Times) {
  EXPECT_EQ(slurm_seconds("30"), 1'800);
  EXPECT_EQ(slurm_seconds("30:15"), 1'815);
  EXPECT_EQ(slurm_seconds("4:00:00"), 14'400);
  EXPECT_EQ(slurm_seconds("1-12"), 129'600);
  EXPECT_EQ(slurm_seconds("1-12:30"), 131'400);
  EXPECT_EQ(slurm_seconds("1-12:30:05"), 131'405);
  for (const char* time : {"", "x", "4h", "1:2:3:4", "1-", "-4", "4:", "4:-5:0", "2", "0:0:299",
                           "99999999999999999999"}) {
    EXPECT_THROW(slurm_seconds(time), Error) << time;
  }
}

TEST(SlurmScript, AnArrayOfShards) {
  SlurmJob job = small_job();
  job.partition = "gpu";
  job.array = 16;
  job.nodes = 5;
  job.gpus = 1;
  job.more = {"--account=mine"};
  EXPECT_THAT(slurm_script(job),
              AllOf(HasSubstr("#SBATCH --partition=gpu\n#SBATCH --array=0-15%5\n"
                              "#SBATCH --ntasks=1\n#SBATCH --cpus-per-task=4\n"
                              "#SBATCH --gpus-per-node=1\n#SBATCH --time=4:00:00\n"
                              "#SBATCH --signal=INT@120\n#SBATCH --requeue\n"),
                    HasSubstr("#SBATCH --output=\"/home/me/all results/slurm/%x-%A_%a.log\"\n"
                              "#SBATCH --account=mine\n#\n"),
                    HasSubstr("set -- reproduce 'my grid.toml' --results '/home/me/all results' "
                              "--shard \"$SLURM_ARRAY_TASK_ID/16\"\n"),
                    HasSubstr("scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\""),
                    HasSubstr("merge '/home/me/all results'")));
}

TEST(SlurmScript, WithoutAWishSlurmChoosesHowManyTasksRunAtATime) {
  EXPECT_THAT(slurm_script(small_job()), HasSubstr("#SBATCH --array=0-0\n"));
}

TEST(SlurmScript, OddNamesAreQuotedForSbatch) {
  SlurmJob job = small_job();
  job.directory = "/a#b/it's/100%";
  job.results = job.directory;
  EXPECT_THAT(slurm_script(job),
              AllOf(HasSubstr("#SBATCH --chdir=\"/a#b/it's/100%\"\n"),
                    HasSubstr("#SBATCH --output=\"/a#b/it's/100%%/slurm/%x-%A_%a.log\"\n")));
}

TEST(SlurmScript, BadInput) {
  const auto refused = [](auto change) {
    SlurmJob job = small_job();
    change(job);
    EXPECT_THROW(slurm_script(job), Error);
  };
  refused([](SlurmJob& job) { job.array = 0; });
  refused([](SlurmJob& job) { job.nodes = -1; });
  refused([](SlurmJob& job) { job.nodes = 2; });
  refused([](SlurmJob& job) { job.threads = 0; });
  refused([](SlurmJob& job) { job.gpus = -1; });
  refused([](SlurmJob& job) { job.partition = "a b"; });
  refused([](SlurmJob& job) { job.partition = "a\n#SBATCH --time=1"; });
  refused([](SlurmJob& job) { job.more = {"account=mine"}; });
  refused([](SlurmJob& job) { job.more = {"--array=0-3"}; });
  refused([](SlurmJob& job) { job.array = 4, job.gpus = 4; });
  refused([](SlurmJob& job) { job.results = "/a\"b"; });
}

}  // namespace
}  // namespace posattn
