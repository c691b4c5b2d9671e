#include <algorithm>
#include <optional>
#include <span>

#include "posattn/kernels/cuda/losses.h"
#include "posattn/training/cuda/gradient_exchange.h"

namespace posattn::cuda {
namespace {

template <class T>
void download(PinnedBuffer<T>& host, const T* device, int64_t count, cudaStream_t stream) {
  check(cudaMemcpyAsync(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
}

int64_t counted_nodes(const ModelSpec& spec) {
  return spec.loss == Loss::cross_entropy ? spec.nodes() : 0;
}

}  // namespace

GradientExchange::GradientExchange(const FleetShape& shape, int64_t parameters,
                                   DataParallelSteps& ranks)
    : shape_(shape),
      ranks_(ranks),
      parameters_(parameters),
      label_counts_(counted_nodes(shape.spec)),
      label_counts_host_(counted_nodes(shape.spec)),
      gradient_(parameters + static_cast<int64_t>(DataParallelSteps::extra_numbers)),
      loss_(1),
      step_(1) {}

void GradientExchange::enqueue_terms(const FleetArrays& fleet, const StepData& data,
                                     cudaStream_t stream) {
  if (label_counts_.size() == 0) return;
  const ErrorShape error{1, shape_.spec.nodes(), static_cast<int32_t>(shape_.sample_stride()),
                         shape_.spec.output_columns};
  enqueue_label_counts(error, {data.labels, data.counted}, fleet.steps, label_counts_.data(),
                       stream);
}

int64_t GradientExchange::terms_of(const StepPlan& plan) const {
  if (label_counts_.size() == 0 || plan.step.samples == 0) return plan.step.samples;
  int64_t count = 0;
  for (int64_t node = 0; node < label_counts_.size(); ++node) count += label_counts_host_[node];
  return count;
}

bool GradientExchange::exchange(const FleetArrays& fleet, const StepPlan& plan, bool stop,
                                cudaStream_t stream) {
  download(gradient_, fleet.gradients, parameters_, stream);
  download(loss_, fleet.losses, 1, stream);
  if (label_counts_.size() > 0) {
    download(label_counts_host_, label_counts_.data(), label_counts_.size(), stream);
  }
  check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  const std::span<float> values(gradient_.data(), parameters_ + DataParallelSteps::extra_numbers);
  const std::optional<double> loss = ranks_.mean(values, loss_[0], terms_of(plan), stop);
  if (!loss) return false;
  loss_[0] = *loss;
  step_[0] = plan.step;
  step_[0].samples = std::max(1, plan.step.samples);
  gradient_.send(fleet.gradients, 0, parameters_, stream);
  loss_.send(fleet.losses, 0, 1, stream);
  step_.send(fleet.steps, 0, 1, stream);
  return true;
}

}  // namespace posattn::cuda
