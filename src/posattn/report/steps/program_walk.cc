#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "posattn/evaluation/table.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/report/drawn_rounds.h"
#include "posattn/report/plot/line_style.h"
#include "posattn/report/steps/walk.h"

namespace posattn {
namespace {

int64_t numbers_in(const StaticProgram& program) {
  auto count = static_cast<int64_t>(program.rounds.size() + 1) * program.processors *
               static_cast<int64_t>(program.words.size());
  for (const Round& round : program.rounds) {
    for (const RouteBundle& bundle : route_bundles(round)) {
      if (!bundle.route->is_weighted()) count += program.processors;
      for (const auto& row : bundle.route->weighted) count += static_cast<int64_t>(row.size());
    }
  }
  return count;
}

// Who is read from; of a message the senders, as the words [processors, words] before the round
// say.
WalkReading reading_of(const StaticProgram& program, const RouteBundle& bundle,
                       std::span<const double> before) {
  WalkReading reading{
      fmt::format("reads {}", fmt::join(bundle.names, ", ")), 0, bundle.names, bundle.words, {}};
  reading.reads.resize(program.processors);
  const Route& route = *bundle.route;
  for (int i = 0; i < program.processors; ++i) {
    auto& reads = reading.reads[i];
    if (route.is_sent()) {
      const double to = before[i * program.words.size() + route.destination];
      if (to >= 0 && to < program.processors) reading.reads[static_cast<int>(to)] = {{i, 1.0}};
    } else if (route.is_weighted()) {
      reads = route.weighted[i];
      std::ranges::stable_sort(reads, [](const auto& a, const auto& b) {
        return std::abs(a.second) > std::abs(b.second);
      });
    } else if (route.sources[i] < program.processors) {
      reads = {{route.sources[i], 1.0}};
    }
  }
  return reading;
}

// For each processor, which of two numbers it keeps; empty for a round without comparators.
std::vector<std::string> kept_by(const StaticProgram& program, const Round& round) {
  std::vector<std::string> kept;
  for (const Exchange& exchange : exchanges_of(round)) {
    kept.resize(program.processors);
    for (int i = 0; i < program.processors; ++i) {
      const char* which = exchange.keeps_own(round, i)       ? "its own number"
                          : exchange.keeps_minimum(round, i) ? "the smaller number"
                                                             : "the larger number";
      kept[i] += fmt::format("{}{}: keeps {}", kept[i].empty() ? "" : "; ",
                             program.words[exchange.word].name, which);
    }
  }
  return kept;
}

// Whether what the word holds is of the first input's alphabet.
bool holds_letters(const StaticProgram& program, int w) {
  const WordType& type = program.words[w].type;
  return !type.is_real() && type.low >= 0 &&
         type.high == program.words[program.inputs[0]].type.high &&
         (w == program.inputs[0] || !std::ranges::count(program.inputs, w));
}

// "input x: 3, 1, 2", of each word; numbers [processors, words].
void add_facts(const StaticProgram& program, const char* what, const std::vector<int>& words,
               std::span<const double> numbers, Walk& walk) {
  for (size_t c = 0; c < words.size(); ++c) {
    std::vector<double> of_word;
    for (size_t i = c; i < numbers.size(); i += words.size()) of_word.push_back(numbers[i]);
    const std::vector<std::string>& letters = walk.columns[words[c]].letters;
    walk.facts.push_back(
        fmt::format("{} {}: {}", what, program.words[words[c]].name, short_list(of_word, letters)));
  }
}

}  // namespace

Walk program_walk(const StaticProgram& program, const std::string& text,
                  std::span<const double> input, const std::string& letters) {
  check_walk_size(program.processors, numbers_in(program));
  const std::vector<double> trace = trace_static(program, input);
  Walk walk;
  walk.title = program.name + ", round by round";
  walk.node_noun = "processor";
  walk.nodes = program.processors;
  for (const std::string_view line : lines_of(text)) walk.source.emplace_back(line);
  for (const Word& word : program.words) walk.columns.push_back({word.name, to_string(word.type)});
  for (size_t w = 0; w < walk.columns.size(); ++w) {
    if (!holds_letters(program, static_cast<int>(w))) continue;
    for (const char letter : letters) walk.columns[w].letters.emplace_back(1, letter);
  }
  const size_t size = program.processors * program.words.size();
  for (size_t r = 0; r <= program.rounds.size(); ++r) {
    WalkStep step;
    step.values.assign(trace.begin() + static_cast<int64_t>(r * size),
                       trace.begin() + static_cast<int64_t>((r + 1) * size));
    if (r == 0) {
      step.title = "start";
    } else {
      const Round& round = program.rounds[r - 1];
      step.title = fmt::format("after round {}", r - 1);
      step.notes = describe_updates(program, round, 120);
      step.lines = round.lines;
      for (const RouteBundle& bundle : route_bundles(round)) {
        step.readings.push_back(reading_of(program, bundle, walk.steps.back().values));
        step.readings.back().style = variant_style("compiled", step.readings.size() - 1);
      }
      step.kept = kept_by(program, round);
    }
    walk.steps.push_back(std::move(step));
  }
  add_facts(program, "input", program.inputs, input, walk);
  add_facts(program, "output", program.outputs, run_static<double>(program, input, 1), walk);
  return walk;
}

}  // namespace posattn
