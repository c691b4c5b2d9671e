#include "posattn/model/cuda/folding.h"
#include "posattn/model/cuda/fused_standard.h"
#include "posattn/model/cuda/fused_standard_nodes.h"

namespace posattn::cuda {

bool fused_standard_supports(const ModelSpec& spec) {
  return spec.attention == AttentionSource::data && spec.positions_in_input &&
         spec.encoding != Encoding::learned && !spec.rope && !spec.direct_attention &&
         spec.width == 64 && spec.mlp_width == 64 && spec.mlp_depth == 2 && spec.heads == 2 &&
         spec.depth >= 2 && spec.data_columns == 1 && spec.output_columns == 1 &&
         spec.nodes() <= 9 && Folding::supports(spec);
}

std::unique_ptr<StepEngine> make_fused_standard(const FleetShape& shape) {
  const int nodes = shape.spec.nodes();
  if (nodes <= 3) return standard::make_engine<3>(shape);
  if (nodes <= 5) return standard::make_engine<5>(shape);
  return standard::make_engine<9>(shape);
}

int64_t fused_standard_bytes(const FleetShape& shape) {
  const int nodes = shape.spec.nodes();
  if (nodes <= 3) return standard::engine_bytes<3>(shape);
  if (nodes <= 5) return standard::engine_bytes<5>(shape);
  return standard::engine_bytes<9>(shape);
}

}  // namespace posattn::cuda
