#include "posattn/experiments/slurm_script.h"

#include <gmock/gmock.h>

#include "posattn/base/error.h"

namespace posattn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST(SlurmScript, Ranks) {
  SlurmJob job = small_job();
  job.partition = "gpu";
  job.nodes = 3;
  job.ranks = job.gpus = 2;
  job.more = {"--account=mine"};
  EXPECT_THAT(slurm_script(job),
              AllOf(HasSubstr("#SBATCH --partition=gpu\n#SBATCH --nodes=3\n"
                              "#SBATCH --ntasks-per-node=2\n#SBATCH --cpus-per-task=4\n"
                              "#SBATCH --gpus-per-node=2\n#SBATCH --time=4:00:00\n"
                              "#SBATCH --signal=INT@120\n#SBATCH --requeue\n"),
                    HasSubstr("#SBATCH --output=\"/home/me/all results/slurm/%x-%j.log\"\n"
                              "#SBATCH --account=mine\n#\n"),
                    HasSubstr("set -- reproduce 'my grid.toml' --results '/home/me/all results'\n"),
                    HasSubstr("--mpi=pmix"), HasSubstr("scontrol requeue \"$SLURM_JOB_ID\""),
                    Not(HasSubstr("--array")), Not(HasSubstr("merge"))));
}

TEST(SlurmScript, Array) {
  SlurmJob job = small_job();
  job.array = 16;
  job.nodes = 5;
  EXPECT_THAT(slurm_script(job),
              AllOf(HasSubstr("#SBATCH --array=0-15%5\n#SBATCH --ntasks=1\n"),
                    HasSubstr(" --shard \"$SLURM_ARRAY_TASK_ID/16\"\n"),
                    HasSubstr("scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\""),
                    HasSubstr("merge '/home/me/all results'"), Not(HasSubstr("--mpi")),
                    Not(HasSubstr("--nodes"))));
}

TEST(SlurmScript, OddNamesAreQuotedForSbatch) {
  SlurmJob job = small_job();
  job.directory = "/a#b/it's/100%";
  job.results = job.directory;
  EXPECT_THAT(slurm_script(job),
              AllOf(HasSubstr("#SBATCH --chdir=\"/a#b/it's/100%\"\n"),
                    HasSubstr("#SBATCH --output=\"/a#b/it's/100%%/slurm/%x-%j.log\"\n")));
}

TEST(SlurmScript, OneRankNeedsNoMpi) {
  EXPECT_THAT(slurm_script(small_job()), Not(HasSubstr("--mpi")));
}

TEST(SlurmScript, BadInput) {
  const auto refused = [](auto change) {
    SlurmJob job = small_job();
    change(job);
    EXPECT_THROW(slurm_script(job), Error);
  };
  refused([](SlurmJob& job) { job.nodes = 0; });
  refused([](SlurmJob& job) { job.threads = 0; });
  refused([](SlurmJob& job) { job.gpus = -1; });
  refused([](SlurmJob& job) { job.partition = "a b"; });
  refused([](SlurmJob& job) { job.partition = "a\n#SBATCH --time=1"; });
  refused([](SlurmJob& job) { job.more = {"account=mine"}; });
  refused([](SlurmJob& job) { job.more = {"--array=0-3"}; });
  refused([](SlurmJob& job) { job.mpi = ""; });
  refused([](SlurmJob& job) { job.gpus = 4; });
  refused([](SlurmJob& job) { job.array = 2, job.gpus = 2; });
  refused([](SlurmJob& job) { job.array = 2, job.ranks = 2; });
  refused([](SlurmJob& job) { job.results = "/a\"b"; });
}

}  // namespace
}  // namespace posattn
