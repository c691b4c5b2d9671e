// Which samples form which batch of an epoch. The order is a function of the data seed and the
// epoch alone: samples sorted by (random key << 32 | index), which a GPU can repeat.
#pragma once

#include "posattn/model/network.h"
#include "posattn/tasks/dataset.h"

namespace posattn {

// The numbers 0..count-1 in the order of an epoch. `first_index` tells sets apart that are shuffled
// in the same epoch.
std::vector<uint32_t> shuffled(uint64_t data_seed, int64_t epoch, int64_t first_index,
                               int64_t count);

// Samples begin .. end - 1 of a set's order.
struct BatchSlice {
  std::size_t set;
  int64_t begin, end;
};

// The batches of an epoch over sets of these many samples, in the order they are taken.
std::vector<BatchSlice> epoch_slices(const std::vector<int64_t>& set_samples, int64_t batch_size,
                                     uint64_t data_seed, int64_t epoch);

// The batches of one epoch over one set per length. A batch holds one length; the last batch of a
// set may be smaller. With several sets their batches are mixed.
class EpochBatches {
 public:
  EpochBatches(const std::vector<Dataset>& sets, int64_t batch_size, uint64_t data_seed,
               int64_t epoch);

  static int64_t count(const std::vector<Dataset>& sets, int64_t batch_size);
  int64_t count() const { return static_cast<int64_t>(batches_.size()); }

  // The set a batch comes from.
  std::size_t set_of(int64_t batch) const { return batches_[batch].set; }
  // Copies the batch's rows together; the result is valid until the next call.
  Batch gather(int64_t batch);

 private:
  const std::vector<Dataset>& sets_;
  std::vector<std::vector<uint32_t>> order_;
  std::vector<BatchSlice> batches_;
  Buffer<float> inputs_, targets_, pairs_, hints_;
  Buffer<int32_t> tokens_, labels_, pair_classes_;
};

}  // namespace posattn
