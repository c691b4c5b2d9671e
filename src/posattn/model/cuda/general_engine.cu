#include <cmath>

#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/general_engine.h"
#include "posattn/model/cuda/general_step.h"

namespace posattn::cuda {
namespace {

// P where it is a formula; what is stored is read from the parameters.
std::vector<float> positions_table(const ModelSpec& spec) {
  if (!spec.uses_positions() || spec.stores_positions()) return {};
  const std::vector<double> positions = formula_positions(spec);
  return {positions.begin(), positions.end()};
}

// cos and sin of node x 10000^(-c / d_k) for each pair of columns (c, c + 1), [nodes, d_k].
std::vector<float> rotation_table(const ModelSpec& spec) {
  if (!spec.rope) return {};
  const int64_t nodes = spec.nodes(), size = spec.key_size();
  std::vector<float> table(nodes * size);
  for (int64_t node = 0; node < nodes; ++node) {
    for (int64_t c = 0; c + 1 < size; c += 2) {
      const double angle = static_cast<double>(node) *
                           std::pow(10000.0, -static_cast<double>(c) / static_cast<double>(size));
      table[node * size + c] = static_cast<float>(std::cos(angle));
      table[node * size + c + 1] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

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
