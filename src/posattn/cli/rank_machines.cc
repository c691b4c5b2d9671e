#include "posattn/cli/rank_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "posattn/base/error.h"
#include "posattn/base/shell.h"
#include "posattn/cli/rank_agreement.h"
#include "posattn/cli/terminal.h"
#include "posattn/mpi/launch.h"
#include "posattn/mpi/ranks.h"
#include "posattn/programs/ranks/run_machine.h"
#include "posattn/report/page/page_parts.h"

namespace posattn {
namespace {

Error wrong_ranks(const StaticProgram& program, int ranks,
                  const std::vector<std::string>& command_line) {
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(program.processors), "posattn"};
  words.insert(words.end(), command_line.begin() + 1, command_line.end());
  return Error(ExitCode::usage,
               fmt::format("program '{}' has {} machine{} here, and there {} {} rank{}",
                           program.name, program.processors, program.processors == 1 ? "" : "s",
                           ranks == 1 ? "is" : "are", ranks, ranks == 1 ? "" : "s"),
               "one rank for each machine", shell_command(words));
}

// As many doubles as all machines have, in their order.
std::vector<double> gathered(Ranks& ranks, const std::vector<double>& mine) {
  std::vector<double> all;
  for (const std::string& bytes :
       ranks.gather({reinterpret_cast<const char*>(mine.data()), mine.size() * sizeof(double)})) {
    std::vector<double> part(bytes.size() / sizeof(double));
    std::memcpy(part.data(), bytes.data(), bytes.size());
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

void print_traffic(const StaticProgram& program, const std::vector<double>& traffic, int rounds) {
  double messages = 0, sent = 0, received = 0;
  for (std::size_t i = 0; i + 2 < traffic.size(); i += 3) {
    messages += traffic[i];
    sent = std::max(sent, traffic[i + 1]);
    received = std::max(received, traffic[i + 2]);
  }
  write_notice(fmt::format(
      "{} machines, {}{}, {}; in a round a machine sent at most {} and received at most {} of its "
      "s = {} words",
      program.processors, plural(rounds, "round"),
      rounds == std::ssize(program.rounds)
          ? ""
          : fmt::format(" for the program's {}, since words that many read are passed on",
                        program.rounds.size()),
      plural(static_cast<size_t>(messages), "message"), sent, received, machine_words(program)));
}

}  // namespace

std::optional<std::vector<double>> run_on_ranks(const StaticProgram& program,
                                                const std::vector<double>& inputs,
                                                const std::vector<std::string>& command_line) {
  const Launch launch = launch_from_environment();
  if (launch.size != program.processors) {
    if (launch.rank != 0) return std::nullopt;
    throw wrong_ranks(program, launch.size, command_line);
  }
  if (!launch.several()) return run_static<double>(program, inputs, 1);  // it is alone
  OpenRanks ranks = open_ranks();
  const bool is_first = ranks->rank() == 0;
  MachineRun run;
  const std::size_t columns = program.inputs.size();
  const std::optional<Error> problem = first_problem(*ranks, [&] {
    run = run_machine(program, std::span(inputs).subspan(ranks->rank() * columns, columns), *ranks);
  });
  std::vector<double> outputs, traffic;
  if (!problem) {
    outputs = gathered(*ranks, run.outputs);
    traffic =
        gathered(*ranks, {static_cast<double>(run.messages), static_cast<double>(run.most_sent),
                          static_cast<double>(run.most_received)});
  }
  ranks.reset();
  if (!is_first) return std::nullopt;
  if (problem) throw *problem;
  print_traffic(program, traffic, run.rounds);
  return outputs;
}

}  // namespace posattn
