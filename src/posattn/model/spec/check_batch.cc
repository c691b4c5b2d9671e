#include "posattn/model/spec/check_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "posattn/base/error.h"
#include "posattn/tasks/pairs.h"

namespace posattn {
namespace {

void check_count(const char* what, size_t found, int64_t wanted) {
  if (static_cast<int64_t>(found) == wanted) return;
  throw Error(ExitCode::data, fmt::format("a batch of {} {}", found, what),
              fmt::format("{}: samples x nodes x columns", wanted));
}

void check_below(const char* what, std::span<const int32_t> values, int limit) {
  const auto largest = std::ranges::max_element(values);
  if (largest == values.end() || *largest < limit) return;
  throw Error(ExitCode::data, fmt::format("{} {} in a batch", what, *largest),
              fmt::format("at most {}", limit - 1));
}

template <class T>
void check_pairs(const ModelSpec& spec, const BatchOf<T>& batch) {
  const TaskShape shape{.real_nodes = batch.real_nodes,
                        .pair_columns = spec.pair_columns,
                        .pair_classes = spec.pair_classes};
  const std::span<const T> numbers = spec.pair_columns > 0 ? batch.pairs : std::span<const T>();
  const std::span<const int32_t> classes =
      spec.pair_classes > 0 ? batch.pair_classes : std::span<const int32_t>();
  check_count("numbers of pairs", numbers.size(), batch.samples * shape.pair_number_count());
  check_count("classes of pairs", classes.size(), batch.samples * shape.pair_class_count());
  if (const auto fault = fault_of_pairs(shape, numbers, classes)) {
    throw Error(ExitCode::data, fault->problem, fault->expected);
  }
}

}  // namespace

template <class T>
void check_batch(const ModelSpec& spec, const BatchOf<T>& batch) {
  const bool length_fits = spec.routed()
                               ? batch.real_nodes == spec.real_nodes
                               : batch.real_nodes >= 1 && batch.real_nodes <= spec.real_nodes;
  if (!length_fits) {
    throw Error(
        ExitCode::configuration,
        fmt::format("{} nodes for a {}model", batch.real_nodes, spec.routed() ? "routed " : ""),
        spec.routed() ? fmt::format("{}: its places are fixed", spec.real_nodes)
                      : fmt::format("1 to {}", spec.real_nodes));
  }
  const int64_t nodes = batch.samples * batch.real_nodes;
  check_count("input numbers", batch.inputs.size(), nodes * spec.data_columns);
  check_pairs(spec, batch);
  if (spec.vocabulary == 0) return;
  check_count("tokens", batch.tokens.size(), nodes);
  check_below("token", batch.tokens, spec.vocabulary);
}

template <class T>
void check_targets(const ModelSpec& spec, const BatchOf<T>& batch) {
  const int64_t nodes = batch.samples * batch.real_nodes;
  check_count("labels of hints", batch.hints.size(),
              nodes * std::accumulate(spec.hint_columns.begin(), spec.hint_columns.end(), 0));
  if (spec.loss == Loss::squared_error) {
    return check_count("target numbers", batch.targets.size(), nodes * spec.output_columns);
  }
  check_count("labels", batch.labels.size(), nodes);
  check_below("label", batch.labels, spec.output_columns);
}

template void check_batch(const ModelSpec&, const BatchOf<float>&);
template void check_batch(const ModelSpec&, const BatchOf<double>&);
template void check_targets(const ModelSpec&, const BatchOf<float>&);
template void check_targets(const ModelSpec&, const BatchOf<double>&);

}  // namespace posattn
