#include "posattn/model/spec/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "posattn/base/error.h"

namespace posattn {
namespace {

template <class Action>
std::string message_of(ExitCode code, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

TEST(Spec, DefaultDepthIsFloorLog2PlusOne) {
  for (int length = 1; length <= 1000; ++length) {
    EXPECT_EQ(default_depth(length), static_cast<int>(std::floor(std::log2(length))) + 1);
  }
  EXPECT_NE(message_of(ExitCode::configuration, [] { default_depth(0); }), "");
}

TEST(Spec, ResolveFillsTheEncodingSize) {
  const auto size = [](Encoding encoding, int real_nodes) {
    ModelSpec spec;
    spec.encoding = encoding;
    spec.real_nodes = real_nodes;
    return resolve(spec).encoding_size;
  };
  EXPECT_EQ(size(Encoding::one_hot, 8), 9);
  EXPECT_EQ(size(Encoding::random, 8), 9);
  EXPECT_EQ(size(Encoding::learned, 8), 9);
  EXPECT_EQ(size(Encoding::binary, 8), 4);
  EXPECT_EQ(size(Encoding::binary, 7), 3);
  EXPECT_EQ(size(Encoding::sinusoidal, 8), 2);
}

TEST(Spec, ResolveRefusesTheImpossible) {
  const struct {
    const char* part;  // of the message
    std::function<void(ModelSpec&)> change;
  } rows[] = {
      {"3 heads do not divide the width 64", [](auto& s) { s.heads = 3; }},
      {"heads = 0", [](auto& s) { s.heads = 0; }},
      {"real_nodes = 0", [](auto& s) { s.real_nodes = 0; }},
      {"real_nodes = -1", [](auto& s) { s.real_nodes = -1; }},
      {"scratch_nodes = -1", [](auto& s) { s.scratch_nodes = -1; }},
      {"nodes (real and scratch)", [](auto& s) { s.real_nodes = 1 << 20; }},
      {"data_columns", [](auto& s) { s.data_columns = 0; }},
      {"output_columns", [](auto& s) { s.output_columns = 0; }},
      {"width = 65537", [](auto& s) { s.width = 65537; }},
      {"depth = 0", [](auto& s) { s.depth = 0; }},
      {"depth = 2147483647", [](auto& s) { s.depth = 2147483647; }},
      {"mlp_width", [](auto& s) { s.mlp_width = 0; }},
      {"mlp_depth = 1", [](auto& s) { s.mlp_depth = 1; }},
      {"one-hot", [](auto& s) { s.encoding_size = 4; }},
      {"encoding_size = -1", [](auto& s) { s.encoding_size = -1; }},
      {"encoding_size (binary) = 3",
       [](auto& s) { s.encoding = Encoding::binary, s.encoding_size = 3; }},
      {"sinusoidal", [](auto& s) { s.encoding = Encoding::sinusoidal, s.encoding_size = 3; }},
      {"direct attention with attention from data",
       [](auto& s) { s.scores = Scores::direct, s.attention = AttentionSource::data; }},
      {"direct attention with RoPE",
       [](auto& s) { s.scores = Scores::direct, s.rotation = Rotation::rope; }},
      {"route_places (without routes)", [](auto& s) { s.route_places = 2; }},
      {"route_places = 0", [](auto& s) { s.scores = Scores::routes, s.route_places = 0; }},
      {"routes with attention from data",
       [](auto& s) { s.scores = Scores::routes, s.attention = AttentionSource::data; }},
      {"routes with RoPE", [](auto& s) { s.scores = Scores::routes, s.rotation = Rotation::rope; }},
      {"routes with binary positions",
       [](auto& s) { s.scores = Scores::routes, s.encoding = Encoding::binary; }},
      {"routes with no scratch node",
       [](auto& s) { s.scores = Scores::routes, s.scratch_nodes = 0; }},
      {"real_nodes = 1048577",
       [](auto& s) { s.scores = Scores::routes, s.real_nodes = (1 << 20) + 1; }},
      {"too large",
       [](auto& s) {
         s.scores = Scores::routes, s.real_nodes = 1 << 20, s.route_places = 1 << 20;
       }},
      {"too large", [](auto& s) { s.real_nodes = 1 << 19; }},
      {"too large", [](auto& s) { s.width = s.mlp_width = 1 << 16, s.depth = 4096; }},
      {"too large",
       [](auto& s) { s.scores = Scores::direct, s.real_nodes = 1 << 19, s.width = s.heads = 1; }},
      {"scores 'unit' with attention from positions", [](auto& s) { s.scores = Scores::unit; }},
      {"source scale 'sample' with attention from positions",
       [](auto& s) { s.source_scale = SourceScale::sample; }},
      {"score bias 'positions' with attention from positions",
       [](auto& s) { s.score_bias = ScoreBias::positions; }},
      {"scores 'signs' with attention from positions", [](auto& s) { s.scores = Scores::signs; }},
      {"scores 'tropical' with attention from positions",
       [](auto& s) { s.kinds = "positions scores=tropical"; }},
      {"score bias 'gray' with attention from positions",
       [](auto& s) { s.score_bias = ScoreBias::gray; }},
      {"weighting 'relu_rows' with attention from positions",
       [](auto& s) { s.kinds = "relative weighting=relu-rows"; }},
      {"scores 'unit' with weighting 'relu_rows'",
       [](auto& s) { s.kinds = "cosine weighting=relu-rows"; }},
      {"scores 'signs' with RoPE", [](auto& s) { s.kinds = "rope scores=signs"; }},
      {"scores 'tropical' with RoPE", [](auto& s) { s.kinds = "tropical rotation=rope"; }},
      {"routes with a layer that is not the paper's",
       [](auto& s) { s.scores = Scores::routes, s.weighting = Weighting::sums; }},
      {"split heads: 2 heads do not divide the 9 columns of positions",
       [](auto& s) { apply_preset("scale-free", s), s.split_heads = true; }},
      {"wrap 'scale' with tokens alone",
       [](auto& s) { s.wrap = Wrap::scale, s.vocabulary = 3, s.data_columns = 0; }},
      {"wrap 'scale' with classes",
       [](auto& s) { s.wrap = Wrap::scale, s.loss = Loss::cross_entropy; }},
      {"unknown kind of attention 'relativ'", [](auto& s) { s.kinds = "relativ,data"; }},
      {"unknown choice of attention 'score'", [](auto& s) { s.kinds = "data score=unit"; }},
      {"unknown scores 'cosine'", [](auto& s) { s.kinds = "data scores=cosine"; }},
      {"3 kinds of attention for 2 layers",
       [](auto& s) { s.kinds = "data,relative,direct", s.depth = 2; }},
      {"direct attention with attention from data",
       [](auto& s) { s.kinds = "positions,data scores=direct"; }},
      {"routes", [](auto& s) { s.kinds = "positions,positions scores=routes"; }},
      {"score bias 'alibi' with attention from positions",
       [](auto& s) { s.kinds = "positions score-bias=alibi"; }},
      {"score_window = 2", [](auto& s) { s.kinds = "data score-window=2"; }},
      {"score_window = 33", [](auto& s) { s.kinds = "data score-window=33"; }},
      {"score_window = 3 with attention from positions",
       [](auto& s) { s.kinds = "relative score-window=3"; }},
      {"score_window = 3 with the weighting 'kernel'",
       [](auto& s) { s.kinds = "kernel score-window=3"; }},
      {"features (without the weighting 'kernel') = 8",
       [](auto& s) { s.kinds = "data features=8"; }},
      {"features (of the weighting 'kernel') = 0",
       [](auto& s) { s.kinds = "data weighting=kernel"; }},
      {"the weighting 'kernel' with attention from positions",
       [](auto& s) { s.kinds = "positions weighting=kernel features=4"; }},
      {"the weighting 'kernel' with scores 'unit'",
       [](auto& s) { s.kinds = "kernel scores=unit"; }},
      {"by pairs of nodes, of which the samples have none", [](auto& s) { s.kinds = "pairs"; }},
      {"by pairs of nodes, of which", [](auto& s) { s.kinds = "data score-bias=pairs"; }},
      {"neighbours, of pairs without classes",
       [](auto& s) {
         s.kinds = "relative,neighbours";
         s.pair_columns = 1;
       }},
      {"pair attention with attention from data",
       [](auto& s) {
         s.kinds = "data scores=pairs";
         s.pair_classes = 2;
       }},
      {"weighting 'kernel' with pairs",
       [](auto& s) {
         s.kinds = "neighbours weighting=kernel";
         s.pair_classes = 2;
       }},
      {"weighting 'sums' with pairs of nodes",
       [](auto& s) { s.kinds = "pairs weighting=sums pair-mask=edges", s.pair_classes = 2; }},
      {"score_window = 3 with pairs",
       [](auto& s) {
         s.kinds = "pairs score-window=3";
         s.pair_classes = 2;
       }},
      {"pair_classes = -1", [](auto& s) { s.pair_classes = -1; }},
      {"landmarks = 0", [](auto& s) { s.kinds = "low-rank landmarks=0"; }},
      {"landmarks = 10", [](auto& s) { s.kinds = "low-rank landmarks=10"; }},
      {"landmarks (without", [](auto& s) { s.kinds = "data landmarks=2"; }},
      {"low_rank attention that is causal", [](auto& s) { s.kinds = "low-rank", s.causal = true; }},
      {"low_rank attention from positions",
       [](auto& s) { s.kinds = "positions weighting=low-rank landmarks=2"; }},
      {"low_rank attention with scores 'signs'",
       [](auto& s) { s.kinds = "low-rank scores=signs"; }},
      {"linear attention from positions", [](auto& s) { s.weighting = Weighting::linear; }},
      {"linear attention with score bias 'distance'",
       [](auto& s) { s.kinds = "linear score-bias=distance"; }},
      {"score_window = 3 with the weighting 'linear'",
       [](auto& s) { s.kinds = "linear score-window=3"; }},
      {"reach = -1",
       [](auto& s) {
         s.attention = AttentionSource::data, s.score_bias = ScoreBias::window, s.reach = -1;
       }},
      {"reach = 2000000", [](auto& s) { s.kinds = "window reach=2000000,data"; }},
      {"reach (without", [](auto& s) { s.kinds = "data reach=3"; }},
      {"a window with a convolution", [](auto& s) { s.kinds = "window score-window=3"; }},
      {"read_nodes = -9", [](auto& s) { s.read_nodes = -9; }},
  };
  for (const auto& row : rows) {
    ModelSpec spec;
    row.change(spec);
    const std::string message = message_of(ExitCode::configuration, [&] { resolve(spec); });
    EXPECT_NE(message.find(row.part), std::string::npos) << row.part << " in: " << message;
  }
}

TEST(Spec, KindsAreWrittenAsTheyAreRead) {
  for (const NamedKind& named : attention_kinds()) {
    EXPECT_EQ(kind_of(kind_text(named.choices)), named.choices) << named.name;
  }
  for (const char* text : {"data", "data scores=unit", "data-and-positions source-scale=node",
                           "positions scores=direct weighting=hard",
                           "data rotation=rope score-bias=positions score-window=3"}) {
    EXPECT_EQ(kind_of(kind_text(kind_of(text))), kind_of(text));
  }
  EXPECT_EQ(kind_text(kind_of("data score-bias=distance")), "data score-bias=distance");
}

TEST(Spec, PresetsDecideTheirFieldsAndNothingElse) {
  for (const Preset& preset : presets()) {
    ModelSpec spec;
    spec.attention = AttentionSource::data_and_positions;
    spec.width = 32;
    spec.encoding = Encoding::binary;
    spec.pair_classes = 2;
    apply_preset(preset.name, spec);
    EXPECT_NO_THROW(resolve(spec)) << preset.name;
    EXPECT_EQ(spec.width, 32);
    EXPECT_EQ(spec.encoding, Encoding::binary);
    const std::string name = preset.name == "m0"   ? "standard"
                             : preset.name == "m5" ? "positional"
                                                   : preset.name;
    EXPECT_EQ(preset_name(spec), name);
  }
  ModelSpec spec;
  spec.rotation = Rotation::rope;
  EXPECT_EQ(preset_name(spec), "custom");
  EXPECT_NE(message_of(ExitCode::usage, [&] { apply_preset("positionl", spec); })
                .find("did you mean 'positional'?"),
            std::string::npos);
}

// Equal models have equal specs.
TEST(Spec, KindsHaveOneForm) {
  const auto resolved = [](const char* kinds, int depth) {
    ModelSpec spec;
    spec.kinds = kinds;
    spec.depth = depth;
    return resolve(spec);
  };
  ModelSpec standard;
  standard.attention = AttentionSource::data;
  EXPECT_EQ(resolved("data", 4), resolve(standard));
  EXPECT_EQ(resolved("data,data scores=dot", 4), resolve(standard));
  EXPECT_EQ(resolved("relative,data,relative,data", 4).kinds, "relative,data");
  EXPECT_EQ(resolved("relative,data,relative", 3).kinds, "relative,data");
  EXPECT_EQ(preset_name(resolved("relative,data", 4)), "custom");

  const ModelSpec mixed = resolved("relative,data", 3);
  EXPECT_EQ(mixed.of_layer(0).scores, Scores::distance);
  EXPECT_EQ(mixed.of_layer(1).attention, AttentionSource::data);
  EXPECT_EQ(mixed.of_layer(2), mixed.of_layer(0));
  EXPECT_TRUE(mixed.attends_by_data());
  EXPECT_FALSE(mixed.uses_positions());
  EXPECT_EQ(mixed.reach, 8);
  EXPECT_EQ(spec_from_json(to_json(mixed)), mixed);
  EXPECT_TRUE(at_length(mixed, 20).has_value());
  EXPECT_FALSE(at_length(resolved("relative,direct", 3), 20).has_value());
}

// A spec says which pairs the model reads, not which the task has.
TEST(Spec, PairsThatNoLayerReadsAreLeftOut) {
  const auto resolved = [](const char* kinds) {
    ModelSpec spec;
    spec.kinds = kinds;
    spec.pair_columns = 3;
    spec.pair_classes = 2;
    return resolve(spec);
  };
  EXPECT_EQ(resolved("relative,data").pair_classes, 0);
  EXPECT_EQ(resolved("relative,data").pair_columns, 0);
  EXPECT_EQ(resolved("relative,neighbours").pair_columns, 0);
  EXPECT_EQ(resolved("relative,neighbours").pair_classes, 2);
  const ModelSpec scored = resolved("neighbours,pairs");
  EXPECT_EQ(scored.pair_columns, 3);
  EXPECT_TRUE(scored.attends_by_data());
  EXPECT_EQ(spec_from_json(to_json(scored)), scored);
  EXPECT_TRUE(at_length(scored, 50).has_value());
  EXPECT_TRUE(resolved("pairs").attends_by_data());
}

// A layer's own reach comes before the model's.
TEST(Spec, ReachBelongsToALayer) {
  ModelSpec spec;
  spec.kinds = "window reach=3,relative";
  spec.read_nodes = -2;
  spec = resolve(spec);
  EXPECT_EQ(spec.of_layer(0).reach, 3);
  EXPECT_EQ(spec.of_layer(1).reach, 8);
  EXPECT_EQ(spec_from_json(to_json(spec)), spec);
  EXPECT_EQ(at_length(spec, 20)->of_layer(1).reach, 8);
  spec.kinds = "window reach=3";
  EXPECT_EQ(resolve(spec).reach, 3);
  EXPECT_EQ(spec.nodes_read(8), 2);
  EXPECT_EQ(spec.first_read(8), 6);
}

TEST(Spec, JsonOfNewScoresHasAKeyOfItsOwn) {
  ModelSpec spec;
  apply_preset("scale-free", spec);
  spec = resolve(spec);
  const std::string text = to_json(spec);
  for (const char* part :
       {R"("scores":"unit")", R"("score_bias":"positions")", R"("rope":false)"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
  }
  EXPECT_EQ(text.find("weighting"), std::string::npos);
  EXPECT_EQ(spec_from_json(text), spec);
  std::string both = text;
  both.replace(both.find(R"("direct_attention":false)"), 24, R"("direct_attention":true)");
  const std::string message = message_of(ExitCode::data, [&] { spec_from_json(both); });
  EXPECT_NE(message.find("direct_attention and scores"), std::string::npos) << message;
}

TEST(Spec, StandardModelSizes) {
  ModelSpec spec;
  apply_preset("standard", spec);
  spec = resolve(spec);
  EXPECT_EQ(spec.input_size(), 10);
  EXPECT_EQ(spec.key_size(), 64);
  apply_preset("m3", spec);
  EXPECT_EQ(spec.input_size(), 1);
  EXPECT_EQ(spec.key_size(), 73);
}

TEST(Spec, JsonRoundTrip) {
  for (const Preset& preset : presets()) {
    for (const Encoding encoding : {Encoding::one_hot, Encoding::binary, Encoding::learned}) {
      ModelSpec spec;
      spec.encoding = encoding;
      spec.real_nodes = 5;
      spec.mlp_depth = 3;
      spec.pair_classes = 2;
      apply_preset(preset.name, spec);
      spec = resolve(spec);
      EXPECT_EQ(spec_from_json(to_json(spec)), spec) << preset.name;
    }
  }
}

// Files of other models stay as they were.
TEST(Spec, JsonNamesRoutesOnlyWhereThereAreAny) {
  ModelSpec spec = resolve(ModelSpec{});
  const std::string plain = to_json(spec);
  EXPECT_EQ(plain.find("route"), std::string::npos);
  for (const int places : {1, 3}) {
    spec = ModelSpec{};
    spec.real_nodes = 1 << 20;
    spec.scores = Scores::routes;
    spec.route_places = places;
    spec = resolve(spec);
    EXPECT_EQ(spec.encoding_size, (1 << 20) + 1);
    EXPECT_EQ(spec_from_json(to_json(spec)), spec);
  }
  const struct {
    const char *added, *part;
  } rows[] = {
      {"\"routed\":true", "'route_places' is missing"},
      {"\"route_places\":1", "unknown key 'route_places'"},
      {"\"routed\":false,\"route_places\":1", "routed = false"},
      {"\"routed\":1,\"route_places\":1", "routed = 1"},
      {"\"routed\":true,\"route_places\":0", "route_places = 0"},
  };
  for (const auto& row : rows) {
    std::string text = plain;
    text.insert(text.size() - 1, std::string(",") + row.added);
    const std::string message = message_of(ExitCode::data, [&] { spec_from_json(text); });
    EXPECT_NE(message.find(row.part), std::string::npos) << row.part << " in: " << message;
  }
}

TEST(Spec, JsonRefusesWhatIsWrong) {
  const std::string good = to_json(resolve(ModelSpec{}));
  const struct {
    const char *from, *to, *part;
  } rows[] = {
      {"\"width\":64", "\"width\":64.0", "width = 64.0"},
      {"\"width\":64", "\"width\":-64", "width = -64"},
      {"\"width\":64", "\"width\":99999999999", "width = 99999999999"},
      {"\"width\":64", "\"width\":\"64\"", "width = \"64\""},
      {"\"width\":64", "\"width\":64,\"width\":64", "appears twice"},
      {"\"width\":64", "\"widht\":64", "'width' is missing"},
      {"\"width\":64", "\"width\":64,\"dropout\":0", "unknown key 'dropout'"},
      {"\"rope\":false", "\"rope\":0", "rope = 0"},
      {"\"one_hot\"", "\"one_cold\"", "unknown encoding 'one_cold'"},
      {"\"positions\"", "7", "attention = 7"},
      {"\"heads\":2", "\"heads\":3", "do not divide"},
      {"{", "[", "not valid JSON"},
  };
  for (const auto& row : rows) {
    std::string text = good;
    const size_t at = text.find(row.from);
    ASSERT_NE(at, std::string::npos) << row.from;
    text.replace(at, std::string(row.from).size(), row.to);
    const std::string message = message_of(ExitCode::data, [&] { spec_from_json(text); });
    EXPECT_NE(message.find(row.part), std::string::npos) << row.to << " gives: " << message;
  }
  EXPECT_NE(message_of(ExitCode::data, [] { spec_from_json("3"); }), "");
}

TEST(Spec, FormulaPositions) {
  ModelSpec spec;
  spec.real_nodes = 4;
  const std::vector<double> one_hot = formula_positions(resolve(spec));
  for (int i = 0; i < 25; ++i) EXPECT_EQ(one_hot[i], i / 5 == i % 5 ? 1 : 0);

  spec.encoding = Encoding::binary;
  const std::vector<double> binary = formula_positions(resolve(spec));
  EXPECT_EQ(std::vector<double>(binary.begin() + 3, binary.begin() + 6),
            (std::vector<double>{1, -1, -1}));  // node 1, least significant bit first
  EXPECT_EQ(std::vector<double>(binary.begin() + 12, binary.end()),
            (std::vector<double>{-1, -1, 1}));  // node 4

  spec.encoding = Encoding::sinusoidal;
  spec.encoding_size = 4;
  const std::vector<double> waves = formula_positions(resolve(spec));
  EXPECT_DOUBLE_EQ(waves[3 * 4 + 0], std::sin(3.0));
  EXPECT_DOUBLE_EQ(waves[3 * 4 + 1], std::cos(3.0));
  EXPECT_DOUBLE_EQ(waves[3 * 4 + 2], std::sin(3.0 / 100));
  EXPECT_DOUBLE_EQ(waves[3 * 4 + 3], std::cos(3.0 / 100));
}

}  // namespace
}  // namespace posattn
