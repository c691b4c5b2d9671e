#include "posattn/training/data_parallel_steps.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/hash.h"

namespace posattn {
namespace {

template <class T>
std::span<const T> rows(std::span<const T> values, int64_t samples, int64_t begin, int64_t end) {
  const std::size_t size = samples == 0 ? 0 : values.size() / static_cast<std::size_t>(samples);
  return values.subspan(static_cast<std::size_t>(begin) * size,
                        static_cast<std::size_t>(end - begin) * size);
}

}  // namespace

Part part_of(int64_t samples, int number, int of) {
  return {samples * number / of, samples * (number + 1) / of};
}

Batch part_of(const Batch& whole, int number, int of) {
  const auto [begin, end] = part_of(whole.samples, number, of);
  return {rows(whole.inputs, whole.samples, begin, end),
          rows(whole.targets, whole.samples, begin, end),
          end - begin,
          whole.real_nodes,
          rows(whole.tokens, whole.samples, begin, end),
          rows(whole.labels, whole.samples, begin, end)};
}

int64_t terms_of(const ModelSpec& spec, const Batch& batch, std::span<const uint8_t> mask) {
  if (spec.loss == Loss::squared_error) return batch.samples;
  const int64_t read = spec.nodes_read(batch.real_nodes);
  int64_t count = 0;
  for (int64_t row = 0; row < batch.samples * batch.real_nodes; ++row) {
    const int64_t node = row % batch.real_nodes;
    const bool in_mask = mask.empty() || mask[node * spec.output_columns] != 0;
    if (node < read && in_mask && batch.labels[row] >= 0) ++count;
  }
  return count;
}

std::optional<double> DataParallelSteps::gradient(Network& network,
                                                  const Parameters<float>& parameters,
                                                  const Batch& batch, std::span<const uint8_t> mask,
                                                  bool stop, Parameters<float>& gradient) {
  const std::span<float> values = gradient.values();
  const Batch part = part_of(batch, rank(), size());
  const int64_t terms = stop ? 0 : terms_of(network.spec(), part, mask);
  double loss = 0;
  if (terms > 0) loss = network.gradient(parameters, part, mask, gradient);
  summed_.resize(values.size() + extra_numbers);
  std::ranges::copy(values, summed_.begin());
  const std::optional<double> whole = mean(summed_, loss, terms, stop);
  if (whole) std::copy_n(summed_.begin(), values.size(), values.begin());
  return whole;
}

// Behind the gradient: the loss, what its rounding to float leaves, the terms, how many stop.
std::optional<double> DataParallelSteps::mean(std::span<float> values, double loss, int64_t terms,
                                              bool stop) {
  const std::span<float> gradient = values.first(values.size() - extra_numbers);
  const std::span<float> extra = values.last(extra_numbers);
  const auto scale = [gradient](float factor) {
    for (float& value : gradient) value *= factor;
  };
  if (terms > 0) {
    scale(static_cast<float>(terms));
  } else {
    std::ranges::fill(gradient, 0.0F);
  }
  const double share = terms > 0 ? static_cast<double>(terms) * loss : 0;
  extra[0] = static_cast<float>(share);
  extra[1] = std::isfinite(extra[0]) ? static_cast<float>(share - double{extra[0]}) : 0;
  extra[2] = static_cast<float>(terms);
  extra[3] = stop ? 1 : 0;
  ranks_.sum(values);
  if (extra[3] != 0) return std::nullopt;
  if (extra[2] == 0) return 0;
  scale(1 / extra[2]);
  return (double{extra[0]} + double{extra[1]}) / double{extra[2]};
}

void DataParallelSteps::withdraw(const ParameterLayout& layout) {
  summed_.resize(static_cast<std::size_t>(layout.buffer_size()) + extra_numbers);
  mean(summed_, 0, 0, true);
}

void DataParallelSteps::check_equal(const Parameters<float>& parameters) {
  const std::span<const std::byte> bytes = std::as_bytes(parameters.values());
  const uint64_t hash = hash_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::vector<std::string> all = ranks_.gather(std::to_string(hash));
  const bool equal = std::set(all.begin(), all.end()).size() <= 1;
  if (!ranks_.broadcast(equal ? "" : "other", 0).empty()) {
    throw Error(ExitCode::failed, "the ranks do not have the same weights any more",
                "processors with the same instruction set, or GPUs of one kind, on all machines",
                "choose machines of one kind; 'posattn doctor' names both");
  }
}

}  // namespace posattn
