#include "posattn/experiments/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/model/spec/parameters.h"

namespace posattn {
namespace {

constexpr int64_t most_shards = 100'000;  // as an experiment has runs

// "3", without sign, spaces or leading zeros.
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  if (!parse_exactly(text, value) || std::to_string(value) != text) return std::nullopt;
  return value;
}

std::optional<Shard> parse_shard(std::string_view text, std::string_view separator) {
  const std::size_t place = text.find(separator);
  if (place == std::string_view::npos) return std::nullopt;
  const std::optional<int64_t> number = whole_number(text.substr(0, place));
  const std::optional<int64_t> of = whole_number(text.substr(place + separator.size()));
  if (!number || !of || *number < 0 || *number >= *of || *of > most_shards) return std::nullopt;
  return Shard{*number, *of};
}

// Seeds, tasks and lines of one shape have one cost per sample.
double cost_per_sample(const RunConfig& config) {
  // Every weight is used about once for each node. Of the paper's two models the standard one has
  // 1.8 times as many and takes 1.7 to 2.2 times as long (docs/performance.md).
  const ModelSpec spec = model_spec(config);
  return static_cast<double>(ParameterLayout(spec).parameter_count()) * spec.nodes();
}

double samples_seen(const RunConfig& config) {
  return static_cast<double>(config.samples) * static_cast<double>(config.epochs);
}

// What runs that share a fleet have in common (training/device_fleet.h).
struct Shape {
  ModelSpec spec;
  int64_t batch;
  std::string precision, path;
  bool operator==(const Shape&) const = default;
};

using Places = std::vector<std::size_t>;

}  // namespace

Shard shard_from(std::string_view text) {
  const std::optional<Shard> shard = parse_shard(text, "/");
  if (shard) return *shard;
  throw Error(ExitCode::usage, fmt::format("--shard '{}'", printable(text)),
              fmt::format("K/M with 0 <= K < M <= {}, the first of sixteen as 0/16", most_shards),
              "--shard 0/16 to --shard 15/16 together are the whole experiment");
}

std::string to_string(const Shard& shard) { return fmt::format("{}/{}", shard.number, shard.of); }

std::filesystem::path shard_folder(const std::filesystem::path& results, const Shard& shard) {
  return results / "shards" / fmt::format("{}-of-{}", shard.number, shard.of);
}

std::vector<Shard> shards_in(const std::filesystem::path& results) {
  std::vector<Shard> shards;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(results / "shards", ignored)) {
    const std::optional<Shard> shard = parse_shard(entry.path().filename().string(), "-of-");
    if (shard && entry.is_directory(ignored)) shards.push_back(*shard);
  }
  std::ranges::sort(shards, {},
                    [](const Shard& shard) { return std::pair(shard.of, shard.number); });
  return shards;
}

double estimated_cost(const RunConfig& config) {
  return cost_per_sample(config) * samples_seen(config);
}

std::vector<ExperimentRun> runs_of_shard(const std::vector<ExperimentRun>& grid,
                                         const Shard& shard) {
  const std::vector<ExperimentRun> runs = each_once(grid);
  std::vector<RunConfig> configs;
  for (const ExperimentRun& run : runs) configs.push_back(run.config);
  std::vector<double> costs(configs.size());
  double total = 0;
  const std::vector<std::vector<std::size_t>> groups = by_shape(configs);
  for (const std::vector<std::size_t>& group : groups) {
    const double per_sample = cost_per_sample(configs[group.front()]);
    for (const std::size_t run : group) {
      costs[run] = per_sample * samples_seen(configs[run]);
      total += costs[run];
    }
  }
  // A run belongs to the shard in whose part of the line its middle lies.
  std::vector<std::size_t> chosen;
  double before = 0;
  const auto parts = static_cast<double>(shard.of);
  for (const std::vector<std::size_t>& group : groups) {
    for (const std::size_t run : group) {
      const double part = (before + costs[run] / 2) * parts / total;
      before += costs[run];
      if (std::min(static_cast<int64_t>(part), shard.of - 1) == shard.number) {
        chosen.push_back(run);
      }
    }
  }
  std::ranges::sort(chosen);
  std::vector<ExperimentRun> of_shard;
  for (const std::size_t run : chosen) of_shard.push_back(runs[run]);
  return of_shard;
}

std::vector<Places> by_shape(const std::vector<RunConfig>& configs) {
  std::vector<Shape> shapes;
  std::vector<Places> groups;
  for (std::size_t run = 0; run < configs.size(); ++run) {
    const RunConfig& config = configs[run];
    const Shape shape{model_spec(config), config.batch, config.precision, config.path};
    const auto group = static_cast<std::size_t>(std::ranges::find(shapes, shape) - shapes.begin());
    if (group == shapes.size()) {
      shapes.push_back(shape);
      groups.emplace_back();
    }
    groups[group].push_back(run);
  }
  return groups;
}

std::vector<Places> plan_chunks(const std::vector<RunConfig>& configs, std::size_t most) {
  std::vector<Places> chunks;
  const auto length = [&](std::size_t run) { return configs[run].epochs * configs[run].samples; };
  for (Places& group : by_shape(configs)) {
    std::ranges::stable_sort(group, std::ranges::greater(), length);
    const std::size_t parts = (group.size() + most - 1) / most;
    for (std::size_t part = 0; part < parts; ++part) {
      const auto at = [&](std::size_t i) {
        return group.begin() + static_cast<std::ptrdiff_t>(group.size() * i / parts);
      };
      const auto size = static_cast<std::size_t>(at(part + 1) - at(part));
      if (chunks.empty() || chunks.back().size() + size > most) chunks.emplace_back();
      chunks.back().insert(chunks.back().end(), at(part), at(part + 1));
    }
  }
  return chunks;
}

}  // namespace posattn
