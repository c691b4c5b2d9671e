#include "posattn/training/batches.h"

#include <algorithm>

#include "posattn/base/random.h"

namespace posattn {
namespace {

// out = the given rows of `source`, one for each of `samples`.
template <class T>
void gather_rows(const Buffer<T>& source, int64_t samples, const uint32_t* rows, int64_t count,
                 Buffer<T>& out) {
  const int64_t row_size = samples == 0 ? 0 : static_cast<int64_t>(source.size()) / samples;
  out.resize(count * row_size);
  for (int64_t i = 0; i < count; ++i) {
    std::copy_n(source.data() + int64_t{rows[i]} * row_size, row_size, out.data() + i * row_size);
  }
}

}  // namespace

std::vector<uint32_t> shuffled(uint64_t data_seed, int64_t epoch, int64_t first_index,
                               int64_t count) {
  std::vector<uint64_t> keys(count);
  for (int64_t i = 0; i < count; ++i) {
    RandomStream random(data_seed, Purpose::shuffle, static_cast<uint32_t>(epoch),
                        static_cast<uint32_t>(first_index + i));
    keys[i] = uint64_t{random.next()} << 32 | static_cast<uint64_t>(i);
  }
  std::ranges::sort(keys);
  std::vector<uint32_t> order(count);
  std::ranges::transform(keys, order.begin(), [](uint64_t key) { return uint32_t(key); });
  return order;
}

std::vector<BatchSlice> epoch_slices(const std::vector<int64_t>& set_samples, int64_t batch_size,
                                     uint64_t data_seed, int64_t epoch) {
  std::vector<BatchSlice> in_order;
  int64_t first_index = 0;
  for (std::size_t set = 0; set < set_samples.size(); ++set) {
    const int64_t samples = set_samples[set];
    first_index += samples;
    for (int64_t begin = 0; begin < samples; begin += batch_size) {
      in_order.push_back({set, begin, std::min(begin + batch_size, samples)});
    }
  }
  if (set_samples.size() == 1) return in_order;
  std::vector<BatchSlice> mixed;
  mixed.reserve(in_order.size());
  const auto batch_count = static_cast<int64_t>(in_order.size());
  for (const uint32_t place : shuffled(data_seed, epoch, first_index, batch_count)) {
    mixed.push_back(in_order[place]);
  }
  return mixed;
}

EpochBatches::EpochBatches(const std::vector<Dataset>& sets, int64_t batch_size, uint64_t data_seed,
                           int64_t epoch)
    : sets_(sets) {
  std::vector<int64_t> set_samples;
  int64_t first_index = 0;
  for (const Dataset& set : sets) {
    order_.push_back(shuffled(data_seed, epoch, first_index, set.samples));
    first_index += set.samples;
    set_samples.push_back(set.samples);
  }
  batches_ = epoch_slices(set_samples, batch_size, data_seed, epoch);
}

int64_t EpochBatches::count(const std::vector<Dataset>& sets, int64_t batch_size) {
  int64_t total = 0;
  for (const Dataset& set : sets) total += (set.samples + batch_size - 1) / batch_size;
  return total;
}

Batch EpochBatches::gather(int64_t batch) {
  const BatchSlice& slice = batches_[batch];
  const Dataset& set = sets_[slice.set];
  const uint32_t* rows = order_[slice.set].data() + slice.begin;
  const int64_t samples = slice.end - slice.begin;
  gather_rows(set.inputs, set.samples, rows, samples, inputs_);
  gather_rows(set.targets, set.samples, rows, samples, targets_);
  gather_rows(set.tokens, set.samples, rows, samples, tokens_);
  gather_rows(set.labels, set.samples, rows, samples, labels_);
  gather_rows(set.pairs, set.samples, rows, samples, pairs_);
  gather_rows(set.pair_classes, set.samples, rows, samples, pair_classes_);
  gather_rows(set.hints, set.samples, rows, samples, hints_);
  return {.inputs = inputs_,
          .targets = targets_,
          .samples = samples,
          .real_nodes = set.shape.real_nodes,
          .tokens = tokens_,
          .labels = labels_,
          .pairs = pairs_,
          .pair_classes = pair_classes_,
          .hints = hints_};
}

}  // namespace posattn
