#include "posattn/model/tiles/stage.h"

#include "posattn/model/spec/spec_fields.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/model/tiles/key_scores.h"

namespace posattn::engine {

bool known_to_stages(const ModelSpec& spec) {
  using S = ModelSpec;
  return knows_only(spec, &S::real_nodes, &S::scratch_nodes, &S::data_columns, &S::output_columns,
                    &S::attention, &S::positions_in_input, &S::encoding, &S::encoding_size,
                    &S::rotation, &S::scores, &S::width, &S::heads, &S::depth, &S::mlp_width,
                    &S::mlp_depth, &S::biases, &S::reach, &S::source_scale, &S::score_bias,
                    &S::wrap) &&
         (always_folded(spec) ||
          (among(spec.scores, {Scores::dot, Scores::direct, Scores::distance}) &&
           spec.source_scale == SourceScale::none && spec.score_bias == ScoreBias::none));
}

bool always_folded(const ModelSpec& spec) { return KeyScores::needed(spec); }

LinearMap LinearMap::find(const ParameterLayout& layout, std::string_view name) {
  const TensorInfo& weight = layout.at(names::weight(name));
  return {weight.offset, layout.at(names::bias(name)).offset, weight.shape[0], weight.shape[1]};
}

}  // namespace posattn::engine
