#include "posattn/bounds/certificate/noisy_loss.h"

#include <algorithm>
#include <cmath>

#include "posattn/base/parallel.h"
#include "posattn/bounds/certificate/collapsed_engine.h"
#include "posattn/bounds/certificate/gaussians.h"

namespace posattn::bounds {

double loss_on(const Coordinates& coordinates, const std::vector<float>& weights,
               const LabelledSamples& data, double clip, int threads) {
  constexpr int64_t chunk = 100;
  constexpr int64_t per_part = 10 * chunk;
  const int64_t parts = (data.samples + per_part - 1) / per_part;
  std::vector<double> sums(parts);
  parallel_for(parts, threads, [&](int64_t part) {
    CollapsedEngine engine(coordinates, chunk);
    const int64_t end = std::min(data.samples, (part + 1) * per_part);
    for (int64_t first = part * per_part; first < end; first += chunk) {
      const auto samples = static_cast<int>(std::min(chunk, end - first));
      const int64_t offset = first * coordinates.real_nodes();
      sums[part] +=
          samples *
          engine.loss(weights.data(),
                      {data.inputs.data() + offset, data.targets.data() + offset, samples}, {clip});
    }
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum / static_cast<double>(data.samples);
}

std::vector<double> noisy_losses(const Coordinates& coordinates, const Posterior& posterior,
                                 const LabelledSamples& data, const MonteCarlo& options) {
  std::vector<double> losses(options.draws);
  const std::vector<float> deviations = deviations_of(posterior);
  constexpr int64_t per_part = 100;
  const int nodes = coordinates.real_nodes();
  parallel_for((options.draws + per_part - 1) / per_part, options.threads, [&](int64_t part) {
    if (options.stop != nullptr && *options.stop) return;
    CollapsedEngine engine(coordinates, options.samples);
    std::vector<float> noise(coordinates.size()), weights(coordinates.size());
    std::vector<float> inputs(static_cast<size_t>(options.samples) * nodes), targets(inputs.size());
    const int64_t end = std::min(options.draws, (part + 1) * per_part);
    for (int64_t d = part * per_part; d < end; ++d) {
      RandomStream random(options.seed, options.purpose, options.variant, static_cast<uint32_t>(d));
      fill_normal(random, noise);
      add_noise(posterior.mean, deviations, noise, weights);
      for (int b = 0; b < options.samples; ++b) {
        const int64_t from = int64_t{random.below(static_cast<uint32_t>(data.samples))} * nodes;
        std::copy_n(data.inputs.data() + from, nodes, inputs.data() + int64_t{b} * nodes);
        std::copy_n(data.targets.data() + from, nodes, targets.data() + int64_t{b} * nodes);
      }
      losses[d] = engine.loss(weights.data(), {inputs.data(), targets.data(), options.samples},
                              {options.clip});
    }
    if (options.drawn) options.drawn(end - part * per_part);
  });
  return losses;
}

std::vector<float> deviations_of(const Posterior& posterior) {
  std::vector<float> deviations(posterior.log_deviation.size());
  std::ranges::transform(posterior.log_deviation, deviations.begin(),
                         [](float logarithm) { return std::exp(logarithm); });
  return deviations;
}

void add_noise(const std::vector<float>& mean, const std::vector<float>& deviations,
               const std::vector<float>& noise, std::vector<float>& weights) {
#pragma omp simd
  for (size_t k = 0; k < noise.size(); ++k) weights[k] = mean[k] + deviations[k] * noise[k];
}

}  // namespace posattn::bounds
