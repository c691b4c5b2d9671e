#include "posattn/cli/rank_threads.h"

#include <fmt/format.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>

namespace posattn {
namespace {

// Machine and cores, in letters: ranks that say the same share these cores.
std::string cores_allowed() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  (void)::sched_getaffinity(0, sizeof(cores), &cores);
  std::string text = host;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) text += fmt::format(" {}", core);
  }
  return text;
}

}  // namespace

int own_threads(Ranks& ranks, int requested) {
  const std::string mine = cores_allowed();
  std::string all;
  for (const std::string& cores : ranks.gather(mine)) all += cores + "\n";
  std::istringstream lines(ranks.broadcast(all, 0));
  int sharing = 0;
  for (std::string line; std::getline(lines, line);) sharing += line == mine ? 1 : 0;
  return requested > 0 ? requested : std::max(1, omp_get_num_procs() / std::max(1, sharing));
}

}  // namespace posattn
