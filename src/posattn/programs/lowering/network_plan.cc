#include "posattn/programs/lowering/network_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "posattn/base/error.h"
#include "posattn/programs/form/operation.h"
#include "posattn/programs/lowering/local_network.h"

namespace posattn {
namespace {

bool is_scored(const Round& round) {
  return !round.receives.empty() && round.receives.front().route.is_scored();
}

bool needs_one(const Round& round) {
  return is_scored(round) ||
         std::ranges::any_of(round.instructions, [](const Instruction& instruction) {
           return lowered_operation(instruction.kind).needs_one(instruction, instruction.operands);
         });
}

// The heads of one round, and where each receive arrives.
struct RoundHeads {
  struct Arrival {
    int head, place;
    double factor;
  };
  std::vector<Route> routes;
  std::vector<std::vector<int>> words;         // of each head, by place
  std::vector<std::vector<Arrival>> arrivals;  // of each receive
  int most_words = 0;

  explicit RoundHeads(const Round& round) {
    for (const Receive& receive : round.receives) {
      arrivals.emplace_back();
      if (receive.route.is_sent() && !receive.route.is_scored()) {
        throw std::logic_error("messages that nobody has routed");
      }
      if (!receive.route.is_weighted()) {
        arrive(receive.route, receive.word, 1);
        continue;
      }
      // A row of attention has no negative weights and a sum of one: two heads with a common scale.
      for (const double sign : {1.0, -1.0}) {
        const auto [route, factor] = normalised(receive.route, sign, !receive.type.is_real());
        if (factor > 0) arrive(route, receive.word, sign * factor);
      }
    }
  }

 private:
  void arrive(const Route& route, int word, double factor) {
    const auto found = std::ranges::find(routes, route);
    const auto head = static_cast<size_t>(found - routes.begin());
    if (found == routes.end()) {
      routes.push_back(route);
      words.emplace_back();
    }
    auto& of_head = words[head];
    auto place = std::ranges::find(of_head, word);
    if (place == of_head.end()) place = of_head.insert(place, word);
    arrivals.back().push_back(
        {static_cast<int>(head), static_cast<int>(place - of_head.begin()), factor});
    most_words = std::max(most_words, static_cast<int>(of_head.size()));
  }

  // `whole`: by a power of two, which keeps sums of whole numbers exact.
  static std::pair<Route, double> normalised(const Route& route, double sign, bool whole) {
    double largest = 0;
    for (const auto& row : route.weighted) {
      double sum = 0;
      for (const auto& [j, weight] : row) sum += std::max(0.0, sign * weight);
      largest = std::max(largest, sum);
    }
    Route part;
    if (largest == 0) return {part, 0};
    if (whole) largest = std::exp2(std::ceil(std::log2(largest)));
    for (const auto& row : route.weighted) {
      auto& scaled_row = part.weighted.emplace_back();
      for (const auto& [j, weight] : row) {
        if (sign * weight > 0) scaled_row.emplace_back(j, sign * weight / largest);
      }
    }
    return {part, largest};
  }
};

class Planner {
 public:
  Planner(NetworkPlan& plan, const PlanSizes& sizes) : plan_(plan), sizes_(sizes) {}

  void run() {
    add_one();
    const StaticProgram& program = plan_.program;
    plan_.constants = !program.zero_stays_zero();
    std::vector<std::vector<bool>> live = live_words(program);
    for (int r = 0; one_ >= 0 && r <= last_with_one_; ++r) live[r][one_] = true;
    for (size_t r = 0; r < program.rounds.size(); ++r) {
      round_heads_.emplace_back(program.rounds[r]);
      locals_.push_back(lower_local(program, program.rounds[r], live[r + 1], one_));
    }
    choose_sizes(live[0]);
    start(live[0]);
    for (size_t r = 0; r < program.rounds.size(); ++r) add_round(static_cast<int>(r));
    for (const int word : program.outputs) plan_.outputs.push_back(column_of_[word]);
    pass_on();
  }

 private:
  // Constants are multiples of a word that holds 1, kept until the last round that needs it.
  void add_one() {
    const std::vector<Round>& rounds = plan_.program.rounds;
    for (size_t r = 0; r < rounds.size(); ++r) {
      if (needs_one(rounds[r])) last_with_one_ = static_cast<int>(r);
    }
    if (last_with_one_ < 0) return;
    one_ = static_cast<int>(plan_.program.words.size());
    const std::vector<double> ones(static_cast<size_t>(plan_.program.processors), 1.0);
    plan_.program.words.push_back({"one", WordType::integer(1, 1), ones});
  }

  void choose_sizes(const std::vector<bool>& live) {
    int columns = static_cast<int>(std::ranges::count(live, true));
    int heads = 1, places = 1, hidden = 2 * static_cast<int>(plan_.program.outputs.size());
    for (const RoundHeads& of_round : round_heads_) {
      heads = std::max(heads, static_cast<int>(of_round.routes.size()));
      places = std::max(places, of_round.most_words);
    }
    for (const LocalNetwork& local : locals_) {
      for (const LocalLayer& layer : local.layers) {
        columns = std::max(columns, static_cast<int>(layer.outputs.size()));
        hidden = std::max(hidden, static_cast<int>(layer.units.size()));
      }
    }
    plan_.heads = chosen(sizes_.heads, heads, "heads");
    const int least = std::max(columns, plan_.heads * places);
    plan_.width =
        chosen(sizes_.width, (least + plan_.heads - 1) / plan_.heads * plan_.heads, "width");
    if (plan_.width % plan_.heads != 0) {
      throw Error(ExitCode::configuration,
                  fmt::format("width {} with {} heads", plan_.width, plan_.heads),
                  "a width that the heads divide");
    }
    plan_.hidden = chosen(sizes_.hidden, hidden, "hidden units");
  }

  int chosen(int wanted, int least, const char* what) const {
    if (wanted == 0) return least;
    if (wanted >= least) return wanted;
    throw Error(ExitCode::configuration,
                fmt::format("{} {} for program '{}'", wanted, what, plan_.program.name),
                fmt::format("at least {}", least));
  }

  void start(const std::vector<bool>& live) {
    column_of_.assign(plan_.program.words.size(), -1);
    int next = 0;
    for (size_t w = 0; w < live.size(); ++w) {
      if (!live[w]) continue;
      column_of_[w] = next++;
      // Also a number that is only handed on must be one that fp32 holds.
      const Word& word = plan_.program.words[w];
      if (word.type.is_real() || static_cast<int>(w) == one_) continue;
      note_integers(bounds_of(word.type).magnitude(), fmt::format("word '{}'", word.name));
    }
    plan_.start = column_of_;
  }

  void add_round(int round) {
    const RoundHeads& of_round = round_heads_[round];
    const LocalNetwork& local = locals_[round];
    for (const Receive& receive : plan_.program.rounds[round].receives)
      check_received(receive, round);
    const auto words = static_cast<int>(plan_.program.words.size());
    std::vector<int> columns = column_of_;  // of the layer's inputs
    for (size_t k = 0; k < local.layers.size(); ++k) {
      const LocalLayer& from = local.layers[k];
      PlannedLayer layer;
      layer.round = round;
      layer.silent = k > 0 || of_round.routes.empty();
      if (k == 0) {
        for (size_t h = 0; h < of_round.routes.size(); ++h) {
          PlannedHead head{of_round.routes[h], {}};
          if (head.route.is_scored()) head.scored = scored_columns(head.route);
          for (const int word : of_round.words[h]) head.columns.push_back(column_of_[word]);
          layer.heads.push_back(std::move(head));
        }
      }
      for (const LinearForm& unit : from.units) {
        check_integers(unit, from.input_bounds, round);
        LinearForm terms;
        for (const auto& [input, factor] : unit) {
          if (k > 0 || input < words) {
            add_term(terms, columns[input], factor);
            continue;
          }
          for (const RoundHeads::Arrival& arrival : of_round.arrivals[input - words]) {
            add_term(terms, plan_.width + arrival.head * plan_.head_size() + arrival.place,
                     factor * arrival.factor);
          }
        }
        layer.units.push_back(std::move(terms));
      }
      check_outputs(from, round);
      const bool last = k + 1 == local.layers.size();
      std::vector<int> to(from.outputs.size());
      if (last) {
        to = columns_of_words(local.words);
      } else {
        for (size_t o = 0; o < to.size(); ++o) to[o] = static_cast<int>(o);
      }
      layer.columns.resize(plan_.width);
      layer.names.resize(plan_.width);
      layer.words.assign(plan_.width, -1);
      for (size_t o = 0; o < to.size(); ++o) {
        layer.columns[to[o]] = from.outputs[o];
        layer.names[to[o]] = from.names[o];
        if (last) layer.words[to[o]] = local.words[o];
      }
      if (last) {
        column_of_.assign(plan_.program.words.size(), -1);
        for (size_t o = 0; o < to.size(); ++o) column_of_[local.words[o]] = to[o];
      }
      columns = to;
      plan_.layers.push_back(std::move(layer));
    }
  }

  PlannedHead::Scored scored_columns(const Route& route) const {
    const auto column = [&](int word) { return column_of_[word]; };
    const std::vector<int>& by = route.scored_by;
    return {column(route.destination), column(by[0]), column(by[1]), column(by[2]), column(one_)};
  }

  // A word that stays keeps its column; new ones take the lowest free.
  std::vector<int> columns_of_words(const std::vector<int>& words) const {
    std::vector<int> columns(words.size(), -1);
    std::vector<bool> taken(plan_.width);
    for (size_t k = 0; k < words.size(); ++k) {
      columns[k] = column_of_[words[k]];
      if (columns[k] >= 0) taken[columns[k]] = true;
    }
    for (int& column : columns) {
      if (column >= 0) continue;
      column = static_cast<int>(std::ranges::find(taken, false) - taken.begin());
      taken[column] = true;
    }
    return columns;
  }

  // Layers that only pass the result on, up to the depth asked for (and at least one layer).
  void pass_on() {
    const auto depth = static_cast<int>(plan_.layers.size());
    const int wanted = chosen(sizes_.depth, std::max(1, depth), "layers");
    for (int k = depth; k < wanted; ++k) {
      PlannedLayer layer;
      layer.round = static_cast<int>(plan_.program.rounds.size());
      layer.silent = true;
      layer.columns.resize(plan_.width);
      layer.names.resize(plan_.width);
      layer.words.assign(plan_.width, -1);
      for (size_t o = 0; o < plan_.outputs.size(); ++o) {
        const int column = plan_.outputs[o], word = plan_.program.outputs[o];
        if (layer.words[column] >= 0) continue;  // an output twice
        const auto unit = static_cast<int>(layer.units.size());
        layer.units.push_back({{column, 1.0}});
        layer.units.push_back({{column, -1.0}});
        layer.columns[column] = {{unit, 1.0}, {unit + 1, -1.0}};
        layer.words[column] = word;
        layer.names[column] = plan_.program.words[word].name;
      }
      plan_.layers.push_back(std::move(layer));
    }
  }

  // What shuts a unit is no number to keep: the sum is exact without it, or below zero with it.
  static bool shuts(double factor, const Bounds& bounds) {
    return factor == -choice_limit && bounds.low >= 0 && bounds.high <= 1;
  }

  // A sum of whole numbers that is received must be exact.
  void check_received(const Receive& receive, int round) {
    if (!receive.route.is_weighted() || receive.type.is_real()) return;
    const WordType& type = plan_.program.words[receive.word].type;
    const auto magnitude = static_cast<double>(std::max(std::abs(type.low), std::abs(type.high)));
    for (const auto& row : receive.route.weighted) {
      double sum = 0;
      for (const auto& [j, weight] : row) sum += std::abs(weight) * magnitude;
      note_integers(sum, place_of(plan_.program, round));
    }
  }

  // Sums of whole numbers are exact while every partial sum is: |w||x| in all bounds them.
  void check_integers(const LinearForm& form, const std::vector<Bounds>& bounds, int round) {
    double sum = 0;
    double step = 1;  // of factors: halves of whole numbers are as good as whole ones
    for (const auto& [input, factor] : form) {
      const double size = std::abs(factor) * bounds[input].magnitude();
      step = std::min(step, quantum(factor));
      if (!std::isfinite(size) || step < smallest_step) return;  // reals are rounded
      if (!shuts(factor, bounds[input])) sum += size;
    }
    note_integers(sum / step, place_of(plan_.program, round));
  }
  void note_integers(double largest, std::string place) {
    if (largest <= plan_.largest_integer_sum) return;
    plan_.largest_integer_sum = largest;
    plan_.largest_integer_place = std::move(place);
  }

  void check_outputs(const LocalLayer& layer, int round) {
    std::vector<Bounds> units;
    for (const LinearForm& unit : layer.units) {
      const Bounds bounds = bounds_of(unit, [&](int k) { return layer.input_bounds[k]; });
      units.push_back({0, std::max(0.0, bounds.high)});
    }
    for (const LinearForm& output : layer.outputs) check_integers(output, units, round);
  }

  static constexpr double smallest_step = 1.0 / (1 << 20);

  NetworkPlan& plan_;
  PlanSizes sizes_;
  int one_ = -1;
  int last_with_one_ = -1;  // round
  std::vector<RoundHeads> round_heads_;
  std::vector<LocalNetwork> locals_;
  std::vector<int> column_of_;  // of each word between rounds, or -1
};

}  // namespace

NetworkPlan plan_network(StaticProgram program, const PlanSizes& sizes) {
  NetworkPlan plan;
  plan.program = std::move(program);
  Planner(plan, sizes).run();
  return plan;
}

HeldWords held_words(const NetworkPlan& plan, int round) {
  HeldWords held;
  if (round < 0) {
    held.columns = plan.start;
    return held;
  }
  held.columns.assign(plan.program.words.size(), -1);
  for (size_t k = 0; k < plan.layers.size(); ++k) {
    if (plan.layers[k].round == round) held.layers.push_back(static_cast<int>(k));
  }
  if (held.layers.empty()) return held;
  held.depth = held.layers.back() + 1;
  const std::vector<int>& words = plan.layers[held.layers.back()].words;
  for (size_t column = 0; column < words.size(); ++column) {
    if (words[column] >= 0) held.columns[words[column]] = static_cast<int>(column);
  }
  return held;
}

}  // namespace posattn
