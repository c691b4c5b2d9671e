// The processes of one MPI job, called ranks: messages of bytes, collective operations, sums in a
// fixed order. Every failure is an Error(failed).
//
// MPI itself stands in a module of its own, posattn_mpi.so, which open_ranks loads: a program that
// was started alone (launch.h) starts as quickly as without, and runs where MPI is not installed.
// A build without MPI says how to get it (no_mpi/).
//
// Calls come from one thread at a time, not always the same (MPI_THREAD_SERIALIZED).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace posattn {

struct RankMessage {
  int from = 0, tag = 0;
  std::string bytes;
};

class Ranks {
 public:
  static constexpr int any = -1;  // as `from` or `tag`

  virtual ~Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Among the ranks on this machine: which of its GPUs is ours, how many share its cores.
  virtual int node_rank() const = 0;
  virtual int node_size() const = 0;

  // Never waits: the bytes are copied, and go on their way with this and later calls. Messages of
  // one sender and tag arrive in order. A rank may send to itself.
  virtual void send(int to, int tag, std::string_view bytes) = 0;
  // The next message if one has arrived, without waiting.
  virtual std::optional<RankMessage> poll(int from, int tag) = 0;
  // Waits for it, and takes a whole core meanwhile.
  virtual RankMessage receive(int from, int tag) = 0;

  // Collective: all ranks call the same, in the same order.
  virtual void barrier() = 0;
  virtual std::string broadcast(std::string_view bytes, int root) = 0;  // root's bytes, everywhere
  virtual std::vector<std::string> gather(
      std::string_view bytes) = 0;  // on rank 0; empty elsewhere
  // Elementwise over all ranks, in place: ((x_0 + x_1) + x_2) + ... in this order whatever the
  // network does, so that the same number of ranks gives the same bits, on all of them. A rank sums
  // its share of the elements for all: 2 (size - 1) / size of the bytes leave each rank.
  virtual void sum(std::span<float> values) = 0;
  virtual void sum(std::span<double> values) = 0;

  // Ends the job, all ranks.
  [[noreturn]] virtual void abort(int exit_code) = 0;

 protected:
  Ranks() = default;
};

// Leaves MPI at the end of its scope. If an exception ends the scope, the others may wait for us
// for ever; then it leaves the job as it is, for abandon_ranks.
struct LeaveRanks {
  void operator()(Ranks* ranks) const noexcept;
};
using OpenRanks = std::unique_ptr<Ranks, LeaveRanks>;

// Once in a process. Throws Error(device) where there is no MPI, with what to install.
OpenRanks open_ranks();

// For the end of the program, once the error is printed: ends the job where an exception has left
// it, with this exit code; does nothing otherwise.
void abandon_ranks(int exit_code);

}  // namespace posattn
