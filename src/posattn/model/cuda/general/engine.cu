#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/general/step.h"
#include "posattn/model/cuda/step/position_tables.h"

namespace posattn::cuda {
namespace {

class GeneralEngine : public StepEngine {
 public:
  GeneralEngine(const FleetShape& shape, int64_t attention_budget)
      : shape_(shape),
        parameter_layout_(shape.spec),
        layout_(shape, attention_budget),
        activations_(shape.slots * layout_.floats),
        workspace_(shape.slots * product_workspace),
        errors_(shape.slots * layout_.nodes),
        positions_(positions_table(shape.spec)),
        rotation_(rotation_table(shape.spec)) {}

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    const GeneralMemory memory{activations_.data(), workspace_.data(), errors_.data(),
                               positions_.data(), rotation_.data()};
    GeneralStep(shape_, parameter_layout_, layout_, memory, data, parameters, gradients, stream)
        .run(losses);
  }
  const char* name() const override { return "general"; }

 private:
  FleetShape shape_;
  ParameterLayout parameter_layout_;
  GeneralLayout layout_;
  DeviceBuffer<float> activations_, workspace_;
  DeviceBuffer<double> errors_;
  DeviceBuffer<float> positions_, rotation_;
};

}  // namespace

std::unique_ptr<StepEngine> make_general(const FleetShape& shape, int64_t attention_budget) {
  return std::make_unique<GeneralEngine>(shape, attention_budget);
}

int64_t general_bytes(const FleetShape& shape) {
  const GeneralLayout layout(shape, general_attention_budget);
  const ModelSpec& spec = shape.spec;
  const int64_t tables =
      layout.nodes * (int64_t{1} * (spec.uses_positions() ? spec.encoding_size : 0) +
                      (spec.rope ? spec.key_size() : 0));
  const auto slot = static_cast<int64_t>((layout.floats + product_workspace) * sizeof(float) +
                                         layout.nodes * sizeof(double));
  return shape.slots * slot + tables * static_cast<int64_t>(sizeof(float));
}

}  // namespace posattn::cuda
