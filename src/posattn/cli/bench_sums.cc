#include "posattn/cli/bench_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/cli/bench_device.h"
#include "posattn/cli/machine.h"
#include "posattn/cli/text_table.h"
#include "posattn/mpi/launch.h"
#include "posattn/mpi/ranks.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

double seconds_of_sum(Ranks& ranks, std::vector<float>& values) {
  ranks.barrier();
  const Clock::time_point begin = Clock::now();
  ranks.sum(values);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// In ascending order. All ranks take part in as many sums as rank 0 finds time for.
std::vector<double> times_of_sum(Ranks& ranks, int64_t count, double seconds) {
  std::vector<float> values(static_cast<std::size_t>(count));  // zeros stay finite
  double fastest = seconds_of_sum(ranks, values);              // connections are made
  for (int i = 0; i < 4; ++i) fastest = std::min(fastest, seconds_of_sum(ranks, values));
  const int wanted = std::clamp(static_cast<int>(seconds / fastest), 5, 10'000);
  const int repetitions = std::stoi(ranks.broadcast(std::to_string(wanted), 0));
  std::vector<double> times(static_cast<std::size_t>(repetitions));
  for (double& time : times) time = seconds_of_sum(ranks, values);
  std::ranges::sort(times);
  return times;
}

}  // namespace

std::optional<Json> measure_sums(const std::vector<int64_t>& numbers, double seconds) {
  const Launch launch = launch_from_environment();
  if (!launch.several()) {
    throw Error(ExitCode::usage, "--sums in a process on its own", "several ranks",
                "mpirun -n 2 posattn bench --sums 1,1000000");
  }
  const OpenRanks ranks = open_ranks();
  Json rows = Json::array();
  for (const int64_t count : numbers) {
    const std::vector<double> times = times_of_sum(*ranks, count, seconds);
    rows.push_back({{"numbers", count},
                    {"microseconds", four_digits(1e6 * times[times.size() / 2])},
                    {"fastest", four_digits(1e6 * times.front())},
                    {"repetitions", times.size()}});
  }
  if (ranks->rank() != 0) return std::nullopt;
  return Json{{"ranks", ranks->size()},
              {"ranks_of_machine", ranks->node_size()},
              {"cpu", find_machine().cpu},
              {"sums", rows}};
}

std::string sums_text(const Json& result) {
  TextTable table({"numbers", "us", "fastest", "repetitions"}, 0);
  for (const Json& row : result["sums"]) {
    table.add_row({std::to_string(row["numbers"].get<int64_t>()),
                   four_digits_text(row["microseconds"]), four_digits_text(row["fastest"]),
                   std::to_string(row["repetitions"].get<int>())});
  }
  return fmt::format("{}, sums over {} ranks\n\n", result["cpu"].get<std::string>(),
                     result["ranks"].get<int>()) +
         table.to_string();
}

}  // namespace posattn
