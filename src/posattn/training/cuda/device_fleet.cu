#include <algorithm>
#include <chrono>
#include <optional>
#include <span>

#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/cuda/step/step_engine.h"
#include "posattn/model/device_network.h"
#include "posattn/training/cuda/fleet_data.h"
#include "posattn/training/cuda/fleet_slot.h"
#include "posattn/training/cuda/fleet_steps.h"
#include "posattn/training/cuda/fleet_validation.h"
#include "posattn/training/device_fleet.h"
#include "posattn/training/run.h"

namespace posattn {
namespace {

using cuda::check;
using cuda::DeviceBuffer;
using cuda::PinnedBuffer;
using cuda::state_parts;
using cuda::StepPlan;
using Clock = std::chrono::steady_clock;

std::vector<uint8_t> trained_numbers(const ParameterLayout& layout) {
  std::vector<uint8_t> trained(layout.buffer_size());
  for (const TensorInfo& tensor : layout.tensors()) {
    if (!tensor.trained) continue;
    const uint8_t kind = tensor.maps ? cuda::trained_map : cuda::trained_other;
    std::fill_n(trained.begin() + tensor.offset, tensor.size, kind);
  }
  return trained;
}

std::vector<cuda::RunData> make_run_data(const std::vector<DeviceRun>& runs, int threads) {
  std::vector<cuda::RunData> data;
  for (const DeviceRun& run : runs) {
    const RunConfig& config = run.config;
    data.push_back({config.data_seed_used(), training_data(config, run.state.epoch + 1, threads),
                    loss_mask(task_of(config), static_cast<int>(config.length))});
  }
  return data;
}

}  // namespace

class DeviceFleet::Implementation {
 public:
  Implementation(const std::vector<DeviceRun>& runs, int threads)
      : shape_(cuda::fleet_shape(runs.front().config, runs.size())),
        layout_(std::make_shared<const ParameterLayout>(shape_.spec)),
        size_(layout_->buffer_size()),
        engine_(cuda::make_step_engine(shape_, network_path(runs.front().config))),
        data_(shape_.spec, shape_.sample_stride(), make_run_data(runs, threads)),
        fresh_(runs, threads),
        cursors_(shape_.slots),
        cursors_host_(shape_.slots),
        current_(shape_.slots),
        slot_steps_(shape_.slots),
        losses_(shape_.slots),
        squares_(shape_.slots * 2 * cuda::norm_parts),
        trained_(trained_numbers(*layout_)),
        gradients_(shape_.slots * size_),
        state_(state_parts * shape_.slots * size_),
        backup_(state_parts * shape_.slots * size_),
        staging_(state_parts * size_),
        ended_(shape_.slots),
        device_ended_(shape_.slots),
        beginning_(shape_.slots),
        device_beginning_(shape_.slots),
        network_(shape_.spec, cuda::tested_at_once(runs.front().config)) {
    int64_t plans = 0;
    for (int slot = 0; slot < shape_.slots; ++slot) {
      const DeviceRun& run = runs[slot];
      clips_ = clips_ || run.config.clip > 0 || run.config.clip_relative > 0;
      slots_.emplace_back(run, data_.sets(slot));
      const int64_t steps = slots_.back().steps_per_epoch();
      cursors_host_[slot].plan = plans;
      cursors_host_[slot].steps = cursors_host_[slot].position = static_cast<int32_t>(steps);
      plan_begin_.push_back(plans);
      positions_.push_back(0);
      plans += steps;
      upload(slot, run.state);
    }
    plans_ = DeviceBuffer<StepPlan>(plans);
    plans_host_.emplace(plans);
    cursors_host_.send(cursors_.data(), 0, shape_.slots, stream_.get());
    set_arrays();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // memory is filled by another stream
    enqueue_step(stream_.get());  // all slots rest: this only loads the kernels
    stream_.wait();
    graph_.emplace([this](cudaStream_t stream) { enqueue_step(stream); }, stream_.get());
    if (cuda::FleetValidation::supports(shape_.spec)) {
      validation_.emplace(shape_, runs, *engine_, state_.data(), gradients_.data(), threads,
                          stream_.get());
    }
    begin_first_epochs();
  }

  ~Implementation() { cudaStreamSynchronize(stream_.get()); }

  const char* engine() const { return engine_->name(); }
  int64_t steps_per_epoch(int slot) const { return slots_[slot].steps_per_epoch(); }
  bool finished() const { return std::ranges::none_of(slots_, &cuda::FleetSlot::active); }
  void rest(int slot) { slots_[slot].rest(); }
  ForwardPass& network() { return network_; }

  std::vector<EpochEnd> advance(const std::atomic<bool>* stop) {
    const auto stopped = [stop] {
      return stop != nullptr && stop->load(std::memory_order_relaxed);
    };
    while (launched_ < segment_ && !stopped()) launch_some();
    if (segment_ == 0 || stopped()) {
      stream_.wait();
      return {};
    }
    std::vector<EpochEnd> ends;
    std::vector<int> completed;
    const std::vector<int> ended = end_segment();  // and, where there are, their validations
    const double seconds = std::chrono::duration<double>(Clock::now() - started_).count();
    for (const int slot : ended) {
      const bool validated = validation_ && slots_[slot].validates_next();
      ends.push_back(slots_[slot].close_epoch(cursors_host_[slot], seconds));
      ends.back().slot = slot;
      if (validated) ends.back().record.validation_loss = validation_->loss(slot);
      if (ends.back().divergence.empty()) completed.push_back(slot);
    }
    begin_epochs(completed);
    return ends;
  }

  RunState state(int slot, bool moments) {
    RunState result(layout_);
    slots_[slot].describe(result);
    // The backup does not change while the GPU goes on with the next epoch.
    copies_.wait_for(backed_up_);
    const int parts = moments ? state_parts : 1;
    for (int part = 0; part < parts; ++part) {
      check(cudaMemcpyAsync(staging_.data() + part * size_, backup_.data() + at(part, slot),
                            size_ * sizeof(float), cudaMemcpyDeviceToHost, copies_.get()),
            "cudaMemcpyAsync");
    }
    copies_.wait();
    const auto take = [&](int part, std::span<float> to) {
      std::copy_n(staging_.data() + part * size_, size_, to.begin());
    };
    take(0, result.parameters.values());
    if (moments) {
      take(1, result.optimiser.first_moment.values());
      take(2, result.optimiser.second_moment.values());
    }
    return result;
  }

  double time_steps(int count) {
    stream_.wait();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < count; ++i) {
      if (i % segment_ == 0) {  // the plan is gone through again and again
        cuda::begin_epoch(arrays_, device_beginning_.data(), shape_.slots, stream_.get());
      }
      graph_->launch(stream_.get());
    }
    stream_.wait();
    return std::chrono::duration<double>(Clock::now() - start).count() / count;
  }

 private:
  int64_t at(int part, int slot) const { return (int64_t{1} * part * shape_.slots + slot) * size_; }

  void upload(int slot, const RunState& state) {
    const auto put = [&](int part, std::span<const float> values) {
      state_.upload(values.data(), size_, at(part, slot));
    };
    put(0, state.parameters.values());
    put(1, state.optimiser.first_moment.values());
    put(2, state.optimiser.second_moment.values());
  }

  void set_arrays() {
    arrays_.slots = shape_.slots;
    arrays_.parameters = size_;
    arrays_.plans = plans_.data();
    arrays_.cursors = cursors_.data();
    arrays_.current = current_.data();
    arrays_.steps = slot_steps_.data();
    arrays_.losses = losses_.data();
    arrays_.squares = squares_.data();
    arrays_.trained = trained_.data();
    arrays_.gradients = gradients_.data();
    arrays_.state = state_.data();
    arrays_.backup = backup_.data();
  }

  void enqueue_step(cudaStream_t stream) {
    cuda::begin_step(arrays_, stream);
    data_.gather(current_.data(), stream);
    cuda::StepData data;
    data.slots = slot_steps_.data();
    data.inputs = data_.inputs();
    data.targets = data_.targets();
    data.counted = data_.counted();
    data.tokens = data_.tokens();
    data.labels = data_.labels();
    engine_->enqueue(data, state_.data(), gradients_.data(), losses_.data(), stream);
    if (clips_) cuda::sum_gradient_squares(arrays_, stream);
    cuda::update_weights(arrays_, clips_, stream);
  }

  void begin_first_epochs() {
    std::vector<int> all;
    for (int slot = 0; slot < shape_.slots; ++slot) all.push_back(slot);
    shuffle(all);
    begin_epochs(all);
  }

  // Makes the order of these slots' next epochs: the ones after those under way, or the first ones.
  void shuffle(const std::vector<int>& slots) {
    std::vector<cuda::FleetData::Epoch> epochs;
    for (const int slot : slots) {
      const int64_t epoch = slots_[slot].completed_epochs() + (positions_[slot] > 0 ? 2 : 1);
      if (slots_[slot].has_epoch(epoch)) epochs.push_back({slot, epoch});
    }
    data_.shuffle(epochs, stream_.get());
  }

  // Copies the state of these slots to the backup, and enqueues what comes next for those among
  // them that are active.
  void begin_epochs(const std::vector<int>& slots) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const int slot = slots[i];
      const bool active = slots_[slot].active();
      beginning_[static_cast<int64_t>(i)] = {slot, active ? 0 : 1};
      positions_[slot] = 0;
      if (active) {
        if (fresh_.has(slot)) data_.replace(slot, fresh_.take(slot));
        fresh_.prepare(slot, slots_[slot].completed_epochs() + 2);
        slots_[slot].plan_epoch(shape_.spec, plans_host_->data() + plan_begin_[slot]);
      }
    }
    send_plans(slots);
    const auto count = static_cast<int>(slots.size());
    if (count > 0) {
      beginning_.send(device_beginning_.data(), 0, count, stream_.get());
      cuda::begin_epoch(arrays_, device_beginning_.data(), count, stream_.get());
      backed_up_.record(stream_.get());
    }
    begin_segment();
  }

  // Plans lie slot after slot, so those of neighbours travel together.
  void send_plans(const std::vector<int>& slots) {
    for (std::size_t i = 0; i < slots.size();) {
      const int64_t begin = plan_begin_[slots[i]];
      int64_t end = begin;
      for (; i < slots.size() && plan_begin_[slots[i]] == end; ++i) {
        end += slots_[slots[i]].steps_per_epoch();
      }
      plans_host_->send(plans_.data(), begin, end - begin, stream_.get());
    }
  }

  // Enqueues the first of the steps up to the next end of an epoch.
  void begin_segment() {
    segment_ = launched_ = 0;
    for (int slot = 0; slot < shape_.slots; ++slot) {
      if (!slots_[slot].active()) continue;
      const int64_t left = slots_[slot].steps_per_epoch() - positions_[slot];
      segment_ = segment_ == 0 ? left : std::min(segment_, left);
    }
    for (int64_t& position : positions_) position += segment_;
    for (int i = 0; i < most_ahead && launched_ < segment_; ++i) launch_some();
  }

  // A few steps at a time, and never many ahead of the GPU, so that a wish to stop is seen soon.
  void launch_some() {
    cuda::Event& event = chunk_done_[chunk_++ % most_ahead];
    event.wait();
    for (int i = 0; i < chunk_steps && launched_ < segment_; ++i, ++launched_) {
      graph_->launch(stream_.get());
    }
    event.record(stream_.get());
  }

  // Waits for the segment. The slots whose epoch it ended; their results are in cursors_host_, and
  // the order of what follows is being made.
  std::vector<int> end_segment() {
    std::vector<int> ended;
    for (int slot = 0; slot < shape_.slots; ++slot) {
      if (!slots_[slot].active() || positions_[slot] != slots_[slot].steps_per_epoch()) continue;
      ended_[static_cast<int64_t>(ended.size())] = slot;
      ended.push_back(slot);
    }
    const auto count = static_cast<int>(ended.size());
    if (count > 0) {
      ended_.send(device_ended_.data(), 0, count, stream_.get());
      cuda::end_epoch(arrays_, device_ended_.data(), count, stream_.get());
    }
    const auto validates = [this](int slot) { return slots_[slot].validates_next(); };
    if (validation_ && std::ranges::any_of(ended, validates)) validation_->enqueue(stream_.get());
    check(cudaMemcpyAsync(cursors_host_.data(), cursors_.data(),
                          shape_.slots * sizeof(cuda::SlotCursor), cudaMemcpyDeviceToHost,
                          stream_.get()),
          "cudaMemcpyAsync");
    results_.record(stream_.get());
    shuffle(ended);
    results_.wait();
    return ended;
  }

  static constexpr int chunk_steps = 32;
  static constexpr int most_ahead = 2;  // chunks

  cuda::FleetShape shape_;
  std::shared_ptr<const ParameterLayout> layout_;
  int64_t size_;  // of a run's parameter buffer
  std::unique_ptr<cuda::StepEngine> engine_;
  cuda::FleetData data_;
  cuda::FreshSamples fresh_;
  std::vector<cuda::FleetSlot> slots_;
  std::vector<int64_t> plan_begin_;  // where a slot's plans begin
  std::vector<int64_t> positions_;   // in its epoch, of what is enqueued or about to be
  bool clips_ = false;
  DeviceBuffer<StepPlan> plans_;
  std::optional<PinnedBuffer<StepPlan>> plans_host_;
  DeviceBuffer<cuda::SlotCursor> cursors_;
  PinnedBuffer<cuda::SlotCursor> cursors_host_;
  DeviceBuffer<StepPlan> current_;
  DeviceBuffer<cuda::SlotStep> slot_steps_;
  DeviceBuffer<double> losses_, squares_;
  DeviceBuffer<uint8_t> trained_;
  DeviceBuffer<float> gradients_, state_, backup_;
  PinnedBuffer<float> staging_;
  // Lists of slots. Each is written again only after the host has waited for what came after it.
  PinnedBuffer<int32_t> ended_;
  DeviceBuffer<int32_t> device_ended_;
  PinnedBuffer<cuda::EpochBegin> beginning_;
  DeviceBuffer<cuda::EpochBegin> device_beginning_;
  cuda::FleetArrays arrays_;
  cuda::Stream stream_{cuda::Stream::with_default}, copies_{cuda::Stream::independent};
  cuda::Event results_, backed_up_;
  cuda::Event chunk_done_[most_ahead];
  int64_t chunk_ = 0;  // counts them
  std::optional<cuda::StepGraph> graph_;
  std::optional<cuda::FleetValidation> validation_;
  DeviceNetwork network_;               // where tests are computed
  int64_t segment_ = 0, launched_ = 0;  // steps up to the next end of an epoch
  Clock::time_point started_ = Clock::now();
};

DeviceFleet::DeviceFleet(const std::vector<DeviceRun>& runs, int threads)
    : implementation_(std::make_unique<Implementation>(runs, threads)) {}
DeviceFleet::~DeviceFleet() = default;
DeviceFleet::DeviceFleet(DeviceFleet&&) noexcept = default;

const char* DeviceFleet::engine() const { return implementation_->engine(); }
int64_t DeviceFleet::steps_per_epoch(int slot) const {
  return implementation_->steps_per_epoch(slot);
}
bool DeviceFleet::finished() const { return implementation_->finished(); }
std::vector<EpochEnd> DeviceFleet::advance(const std::atomic<bool>* stop) {
  return implementation_->advance(stop);
}
void DeviceFleet::rest(int slot) { implementation_->rest(slot); }
RunState DeviceFleet::state(int slot, bool moments) {
  return implementation_->state(slot, moments);
}
ForwardPass& DeviceFleet::network() { return implementation_->network(); }
double DeviceFleet::time_steps(int count) { return implementation_->time_steps(count); }

}  // namespace posattn
