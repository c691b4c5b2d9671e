#include "posattn/programs/ranks/run_machine.h"

#include <gmock/gmock.h>

#include <mutex>

#include "posattn/base/error.h"
#include "posattn/mpi/thread_ranks_test.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/language/library.h"

namespace posattn {
namespace {

// What all machines give, or the error that any of them had.
std::vector<double> in_machines(const StaticProgram& program, const std::vector<double>& inputs,
                                std::string* problem = nullptr) {
  const std::size_t columns = program.inputs.size();
  std::vector<std::vector<double>> outputs(program.processors);
  std::mutex mutex;
  in_ranks(program.processors, [&](Ranks& ranks) {
    const std::span<const double> mine = std::span(inputs).subspan(ranks.rank() * columns, columns);
    try {
      outputs[ranks.rank()] = run_machine(program, mine, ranks).outputs;
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      if (problem != nullptr) *problem = error.problem();
    }
  });
  std::vector<double> all;
  for (const std::vector<double>& part : outputs) all.insert(all.end(), part.begin(), part.end());
  return all;
}

StaticProgram program_of(const std::string& text, int length) {
  return compile_text(text, "test.par", length);
}

TEST(RunMachine, AsTheInterpreter) {
  for (const char* name : {"sort", "cumulative-sum", "reduce", "broadcast", "cumulative-median"}) {
    const StaticProgram program = library_program(name, 5);
    const std::vector<double> inputs = {3, -1.5, 2, 0.25, -7};
    EXPECT_EQ(in_machines(program, inputs), run_static<double>(program, inputs, 1)) << name;
  }
}

TEST(RunMachine, MessagesByData) {
  const StaticProgram program = program_of(
      "word d : int[0..9] = input\n"
      "word x : int[0..9] = i\n"
      "word one : bit = 1\n"
      "send y = x to d\n"
      "send came = one to d\n"
      "word z : int[-1..9] = y if came == 1 else -1\n"
      "output z\n",
      4);
  for (const std::vector<double>& inputs :
       {std::vector<double>{3, 0, 1, 2}, {9, 9, 0, 3}, {9, 9, 9, 9}, {0, 1, 2, 3}}) {
    EXPECT_EQ(in_machines(program, inputs), run_static<double>(program, inputs, 1));
  }
  std::string problem;
  in_machines(program, {3, 3, 0, 1}, &problem);
  EXPECT_THAT(problem, ::testing::StartsWith("machine 3 receives 2 messages for 'y' in round"));
}

// They have rounds in which one machine's word has more readers than a machine may send to.
TEST(RunMachine, NobodySendsMoreThanItsWords) {
  for (const char* name : {"broadcast", "reduce", "radix-sort"}) {
    const int length = 16;
    const StaticProgram program = library_program(name, length);
    std::vector<double> inputs;
    for (int i = 0; i < length; ++i) inputs.push_back(static_cast<double>(i * 7 % length));
    std::vector<MachineRun> runs(length);
    in_ranks(length, [&](Ranks& ranks) {
      const auto mine = static_cast<std::size_t>(ranks.rank());
      runs[mine] = run_machine(program, std::span(inputs).subspan(mine, 1), ranks);
    });
    std::vector<double> outputs;
    for (const MachineRun& run : runs) {
      EXPECT_LE(run.most_sent, machine_words(program));
      EXPECT_GT(run.rounds, std::ssize(program.rounds)) << name;
      outputs.insert(outputs.end(), run.outputs.begin(), run.outputs.end());
    }
    EXPECT_EQ(outputs, run_static<double>(program, inputs, 1)) << name;
  }
}

TEST(RunMachine, Limits) {
  std::string problem;
  in_machines(library_program("matrix-vector", 8), {1, 2, 3, 4, 5, 6, 7, 8}, &problem);
  EXPECT_THAT(problem, ::testing::HasSubstr("receives 7 words in round 0"));
}

TEST(RunMachine, AFailureEndsAll) {
  const StaticProgram program = program_of(
      "word x : real = input\n"
      "word y : real = sqrt(x) on [1, 9] within 0.01\n"
      "output y\n",
      2);
  std::string problem;
  in_machines(program, {1, 0}, &problem);
  EXPECT_THAT(problem, ::testing::HasSubstr("on processor 1 in round"));
}

}  // namespace
}  // namespace posattn
