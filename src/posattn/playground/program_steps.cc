// Inputs that go through a program and its network, and what each round makes of them.
#include <cmath>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/hooks.h"
#include "posattn/playground/played_program.h"
#include "posattn/playground/playground.h"
#include "posattn/programs/checking/program_task.h"
#include "posattn/programs/lowering/network_plan.h"

namespace posattn::playground {
namespace {

constexpr int64_t most_numbers = 4'000'000;  // of one answer: more than a page can show

std::span<const double> checked_input(const StaticProgram& program, const double* row,
                                      int32_t count) {
  const auto expected = static_cast<int64_t>(program.inputs.size()) * program.processors;
  if (count != expected) {
    throw Error(ExitCode::data, "an input of " + std::to_string(count) + " numbers",
                std::to_string(expected) + ", processor after processor");
  }
  const std::span<const double> input(row, static_cast<size_t>(count));
  if (const auto fault = input_fault(program, input)) {
    throw Error(ExitCode::data, fault->problem, fault->expected);
  }
  return input;
}

// An input of the program as it is written, as one of the network.
std::vector<double> network_input(const PlayedProgram& played, const double* row, int32_t count) {
  return routed_inputs<double>(played.written, played.routed,
                               checked_input(played.written, row, count), 1);
}

void check_size(const StaticProgram& program) {
  const auto moments = static_cast<int64_t>(program.rounds.size()) + 1;
  if (moments * static_cast<int64_t>(program.words.size()) * program.processors > most_numbers) {
    throw Error(ExitCode::usage, "the words of so large a program", "fewer processors or rounds");
  }
}

void add_words(const PlayedProgram& played, const double* row, int32_t count) {
  const StaticProgram& program = played.routed.program;
  check_size(program);
  const auto words = static_cast<int64_t>(program.words.size());
  const auto rounds = static_cast<int>(program.rounds.size());
  const std::vector<double> input = network_input(played, row, count);
  const std::vector<double> exact = trace_static(program, input);
  const std::vector<float> given(input.begin(), input.end());
  const Activations found =
      activations_of(played.model.spec, played.model.parameters,
                     {.inputs = given, .samples = 1, .real_nodes = program.processors});
  for (int round = -1; round < rounds; ++round) {
    const HeldWords held = held_words(played.plan, round);
    for (int i = 0; i < program.processors; ++i) {
      for (int64_t w = 0; w < words; ++w) {
        answer().numbers.push_back(
            exact[((round + 1) * int64_t{program.processors} + i) * words + w]);
        answer().numbers.push_back(held.columns[w] >= 0
                                       ? found.state(held.depth, i, held.columns[w])
                                       : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
}

void add_trace(const PlayedProgram& played, const double* row, int32_t count) {
  check_size(played.written);
  answer().numbers = trace_static(played.written, checked_input(played.written, row, count));
}

void add_outputs(const PlayedProgram& played, const double* row, int32_t count) {
  const std::vector<double> input = network_input(played, row, count);
  const std::vector<float> given(input.begin(), input.end());
  const std::vector<float> found = predict_rows(played.model, given, 1);
  const std::vector<double> exact =
      run_static<double>(played.written, std::span(row, static_cast<size_t>(count)), 1);
  answer().numbers.assign(found.begin(), found.end());
  answer().numbers.insert(answer().numbers.end(), exact.begin(), exact.end());
}

void add_input(const PlayedProgram& played, double c, int32_t seed) {
  if (!(c > 0) || c > 1e6) throw Error(ExitCode::usage, "c of an input", "above 0, up to 1e6");
  const StaticProgram& program = played.written;
  std::vector<float> input(program.inputs.size() * program.processors);
  RandomStream random(static_cast<uint64_t>(seed), Purpose::evaluation_data, 0, 0);
  ProgramTask(program).draw(random, test_range(2, c, false), program.length, input);
  answer().numbers.assign(input.begin(), input.end());
}

}  // namespace
}  // namespace posattn::playground

using namespace posattn::playground;

int32_t play_draw(int32_t program, double c, int32_t seed) {
  return answered([&] {
    add_input(programs().at(program), c, seed);
    return 0;
  });
}

int32_t play_words(int32_t program, const double* row, int32_t count) {
  return answered([&] {
    add_words(programs().at(program), row, count);
    return 0;
  });
}

int32_t play_trace(int32_t program, const double* row, int32_t count) {
  return answered([&] {
    add_trace(programs().at(program), row, count);
    return 0;
  });
}

int32_t play_run(int32_t program, const double* row, int32_t count) {
  return answered([&] {
    add_outputs(programs().at(program), row, count);
    return 0;
  });
}
