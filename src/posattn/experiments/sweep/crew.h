// The ranks of a sweep, as rank 0 speaks to them.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "posattn/experiments/sweep/supervisor.h"
#include "posattn/mpi/ranks.h"

namespace posattn {

class Crew {
 public:
  virtual ~Crew() = default;
  virtual int size() const = 0;
  virtual void order(int rank, const std::string& line) = 0;
  virtual void stop(int rank) = 0;
  // Hands what has come to `report`; waits a moment where nothing has.
  virtual void hear(const std::function<void(int rank, const std::string& line)>& report) = 0;
};

// Rank 0 has a child itself. The others stand in serve_rank until this ends.
class RankCrew final : public Crew {
 public:
  RankCrew(Ranks& ranks, Supervisor& supervisor) : ranks_(ranks), supervisor_(supervisor) {}
  ~RankCrew() override;
  RankCrew(const RankCrew&) = delete;
  RankCrew& operator=(const RankCrew&) = delete;

  int size() const override { return ranks_.size(); }
  void order(int rank, const std::string& line) override;
  void stop(int rank) override;
  void hear(const std::function<void(int rank, const std::string& line)>& report) override;

 private:
  Ranks& ranks_;
  Supervisor& supervisor_;
};

// What the other ranks do: pass orders to their child and its reports to rank 0, until the sweep is
// over. Once `stop` is set the child saves its runs, and rank 0 stops the whole sweep.
void serve_rank(Ranks& ranks, Supervisor& supervisor, const std::atomic<bool>& stop);

}  // namespace posattn
