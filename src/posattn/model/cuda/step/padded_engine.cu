#include <algorithm>
#include <vector>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/step/padded_engine.h"
#include "posattn/model/spec/parameters.h"

namespace posattn::cuda {
namespace {

constexpr int hidden_units = 64;
constexpr int threads = 256;

// Where the wide model has a number of the narrow one, in the order of its buffer; -1 where it has
// none: between tensors, and in those that are not `wanted`.
template <class Wanted>
std::vector<int32_t> places(const ParameterLayout& narrow, const ParameterLayout& wide,
                            Wanted wanted) {
  std::vector<int32_t> places(narrow.buffer_size(), -1);
  for (const TensorInfo& tensor : narrow.tensors()) {
    if (!wanted(tensor)) continue;
    const TensorInfo& to = wide.at(tensor.name);
    const int64_t columns = tensor.shape.back(), wide_columns = to.shape.back();
    for (int64_t i = 0; i < tensor.size; ++i) {
      places[tensor.offset + i] =
          static_cast<int32_t>(to.offset + i / columns * wide_columns + i % columns);
    }
  }
  return places;
}

// Copies numbers between a narrow and a wide model. Blocks are (numbers of the narrow one, slot).
template <bool widen>
__global__ void __launch_bounds__(threads)
    copy_kernel(const SlotStep* slots, const int32_t* places, int64_t size, int64_t wide_size,
                const float* from, float* to) {
  const int64_t i = int64_t{blockIdx.x} * threads + threadIdx.x;
  const int slot = blockIdx.y;
  if (i >= size || slots[slot].samples == 0 || places[i] < 0) return;
  const int64_t narrow = slot * size + i, wide = slot * wide_size + places[i];
  to[widen ? wide : narrow] = from[widen ? narrow : wide];
}

class PaddedEngine final : public StepEngine {
 public:
  PaddedEngine(const FleetShape& shape, std::unique_ptr<StepEngine> engine)
      : PaddedEngine(shape, std::move(engine), ParameterLayout(shape.spec),
                     ParameterLayout(padded_spec(shape.spec))) {}

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const dim3 grid(static_cast<unsigned>(ceil_div(size_, threads)), slots_);
    launch(copy_kernel<true>, grid, dim3(threads), 0, stream, data.slots, places_.data(), size_,
           wide_size_, parameters, parameters_.data());
    engine_->enqueue(data, parameters_.data(), gradients_.data(), losses, stream);
    launch(copy_kernel<false>, grid, dim3(threads), 0, stream, data.slots, trained_places_.data(),
           size_, wide_size_, gradients_.data(), gradients);
  }
  const char* name() const override { return engine_->name(); }

 private:
  PaddedEngine(const FleetShape& shape, std::unique_ptr<StepEngine> engine,
               const ParameterLayout& narrow, const ParameterLayout& wide)
      : slots_(shape.slots),
        size_(narrow.buffer_size()),
        wide_size_(wide.buffer_size()),
        engine_(std::move(engine)),
        places_(places(narrow, wide, [](const TensorInfo&) { return true; })),
        trained_places_(places(narrow, wide, [](const TensorInfo& t) { return t.trained; })),
        parameters_(slots_ * wide_size_),
        gradients_(slots_ * wide_size_) {}

  int slots_;
  int64_t size_, wide_size_;  // of a slot's parameters
  std::unique_ptr<StepEngine> engine_;
  DeviceBuffer<int32_t> places_, trained_places_;
  DeviceBuffer<float> parameters_, gradients_;  // of the wide model
};

}  // namespace

ModelSpec padded_spec(const ModelSpec& spec) {
  ModelSpec padded = spec;
  padded.mlp_width = std::max(spec.mlp_width, hidden_units);
  return padded;
}

std::unique_ptr<StepEngine> make_padded(const FleetShape& shape,
                                        std::unique_ptr<StepEngine> engine) {
  return std::make_unique<PaddedEngine>(shape, std::move(engine));
}

int64_t padding_bytes(const FleetShape& shape) {
  const int64_t wide = ParameterLayout(padded_spec(shape.spec)).buffer_size();
  return 2 * (shape.slots * wide * int64_t{sizeof(float)} +
              ParameterLayout(shape.spec).buffer_size() * int64_t{sizeof(int32_t)});
}

}  // namespace posattn::cuda
