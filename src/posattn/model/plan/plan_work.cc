#include "posattn/model/plan/plan_work.h"

namespace posattn {

Network::Work plan_work(const ModelSpec& spec, const Plan& plan) {
  const double nodes = spec.nodes();
  const auto rows = [&](const LinearBlock& map) { return nodes * map.in * map.out; };
  Network::Work work;
  for (const LayerBlock& layer : plan.layers) {
    const AttentionBlock& attention = layer.attention;
    const double heard = attention.causal ? (nodes + 1) / (2 * nodes) : 1;  // of all pairs
    double maps = rows(attention.value) + rows(attention.output);
    double pairs = nodes * nodes * attention.heads * attention.head_size;
    for (const LinearBlock& map : layer.mlp.maps) maps += rows(map);
    const double scores = nodes * nodes * attention.heads * attention.key_size;
    if (const auto* data = std::get_if<DataScores>(&attention.scores)) {
      maps += rows(data->query_key);
      pairs += scores;
    } else if (const auto* positions = std::get_if<PositionScores>(&attention.scores)) {
      work.nominal_per_step += rows(positions->query_key) + scores;
    }
    work.nominal_per_sample += maps + pairs;
    work.actual_per_sample += maps + heard * pairs;
  }
  work.actual_per_step = work.nominal_per_step;
  return work;
}

}  // namespace posattn
