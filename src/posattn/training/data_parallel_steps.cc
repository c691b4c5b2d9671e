#include "posattn/training/data_parallel_steps.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/hash.h"

namespace posattn {
namespace {

constexpr std::size_t extra_numbers = 3;  // the loss, what its rounding to float leaves, stop

template <class T>
std::span<const T> rows(std::span<const T> values, int64_t samples, int64_t begin, int64_t end) {
  const std::size_t size = samples == 0 ? 0 : values.size() / static_cast<std::size_t>(samples);
  return values.subspan(static_cast<std::size_t>(begin) * size,
                        static_cast<std::size_t>(end - begin) * size);
}

}  // namespace

Batch part_of(const Batch& whole, int number, int of) {
  const int64_t begin = whole.samples * number / of, end = whole.samples * (number + 1) / of;
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
  const Batch part = part_of(batch, ranks_.rank(), ranks_.size());
  const int64_t terms = terms_of(network.spec(), part, mask);
  summed_.assign(values.size() + extra_numbers, 0);
  double loss = 0;
  if (terms > 0 && !stop) {
    const double share =
        static_cast<double>(terms) / static_cast<double>(terms_of(network.spec(), batch, mask));
    loss = share * network.gradient(parameters, part, mask, gradient);
    std::ranges::transform(values, summed_.begin(),
                           [share](float value) { return static_cast<float>(share) * value; });
  }
  if (!add_up(loss, stop)) return std::nullopt;
  std::copy_n(summed_.begin(), values.size(), values.begin());
  return double{summed_[values.size()]} + double{summed_[values.size() + 1]};
}

void DataParallelSteps::withdraw(const ParameterLayout& layout) {
  summed_.assign(static_cast<std::size_t>(layout.buffer_size()) + extra_numbers, 0);
  add_up(0, true);
}

bool DataParallelSteps::add_up(double loss, bool stop) {
  float* const extra = summed_.data() + summed_.size() - extra_numbers;
  extra[0] = static_cast<float>(loss);
  extra[1] = std::isfinite(extra[0]) ? static_cast<float>(loss - double{extra[0]}) : 0;
  extra[2] = stop ? 1 : 0;
  ranks_.sum(summed_);
  return extra[2] == 0;
}

void DataParallelSteps::check_equal(const Parameters<float>& parameters) {
  const std::span<const std::byte> bytes = std::as_bytes(parameters.values());
  const uint64_t hash = hash_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const std::vector<std::string> all = ranks_.gather(std::to_string(hash));
  const bool equal = std::set(all.begin(), all.end()).size() <= 1;
  if (!ranks_.broadcast(equal ? "" : "other", 0).empty()) {
    throw Error(ExitCode::failed, "the ranks do not have the same weights any more",
                "processors with the same instruction set on all machines",
                "choose machines of one kind; 'posattn doctor' names the instruction set");
  }
}

}  // namespace posattn
