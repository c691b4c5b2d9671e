// `posattn reproduce` in the ranks of an MPI job (experiments/sweep/sweep.h): what a rank has of
// its machine, and the child process that trains for it, which is this program again.
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>

#include "posattn/base/error.h"
#include "posattn/experiments/sweep/sweep.h"
#include "posattn/mpi/ranks.h"

namespace posattn {

class RankSweep {
 public:
  // All ranks at a time. `threads` for each; 0: those cores that it may use, shared with the ranks
  // that may use the same.
  explicit RankSweep(int threads);

  bool leads() const { return ranks_->rank() == 0; }
  int size() const { return ranks_->size(); }
  int threads() const { return threads_; }
  std::string description() const;  // "8 ranks, 2 threads each; ..."

  // For rank 0; once.
  Trainer& trainer(const std::filesystem::path& results, const std::string& device);
  // For the others: returns when rank 0 is done.
  ExitCode serve();

 private:
  const std::atomic<bool>& stop_;
  OpenRanks ranks_;
  int threads_;
  Supervisor supervisor_;
  std::optional<RankCrew> crew_;
  std::optional<Sweep> sweep_;
};

// The child: "posattn train-for-rank PARENT THREADS". It ends with its parent, however that ends.
bool is_training_child(int argc, char** argv);
ExitCode run_training_child(char** argv);

}  // namespace posattn
