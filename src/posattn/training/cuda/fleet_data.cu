#include <Random123/philox.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "posattn/base/random.h"
#include "posattn/model/check_batch.h"
#include "posattn/training/cuda/fleet_data.h"

namespace posattn::cuda {
namespace {

constexpr int threads = 128;

// Returns the first number of RandomStream(seed, Purpose::shuffle, epoch, index).
__device__ inline uint32_t shuffle_key(uint64_t seed, uint32_t epoch, uint32_t index) {
  const r123::Philox4x32::ctr_type counter{
      {0, index, epoch, static_cast<uint32_t>(Purpose::shuffle)}};
  const r123::Philox4x32::key_type key{
      {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
  return r123::Philox4x32()(counter, key)[0];
}

// Keys (segment, random number) with the sample's number as value: sorted, each segment is in its
// new order, and equal random numbers stay in the samples' order because the sort is stable.
__global__ void __launch_bounds__(threads)
    key_kernel(const ShuffleSegment* segments, uint64_t* keys, uint32_t* values) {
  const ShuffleSegment segment = segments[blockIdx.x];
  const int64_t step = int64_t{gridDim.y} * threads;
  for (int64_t i = int64_t{blockIdx.y} * threads + threadIdx.x; i < segment.count; i += step) {
    const uint32_t random =
        shuffle_key(segment.seed, segment.epoch, segment.first_index + static_cast<uint32_t>(i));
    keys[segment.begin + i] = uint64_t{blockIdx.x} << 32 | random;
    values[segment.begin + i] = static_cast<uint32_t>(i);
  }
}

__global__ void __launch_bounds__(threads)
    place_kernel(const ShuffleSegment* segments, const uint32_t* values, uint32_t* order) {
  const ShuffleSegment segment = segments[blockIdx.x];
  const int64_t step = int64_t{gridDim.y} * threads;
  for (int64_t i = int64_t{blockIdx.y} * threads + threadIdx.x; i < segment.count; i += step) {
    order[segment.order + i] = values[segment.begin + i];
  }
}

int target_columns(const ModelSpec& spec) {
  return spec.loss == Loss::squared_error ? spec.output_columns : 0;
}

// Each (sample, slot, node) has a thread.
__global__ void __launch_bounds__(threads)
    gather_kernel(const StepPlan* current, const uint32_t* order,
                  DataColumns<const float, const int32_t> from, DataColumns<float, int32_t> to,
                  int64_t stride) {
  const int64_t sample = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (sample >= stride) return;
  const StepPlan& plan = current[blockIdx.y];
  const int samples = plan.step.samples, real_nodes = plan.step.real_nodes;
  if (samples == 0) return;
  const int node = static_cast<int>(blockIdx.z);
  const bool present = sample < samples && node < real_nodes;
  const int64_t row =
      present ? plan.rows + int64_t{order[plan.order + sample]} * real_nodes + node : 0;
  const int64_t place = (int64_t{blockIdx.y} * gridDim.z + node) * stride + sample;
  for (int c = 0; c < from.input_columns; ++c) {
    to.inputs[place * from.input_columns + c] =
        present ? from.inputs[row * from.input_columns + c] : 0.0f;
  }
  for (int c = 0; c < from.target_columns; ++c) {
    to.targets[place * from.target_columns + c] =
        present ? from.targets[row * from.target_columns + c] : 0.0f;
  }
  if (to.tokens) to.tokens[place] = present ? from.tokens[row] : -1;
  if (to.labels) to.labels[place] = present ? from.labels[row] : -1;
}

int64_t total_samples(const std::vector<RunData>& runs) {
  int64_t total = 0;
  for (const RunData& run : runs) {
    for (const Dataset& set : run.sets) total += set.samples;
  }
  return total;
}

int64_t total_sets(const std::vector<RunData>& runs) {
  int64_t total = 0;
  for (const RunData& run : runs) total += static_cast<int64_t>(run.sets.size());
  return total;
}

// Nodes of all samples.
int64_t total_rows(const std::vector<RunData>& runs) {
  int64_t total = 0;
  for (const RunData& run : runs) {
    for (const Dataset& set : run.sets) total += set.samples * set.shape.real_nodes;
  }
  return total;
}

// Kernels read tokens and labels as they are: what the model does not have must not get there.
void check_set(const ModelSpec& spec, const Dataset& set) {
  const Batch batch{set.inputs,           set.targets, set.samples,
                    set.shape.real_nodes, set.tokens,  set.labels};
  check_batch(spec, batch);
  check_targets(spec, batch);
}

template <class T>
void upload(const Buffer<T>& from, int64_t columns, int64_t row, DeviceBuffer<T>& to) {
  if (columns > 0) to.upload(from.data(), static_cast<int64_t>(from.size()), row * columns);
}

// Outputs that count, [slots, nodes, output_columns]; those of scratch nodes never do.
std::vector<uint8_t> counted_outputs(const ModelSpec& spec, const std::vector<RunData>& runs) {
  const auto per_slot = static_cast<std::size_t>(spec.nodes()) * spec.output_columns;
  std::vector<uint8_t> counted(runs.size() * per_slot);
  for (std::size_t slot = 0; slot < runs.size(); ++slot) {
    std::ranges::copy(runs[slot].counted,
                      counted.begin() + static_cast<std::ptrdiff_t>(slot * per_slot));
  }
  return counted;
}

}  // namespace

FleetData::Columns::Columns(const ModelSpec& spec, int64_t rows)
    : inputs(rows * spec.data_columns),
      targets(rows * target_columns(spec)),
      tokens(spec.vocabulary > 0 ? rows : 0),
      labels(spec.loss == Loss::cross_entropy ? rows : 0) {}

int64_t FleetData::Columns::bytes(const ModelSpec& spec, int64_t rows) {
  const int64_t integers =
      (spec.vocabulary > 0 ? 1 : 0) + (spec.loss == Loss::cross_entropy ? 1 : 0);
  return rows * ((spec.data_columns + target_columns(spec)) * int64_t{sizeof(float)} +
                 integers * int64_t{sizeof(int32_t)});
}

FleetData::FleetData(const ModelSpec& spec, int64_t stride, const std::vector<RunData>& runs)
    : spec_(spec),
      slots_(static_cast<int>(runs.size())),
      stride_(stride),
      all_(spec, total_rows(runs)),
      batch_(spec, slots_ * spec.nodes() * stride),
      counted_(counted_outputs(spec, runs)),
      order_(total_samples(runs)),
      keys_(order_.size()),
      sorted_keys_(order_.size()),
      values_(order_.size()),
      sorted_values_(order_.size()),
      segments_(total_sets(runs)),
      device_segments_(total_sets(runs)),
      sorter_(order_.size()) {
  SetPlace place;
  std::vector<uint32_t> order(order_.size());
  for (const RunData& run : runs) {
    sets_.emplace_back();
    seeds_.push_back(run.seed);
    for (const Dataset& set : run.sets) {
      place.samples = set.samples;
      place.real_nodes = set.shape.real_nodes;
      sets_.back().push_back(place);
      put(set, place);
      std::iota(order.begin() + place.order, order.begin() + place.order + set.samples, 0);
      place.order += set.samples;
      place.rows += set.samples * set.shape.real_nodes;
    }
  }
  order_.upload(order.data(), order_.size());
}

void FleetData::put(const Dataset& set, const SetPlace& place) {
  check_set(spec_, set);
  upload(set.inputs, spec_.data_columns, place.rows, all_.inputs);
  upload(set.targets, target_columns(spec_), place.rows, all_.targets);
  upload(set.tokens, all_.tokens.size() > 0 ? 1 : 0, place.rows, all_.tokens);
  upload(set.labels, all_.labels.size() > 0 ? 1 : 0, place.rows, all_.labels);
}

void FleetData::replace(int slot, const std::vector<Dataset>& sets) {
  for (std::size_t i = 0; i < sets.size(); ++i) put(sets[i], sets_[slot][i]);
}

int64_t FleetData::bytes_needed(const ModelSpec& spec, int64_t stride, int slots, int64_t samples) {
  const int64_t stored = Columns::bytes(spec, samples * spec.real_nodes);
  const int64_t batches = Columns::bytes(spec, slots * spec.nodes() * stride);
  // The order; keys and values before and after the sort, and once more in its workspace.
  const int64_t sorting = samples * (4 * int64_t{sizeof(uint32_t)} + 3 * int64_t{sizeof(uint64_t)});
  return stored + batches + sorting;
}

void FleetData::shuffle(const std::vector<Epoch>& epochs, cudaStream_t stream) {
  segments_sent_.wait();  // those of the call before
  int64_t segments = 0, begin = 0, longest = 0;
  for (const Epoch& wanted : epochs) {
    int64_t first_index = 0;
    for (const SetPlace& set : sets_[wanted.slot]) {
      segments_[segments++] = {seeds_[wanted.slot],
                               static_cast<uint32_t>(wanted.epoch),
                               static_cast<uint32_t>(first_index),
                               set.samples,
                               set.order,
                               begin};
      first_index += set.samples;
      begin += set.samples;
      longest = std::max(longest, set.samples);
    }
  }
  if (begin == 0) return;
  segments_.send(device_segments_.data(), 0, segments, stream);
  segments_sent_.record(stream);
  const dim3 grid(static_cast<unsigned>(segments),
                  static_cast<unsigned>(std::min<int64_t>(ceil_div(longest, threads), 64)));
  launch(key_kernel, grid, threads, 0, stream, device_segments_.data(), keys_.data(),
         values_.data());
  const int key_bits = 32 + std::bit_width(static_cast<uint64_t>(segments - 1));
  sorter_.sort(keys_.data(), sorted_keys_.data(), values_.data(), sorted_values_.data(), begin,
               key_bits, stream);
  launch(place_kernel, grid, threads, 0, stream, device_segments_.data(), sorted_values_.data(),
         order_.data());
}

void FleetData::gather(const StepPlan* current, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(ceil_div(stride_, threads)), static_cast<unsigned>(slots_),
                  static_cast<unsigned>(spec_.nodes()));
  const int columns = spec_.data_columns, targets = target_columns(spec_);
  const DataColumns<const float, const int32_t> from{all_.inputs.data(),
                                                     all_.targets.data(),
                                                     all_.tokens.data(),
                                                     all_.labels.data(),
                                                     columns,
                                                     targets};
  const DataColumns<float, int32_t> to{batch_.inputs.data(),
                                       batch_.targets.data(),
                                       batch_.tokens.data(),
                                       batch_.labels.data(),
                                       columns,
                                       targets};
  launch(gather_kernel, grid, threads, 0, stream, current, order_.data(), from, to, stride_);
}

}  // namespace posattn::cuda
