#include "posattn/cli/rank_sweep.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "posattn/cli/interrupt.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/rank_gpus.h"
#include "posattn/cli/rank_threads.h"
#include "posattn/experiments/sweep/training_child.h"
#include "posattn/mpi/launch.h"

namespace posattn {
namespace {

constexpr const char* child_command = "train-for-rank";
constexpr std::size_t fleet_on_gpu = 256;  // runs in lockstep; each keeps a file open

// Of the child: nothing of MPI, and the GPU whose turn it is.
std::vector<std::string> child_environment(int node_rank) {
  const std::string variable = std::string(visible_gpus) + "=";
  std::vector<std::string> environment = environment_without_launcher();
  if (const std::optional<std::string> gpu = own_gpu(node_rank)) {
    std::erase_if(environment,
                  [&](const std::string& entry) { return entry.starts_with(variable); });
    environment.push_back(variable + *gpu);
  }
  return environment;
}

std::vector<std::string> child_arguments(int threads) {
  return {std::filesystem::read_symlink("/proc/self/exe").string(), child_command,
          std::to_string(::getpid()), std::to_string(threads)};
}

}  // namespace

// mpirun forwards SIGUSR1, and unlike after SIGTERM it waits.
RankSweep::RankSweep(int threads)
    : stop_(catch_interrupts({SIGUSR1})),
      ranks_(open_ranks()),
      threads_(own_threads(*ranks_, threads)),
      supervisor_(child_arguments(threads_), child_environment(ranks_->node_rank())) {}

std::string RankSweep::description() const {
  return fmt::format("{} ranks, {} thread{} each; should the job be cut, the same command goes on",
                     size(), threads_, threads_ == 1 ? "" : "s");
}

Trainer& RankSweep::trainer(const std::filesystem::path& results, const std::string& device) {
  crew_.emplace(*ranks_, supervisor_);
  const auto together = device == "cuda" ? fleet_on_gpu : static_cast<std::size_t>(threads_);
  return sweep_.emplace(*crew_, std::filesystem::absolute(results), together);
}

ExitCode RankSweep::serve() {
  serve_rank(*ranks_, supervisor_, stop_);
  return ExitCode::done;
}

bool is_training_child(int argc, char** argv) {
  return argc == 4 && std::string_view(argv[1]) == child_command;
}

ExitCode run_training_child(char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have died before that.
  if (std::to_string(::getppid()) != argv[2]) return ExitCode::failed;
  train_by_orders(STDIN_FILENO, STDOUT_FILENO, std::max(1, std::atoi(argv[3])),
                  catch_interrupts({SIGUSR1}));
  return ExitCode::done;
}

}  // namespace posattn
