// A service that answers in several threads with one model: the weights are prepared once, and
// every thread gets the numbers that one thread alone would get.
#include <cstdio>
#include <exception>
#include <span>
#include <thread>
#include <vector>

#include "posattn/network.h"
#include "posattn/program.h"

namespace {

constexpr int length = 8, questions = 1000, threads = 4;

int answer_in_threads() {
  const posattn::Inference inference(posattn::compile(posattn::library_program("sort", length)));
  std::vector<float> inputs(questions * length);
  for (int i = 0; i < questions * length; ++i) inputs[i] = static_cast<float>(i * 37 % 101);

  const auto answer = [&](int question, std::vector<float>& outputs) {
    const std::span<const float> input = std::span(inputs).subspan(question * length, length);
    inference.run({.inputs = input, .samples = 1, .real_nodes = length},
                  std::span(outputs).subspan(question * length, length));
  };
  std::vector<float> alone(inputs.size()), together(inputs.size());
  for (int question = 0; question < questions; ++question) answer(question, alone);

  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      for (int question = worker; question < questions; question += threads) {
        answer(question, together);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();

  const bool same = together == alone;
  std::printf("%d answers of %d threads: %s\n", questions, threads,
              same ? "those of one thread" : "not those of one thread");
  return same ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return answer_in_threads();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
