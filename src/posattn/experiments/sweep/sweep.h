// A sweep over ranks: rank 0 hands the missing runs of a grid out, to whichever rank has nothing to
// do, the costliest first; runs of one shape together (orders.h).
//
// Nobody but rank 0 writes to the results database. Each rank, rank 0 too, has a child process that
// trains (training_child.h), in the same run folders DIR/runs/KEY as a process on its own: so the
// results are the same to the bit, and a sweep goes on from the checkpoints of any other, with or
// without ranks. DIR must be a folder that all machines see. A run's result comes to rank 0 as the
// text of its manifest, for network file systems may show the file late.
//
// MPI ends the whole job when a rank dies, which is why ranks do not train. What may die:
//   a child       its runs that have not ended are handed out again, one by one, to go on from
//   their
//                 checkpoints; a run that loses its process three times has failed
//   a rank        the job ends, and children with their ranks; the same command goes on
//   rank 0        likewise; what is recorded is on disk
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/experiments/sweep/crew.h"
#include "posattn/experiments/trainer.h"

namespace posattn {

class Sweep final : public Trainer {
 public:
  // `most_together`: runs that a rank trains at a time.
  Sweep(Crew& crew, std::filesystem::path results, std::size_t most_together);

  std::vector<RunOutcome> train(const std::vector<RunConfig>& configs,
                                const FleetOptions& options) override;
  RunResult result(const std::filesystem::path& folder, const std::string& key) override;

 private:
  using Places = std::vector<std::size_t>;  // of runs, in configs_
  struct Work {
    int64_t number = 0;
    Places runs;
  };

  void hand_out();
  void stop_all();
  bool anybody_works() const;
  void hear(int rank, const nlohmann::json& report);
  void hear_progress(const Work& work, const nlohmann::json& report);
  void hear_outcomes(const Work& work, const nlohmann::json& outcomes);
  void lose(int rank, const std::string& how, int64_t orders);
  void lose_run(std::size_t run, const std::string& how);
  void end(std::size_t run, RunStatus status, const std::string& message = {});
  void notice(const std::string& line) const;

  Crew& crew_;
  std::filesystem::path results_;
  std::size_t most_together_;
  const std::vector<RunConfig>* configs_ = nullptr;
  const FleetOptions* options_ = nullptr;
  int64_t next_number_ = 0;
  std::deque<Places> waiting_;
  std::vector<std::optional<Work>> works_;  // by rank
  std::vector<int64_t> orders_;             // by rank: how many it was given
  std::vector<bool> ready_;                 // by rank: its child has started
  std::vector<int> losses_;                 // by run: processes that died with it
  std::vector<RunOutcome> outcomes_;
  std::map<std::string, std::string> manifests_;  // by key
  bool stop_asked_ = false, stopping_ = false;
  std::optional<Error> error_;
};

}  // namespace posattn
