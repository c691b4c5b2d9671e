// A fleet's training data on the GPU: uploaded once, put into a new order every epoch and gathered
// into batches there. The order is that of EpochBatches, bit for bit. For .cu files.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <future>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/sort.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/spec/spec.h"
#include "posattn/tasks/dataset.h"
#include "posattn/training/cuda/fleet_steps.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/run.h"

namespace posattn::cuda {

struct RunData {
  uint64_t seed = 0;             // of the order
  std::vector<Dataset> sets;     // one per length
  std::vector<uint8_t> counted;  // [real_nodes, output_columns] at full length
};

// Where a set lies.
struct SetPlace {
  int64_t samples = 0;
  int real_nodes = 0;
  int64_t order = 0;  // of the first sample number
  int64_t rows = 0;   // nodes of all samples before it, in every column
};

// Columns of typed data, row after row; what a model does not have is null, with no columns.
template <class Float, class Integer>
struct DataColumns {
  Float *inputs = nullptr, *targets = nullptr;
  Integer *tokens = nullptr, *labels = nullptr;
  int input_columns = 0, target_columns = 0;
};

// Samples of one set of one run, to be put into a new order.
struct ShuffleSegment {
  uint64_t seed = 0;
  uint32_t epoch = 0;
  uint32_t first_index = 0;  // as in shuffled()
  int64_t count = 0;
  int64_t order = 0;  // where the order goes
  int64_t begin = 0;  // among the keys that are sorted together
};

class FleetData {
 public:
  // `stride`: samples of a batch as they are stored.
  FleetData(const ModelSpec& spec, int64_t stride, const std::vector<RunData>& runs);

  // Device memory for runs of this many samples in all, in bytes.
  static int64_t bytes_needed(const ModelSpec& spec, int64_t stride, int slots, int64_t samples);

  const std::vector<SetPlace>& sets(int slot) const { return sets_[slot]; }

  // Other samples in the place of a run's: as many, of the same lengths. Waits for the GPU.
  void replace(int slot, const std::vector<Dataset>& sets);

  struct Epoch {
    int slot;
    int64_t epoch;  // from 1
  };
  // Enqueues the new orders of these runs' epochs; before, samples are in the order of their sets.
  void shuffle(const std::vector<Epoch>& epochs, cudaStream_t stream);

  // Enqueues the gathering of each slot's current batch. Absent samples and nodes become zero,
  // their tokens and labels -1.
  void gather(const StepPlan* current, cudaStream_t stream);

  const float* inputs() const { return batch_.inputs.data(); }
  const float* targets() const { return batch_.targets.data(); }
  const int32_t* tokens() const { return batch_.tokens.data(); }
  const int32_t* labels() const { return batch_.labels.data(); }
  const uint8_t* counted() const { return counted_.data(); }
  const DeviceBuffer<uint32_t>& order() const { return order_; }

 private:
  struct Columns {
    Columns(const ModelSpec& spec, int64_t rows);
    static int64_t bytes(const ModelSpec& spec, int64_t rows);
    DeviceBuffer<float> inputs, targets;
    DeviceBuffer<int32_t> tokens, labels;
  };

  void put(const Dataset& set, const SetPlace& place);

  ModelSpec spec_;
  int slots_;
  int64_t stride_;
  std::vector<std::vector<SetPlace>> sets_;  // by slot
  std::vector<uint64_t> seeds_;
  Columns all_;    // sample after sample, set after set
  Columns batch_;  // as in StepData
  DeviceBuffer<uint8_t> counted_;
  DeviceBuffer<uint32_t> order_;
  DeviceBuffer<uint64_t> keys_, sorted_keys_;
  DeviceBuffer<uint32_t> values_, sorted_values_;
  PinnedBuffer<ShuffleSegment> segments_;
  Event segments_sent_;
  DeviceBuffer<ShuffleSegment> device_segments_;
  PairSorter sorter_;
};

// Samples of the next epoch for runs that train on fresh ones: made by host threads while the GPU
// is at work on the present epoch.
class FreshSamples {
 public:
  // `threads` are shared by the runs.
  FreshSamples(const std::vector<DeviceRun>& runs, int threads)
      : threads_(std::max(1, threads / static_cast<int>(runs.size()))), next_(runs.size()) {
    for (const DeviceRun& run : runs) configs_.push_back(run.config);
  }

  // Begins to make a run's samples of an epoch.
  void prepare(int slot, int64_t epoch) {
    const RunConfig& config = configs_[slot];
    if (!config.fresh || epoch > config.epochs) return;
    next_[slot] = std::async(std::launch::async, [config, epoch, threads = threads_] {
      return training_data(config, epoch, threads);
    });
  }

  // What was prepared for a run, if anything was.
  bool has(int slot) const { return next_[slot].valid(); }
  std::vector<Dataset> take(int slot) { return next_[slot].get(); }

 private:
  int threads_;
  std::vector<RunConfig> configs_;
  std::vector<std::future<std::vector<Dataset>>> next_;
};

}  // namespace posattn::cuda
