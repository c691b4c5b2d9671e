// What ranks say to each other, for tests/cli/mpi_test.py: mpirun -n 3 ranks_tool. Every rank
// checks, rank 0 prints "ok"; the first thing that is wrong ends the job with exit code 1.
#include <cstdio>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/mpi/launch.h"
#include "posattn/mpi/ranks.h"

namespace posattn {
namespace {

void expect(bool holds, const char* what) {
  if (!holds) throw Error(ExitCode::failed, what);
}

void check_messages(Ranks& ranks) {
  const int next = (ranks.rank() + 1) % ranks.size();
  const int previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
  // Larger than MPI buffers, and nobody receives before all have sent.
  const std::string large(1 << 20, static_cast<char>('a' + ranks.rank()));
  ranks.send(next, 1, large);
  ranks.send(next, 2, "");
  ranks.send(ranks.rank(), 3, "self");
  ranks.barrier();
  const RankMessage empty = ranks.receive(Ranks::any, 2);
  expect(empty.from == previous && empty.bytes.empty(), "an empty message");
  expect(ranks.receive(previous, Ranks::any).bytes ==
             std::string(1 << 20, static_cast<char>('a' + previous)),
         "a large message");
  expect(ranks.receive(ranks.rank(), 3).bytes == "self", "a message to itself");
  ranks.barrier();
  expect(!ranks.poll(Ranks::any, Ranks::any), "a message nobody sent");
}

void check_collectives(Ranks& ranks) {
  const std::string mine(static_cast<std::size_t>(ranks.rank()), 'x');
  const std::vector<std::string> all = ranks.gather(mine);
  expect(all.size() == (ranks.rank() == 0 ? static_cast<std::size_t>(ranks.size()) : 0), "gather");
  for (std::size_t i = 0; i < all.size(); ++i) expect(all[i].size() == i, "gather, by rank");
  expect(ranks.broadcast(mine, 2) == "xx", "broadcast");
}

// Of terms so different in size that another order gives another sum.
template <typename Number>
void check_sum(Ranks& ranks) {
  const auto term = [](int rank, std::size_t i) {
    const Number sign = (static_cast<std::size_t>(rank) + i) % 2 == 0 ? Number(1) : Number(-1);
    return sign * (rank == 0 ? Number(1e8) : Number(1) / Number(3 + rank)) * Number(i + 1);
  };
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{1000}}) {
    std::vector<Number> values(size), expected(size);
    for (std::size_t i = 0; i < size; ++i) {
      values[i] = term(ranks.rank(), i);
      expected[i] = term(0, i);
      for (int rank = 1; rank < ranks.size(); ++rank) expected[i] += term(rank, i);
    }
    ranks.sum(std::span(values));
    expect(values == expected, "sum");
  }
}

void check_all() {
  const OpenRanks ranks = open_ranks();
  const Launch launch = launch_from_environment();
  expect(ranks->rank() == launch.rank && ranks->size() == launch.size, "rank and size");
  expect(ranks->node_rank() == ranks->rank() && ranks->node_size() == ranks->size(), "the node");
  check_messages(*ranks);
  check_collectives(*ranks);
  check_sum<float>(*ranks);
  check_sum<double>(*ranks);
  if (ranks->rank() == 0) std::puts("ok");
}

}  // namespace
}  // namespace posattn

int main() {
  try {
    posattn::check_all();
    return 0;
  } catch (const posattn::Error& error) {
    std::fprintf(stderr, "wrong: %s\n", error.what());
  }
  posattn::abandon_ranks(1);
  return 1;
}
