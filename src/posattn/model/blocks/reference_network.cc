#include "posattn/model/blocks/reference_network.h"

#include "posattn/model/blocks/block_network.h"
#include "posattn/model/spec/check_batch.h"
#include "posattn/model/spec/scale_wrap.h"

namespace posattn {
namespace {

class Reference {
 public:
  Reference(const ModelSpec& spec, const Parameters<double>& parameters,
            const ReferenceBatch& batch)
      : network_(spec),
        parameters_(parameters),
        scaled_(spec, checked(spec, batch)),
        batch_(scaled_.batch()) {
    network_.prepare(parameters_, batch.real_nodes);
  }

  const BlockTape<double>& forward(int64_t sample) {
    network_.forward(batch_, sample, 1, tape_);
    return tape_;
  }

  void multiply_back(std::vector<double>& outputs) const { scaled_.multiply_back(outputs); }

  double gradient(std::span<const uint8_t> mask, Parameters<double>& gradient) {
    check_targets(network_.spec(), batch_);
    network_.prepare(parameters_, batch_.real_nodes, false, batch_.context);
    std::vector<double> sums(network_.sums_size());
    const double scale = loss_scale(network_.spec(), batch_, mask);
    double loss = 0;
    for (int64_t s = 0; s < batch_.samples; ++s) {
      forward(s);
      loss += network_.backward(batch_, s, 1, mask, scale, tape_, sums);
    }
    network_.finish(sums, gradient);
    return loss;
  }

  std::vector<double> attention() {
    forward(0);
    return network_.attention(tape_);
  }

 private:
  static const ReferenceBatch& checked(const ModelSpec& spec, const ReferenceBatch& batch) {
    check_batch(spec, batch);
    return batch;
  }

  BlockNetwork<double> network_;
  const Parameters<double>& parameters_;
  const ScaledBatch<double> scaled_;
  const ReferenceBatch& batch_;
  BlockTape<double> tape_;
};

}  // namespace

std::vector<double> reference_forward(const ModelSpec& spec, const Parameters<double>& parameters,
                                      const ReferenceBatch& batch) {
  Reference reference(spec, parameters, batch);
  std::vector<double> outputs;
  const int64_t count = int64_t{1} * batch.real_nodes * spec.output_columns;
  for (int64_t s = 0; s < batch.samples; ++s) {
    const std::vector<double>& all = reference.forward(s).output;
    outputs.insert(outputs.end(), all.begin(), all.begin() + count);  // scratch nodes come last
  }
  reference.multiply_back(outputs);
  return outputs;
}

double reference_gradient(const ModelSpec& spec, const Parameters<double>& parameters,
                          const ReferenceBatch& batch, std::span<const uint8_t> mask,
                          Parameters<double>& gradient) {
  return Reference(spec, parameters, batch).gradient(mask, gradient);
}

std::vector<double> reference_attention(const ModelSpec& spec, const Parameters<double>& parameters,
                                        const ReferenceBatch& one_sample) {
  return Reference(spec, parameters, one_sample).attention();
}

}  // namespace posattn
