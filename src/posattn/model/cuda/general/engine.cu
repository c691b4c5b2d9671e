#include "posattn/kernels/cuda/runtime.h"
#include "posattn/model/cuda/general/engine.h"
#include "posattn/model/cuda/general/step.h"
#include "posattn/model/cuda/step/position_tables.h"
#include "posattn/model/spec/spec_fields.h"

namespace posattn::cuda {
namespace {

// What steps of a shape work with.
class Workplace {
 public:
  Workplace(const FleetShape& shape, int64_t attention_budget, Passes passes)
      : shape_(shape),
        plan_(plan_of(shape.spec)),
        layout_(shape, plan_, attention_budget, passes),
        activations_(shape.slots * layout_.floats),
        workspace_(shape.slots * product_workspace),
        concurrent_(shape.spec.depth, shape.slots * product_workspace),
        errors_(shape.slots * layout_.nodes),
        label_counts_(shape.slots * layout_.nodes),
        positions_(positions_table(shape.spec)),
        rotation_(rotation_table(shape.spec)),
        memory_{activations_.data(),     workspace_.data(), errors_.data(),
                label_counts_.data(),    positions_.data(), rotation_.data(),
                rotated_size(shape.spec)} {}

  GeneralStep step(const StepData& data, const float* parameters, float* gradients,
                   cudaStream_t stream) {
    return {shape_, plan_, layout_, memory_, concurrent_, data, parameters, gradients, stream};
  }
  const float* outputs(int slot) const {
    return activations_.data() + slot * layout_.floats + layout_.output;
  }

 private:
  FleetShape shape_;
  Plan plan_;
  GeneralLayout layout_;
  DeviceBuffer<float> activations_, workspace_;
  ConcurrentStreams concurrent_;
  DeviceBuffer<double> errors_;
  DeviceBuffer<int32_t> label_counts_;
  DeviceBuffer<float> positions_, rotation_;
  GeneralMemory memory_;
};

class GeneralEngine final : public StepEngine {
 public:
  GeneralEngine(const FleetShape& shape, int64_t attention_budget)
      : workplace_(shape, attention_budget, Passes::forward_and_backward) {}

  void enqueue(const StepData& data, const float* parameters, float* gradients, double* losses,
               cudaStream_t stream) override {
    workplace_.step(data, parameters, gradients, stream).run(losses);
  }
  const char* name() const override { return "general"; }

 private:
  Workplace workplace_;
};

class GeneralForward final : public ForwardEngine {
 public:
  explicit GeneralForward(const FleetShape& shape)
      : workplace_(shape, general_attention_budget, Passes::forward) {}

  void enqueue(const StepData& data, const float* parameters, cudaStream_t stream) override {
    workplace_.step(data, parameters, nullptr, stream).forward();
  }
  const float* outputs(int slot) const override { return workplace_.outputs(slot); }

 private:
  Workplace workplace_;
};

int64_t bytes_of(const FleetShape& shape, Passes passes) {
  const GeneralLayout layout(shape, plan_of(shape.spec), general_attention_budget, passes);
  const ModelSpec& spec = shape.spec;
  const int64_t tables =
      layout.nodes *
      (int64_t{1} * (spec.uses_positions() ? spec.encoding_size : 0) + rotated_size(spec));
  const auto slot = static_cast<int64_t>((layout.floats + 3 * product_workspace) * sizeof(float) +
                                         layout.nodes * (sizeof(double) + sizeof(int32_t)));
  return shape.slots * slot + tables * static_cast<int64_t>(sizeof(float));
}

// Whether the tables of rows.h have what a kind is made of.
bool has_rows(const AttentionChoices& kind) {
  return among(kind.scores, {Scores::dot, Scores::unit, Scores::direct, Scores::distance}) &&
         among(kind.position_scores(),
               {ScoreBias::none, ScoreBias::positions, ScoreBias::direct, ScoreBias::distance}) &&
         among(kind.weighting, {Weighting::softmax, Weighting::hard}) &&
         (kind.weighting == Weighting::softmax || kind.reads_data()) && kind.score_window == 0 &&
         kind.features == 0 && kind.landmarks == 0 && !kind.reads_pairs();
}

}  // namespace

bool general_supports(const ModelSpec& spec) {
  using S = ModelSpec;
  return knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                    &S::attention, &S::positions_in_input, &S::encoding, &S::encoding_size,
                    &S::rotation, &S::scores, &S::source_scale, &S::score_bias, &S::weighting,
                    &S::kinds, &S::width, &S::heads, &S::depth, &S::mlp_width, &S::mlp_depth,
                    &S::biases, &S::reach, &S::causal, &S::split_heads, &S::join, &S::normalisation,
                    &S::activation, &S::vocabulary, &S::positions_added, &S::tied_output,
                    &S::fixed_tokens, &S::read_nodes, &S::loss, &S::tokens_and_values,
                    &S::value_width, &S::value_mlp_width, &S::value_gates, &S::scores_read_values,
                    &S::symbols_read_values, &S::wrap) &&
         !spec.routed() && rotates_alike(spec) &&
         (!spec.two_streams() || spec.normalisation == Normalisation::before) &&
         !spec.any_layer([](const AttentionChoices& kind) { return !has_rows(kind); });
}

std::unique_ptr<StepEngine> make_general(const FleetShape& shape, int64_t attention_budget) {
  return std::make_unique<GeneralEngine>(shape, attention_budget);
}

int64_t general_bytes(const FleetShape& shape) {
  return bytes_of(shape, Passes::forward_and_backward);
}

std::unique_ptr<ForwardEngine> make_general_forward(const FleetShape& shape) {
  return std::make_unique<GeneralForward>(shape);
}

int64_t general_forward_bytes(const FleetShape& shape) { return bytes_of(shape, Passes::forward); }

}  // namespace posattn::cuda
