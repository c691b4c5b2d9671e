#include <algorithm>
#include <mutex>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/kernels/cuda/runtime.h"
#include "posattn/kernels/cuda/stream.h"
#include "posattn/model/check_batch.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/device_network.h"

namespace posattn {
namespace {

using cuda::check;
using cuda::DeviceBuffer;

// What the engine may take: a test of the paper's models fits in as a whole.
constexpr int64_t most_bytes = int64_t{1} << 29;

// A batch of as many of `samples` as fit at once.
cuda::FleetShape shape_of(const ModelSpec& spec, int64_t samples) {
  cuda::FleetShape shape;
  shape.spec = resolve(spec);
  shape.batch = std::max<int64_t>(1, samples);
  while (shape.batch > 1 && cuda::general_forward_bytes(shape) > most_bytes) shape.batch /= 2;
  return shape;
}

template <class T>
void send(DeviceBuffer<T>& to, const T* from, int64_t count, cudaStream_t stream) {
  if (count == 0) return;
  check(cudaMemcpyAsync(to.data(), from, count * sizeof(T), cudaMemcpyHostToDevice, stream),
        "cudaMemcpyAsync");
}

}  // namespace

class DeviceNetwork::Implementation {
 public:
  Implementation(const ModelSpec& spec, int64_t samples)
      : shape_(shape_of(spec, samples)),
        rows_(shape_.spec.nodes() * shape_.sample_stride()),
        engine_(cuda::make_general_forward(shape_)),
        parameters_(ParameterLayout(shape_.spec).buffer_size()),
        inputs_(rows_ * shape_.spec.data_columns),
        tokens_(shape_.spec.vocabulary > 0 ? rows_ : 0),
        step_(1),
        host_inputs_(inputs_.size()),
        host_tokens_(tokens_.size()),
        host_outputs_(rows_ * shape_.spec.output_columns) {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // memory is filled by another stream
    enqueue();  // the slot rests: this only loads the kernels
    stream_.wait();
  }

  static int64_t bytes_needed(const ModelSpec& spec, int64_t samples) {
    const cuda::FleetShape shape = shape_of(spec, samples);
    const int64_t rows = shape.spec.nodes() * shape.sample_stride();
    return cuda::general_forward_bytes(shape) +
           int64_t{sizeof(float)} *
               (ParameterLayout(shape.spec).buffer_size() + rows * (shape.spec.data_columns + 1));
  }

  void forward(const Parameters<float>& parameters, const Batch& batch, std::span<float> outputs) {
    check_batch(shape_.spec, batch);
    const std::lock_guard lock(mutex_);
    send(parameters_, parameters.values().data(), parameters_.size(), stream_.get());
    for (int64_t first = 0; first < batch.samples; first += shape_.batch) {
      const int64_t count = std::min(shape_.batch, batch.samples - first);
      run(batch, first, count);
      take(batch, first, count, outputs);
    }
  }

 private:
  // A node's place [node, sample] on the GPU, where samples are [sample, node] on the host.
  int64_t row(int64_t sample, int64_t node) const { return node * shape_.sample_stride() + sample; }

  void enqueue() {
    cuda::StepData data;
    data.slots = step_.data();
    data.inputs = inputs_.data();
    data.tokens = tokens_.data();
    engine_->enqueue(data, parameters_.data(), stream_.get());
  }

  void run(const Batch& batch, int64_t first, int64_t count) {
    const int64_t columns = shape_.spec.data_columns;
    std::ranges::fill(host_inputs_, 0.0f);
    std::ranges::fill(host_tokens_, -1);
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t node = 0; node < batch.real_nodes; ++node) {
        const int64_t from = (first + s) * batch.real_nodes + node, to = row(s, node);
        std::copy_n(batch.inputs.begin() + from * columns, columns,
                    host_inputs_.begin() + to * columns);
        if (!host_tokens_.empty()) host_tokens_[to] = batch.tokens[from];
      }
    }
    const cuda::SlotStep step{static_cast<int32_t>(count), batch.real_nodes};
    send(step_, &step, 1, stream_.get());
    send(inputs_, host_inputs_.data(), inputs_.size(), stream_.get());
    send(tokens_, host_tokens_.data(), tokens_.size(), stream_.get());
    enqueue();
    check(cudaMemcpyAsync(host_outputs_.data(), engine_->outputs(0),
                          host_outputs_.size() * sizeof(float), cudaMemcpyDeviceToHost,
                          stream_.get()),
          "cudaMemcpyAsync");
    stream_.wait();
  }

  void take(const Batch& batch, int64_t first, int64_t count, std::span<float> outputs) const {
    const int64_t columns = shape_.spec.output_columns;
    for (int64_t s = 0; s < count; ++s) {
      for (int64_t node = 0; node < batch.real_nodes; ++node) {
        std::copy_n(host_outputs_.begin() + row(s, node) * columns, columns,
                    outputs.begin() + ((first + s) * batch.real_nodes + node) * columns);
      }
    }
  }

  cuda::FleetShape shape_;
  int64_t rows_;
  std::unique_ptr<cuda::ForwardEngine> engine_;
  DeviceBuffer<float> parameters_, inputs_;
  DeviceBuffer<int32_t> tokens_;
  DeviceBuffer<cuda::SlotStep> step_;
  std::vector<float> host_inputs_;
  std::vector<int32_t> host_tokens_;
  std::vector<float> host_outputs_;
  cuda::Stream stream_{cuda::Stream::independent};
  std::mutex mutex_;
};

DeviceNetwork::DeviceNetwork(const ModelSpec& spec, int64_t samples)
    : implementation_(std::make_unique<Implementation>(spec, samples)) {}
DeviceNetwork::~DeviceNetwork() = default;
int64_t DeviceNetwork::bytes_needed(const ModelSpec& spec, int64_t samples) {
  return Implementation::bytes_needed(spec, samples);
}
void DeviceNetwork::forward(const Parameters<float>& parameters, const Batch& batch,
                            std::span<float> outputs) {
  implementation_->forward(parameters, batch, outputs);
}

}  // namespace posattn
