// The architectures by name: which fields each decides.
#include <fmt/format.h>

#include "posattn/base/error.h"
#include "posattn/model/spec.h"

namespace posattn {
namespace {

// The kind of scores that a preset names.
enum class ScoreKind { query_key, rope, direct, relative };

struct PresetRow {
  const char* name;
  const char* description;
  AttentionSource attention;
  bool positions_in_input;
  ScoreKind scores;
  Biases biases = Biases::all;
};

// The plain names stand before their m-numbers, so that preset_name finds them first.
constexpr PresetRow preset_rows[] = {
    {"positional", "attention from positions only, values alone in the input (M5)",
     AttentionSource::positions, false, ScoreKind::query_key},
    {"standard", "attention from the data, [values | positions] in the input (M0)",
     AttentionSource::data, true, ScoreKind::query_key},
    {"positional-direct", "a learned score matrix per head, values alone in the input",
     AttentionSource::positions, false, ScoreKind::direct},
    {"standard-rope", "the standard model with queries and keys rotated by node index",
     AttentionSource::data, true, ScoreKind::rope},
    {"m0", "the same as standard", AttentionSource::data, true, ScoreKind::query_key},
    {"m1", "attention from positions, [values | positions] in the input",
     AttentionSource::positions, true, ScoreKind::query_key},
    {"m2", "attention from the data, values alone in the input: no positions at all",
     AttentionSource::data, false, ScoreKind::query_key},
    {"m3", "attention from [data | positions] in every layer, values alone in the input",
     AttentionSource::data_and_positions, false, ScoreKind::query_key},
    {"m4", "attention from the data with RoPE, values alone in the input", AttentionSource::data,
     false, ScoreKind::rope},
    {"m5", "the same as positional", AttentionSource::positions, false, ScoreKind::query_key},
    {"relative", "a learned score per head and distance, values alone in the input",
     AttentionSource::positions, false, ScoreKind::relative},
    {"homogeneous", "positional without biases: f(c x) = c f(x), exactly",
     AttentionSource::positions, false, ScoreKind::query_key, Biases::none},
    {"standard-no-bias", "standard without biases: the control of homogeneous",
     AttentionSource::data, true, ScoreKind::query_key, Biases::none},
};

// The fields that a preset decides.
ModelSpec with_preset(const PresetRow& row, ModelSpec spec) {
  spec.attention = row.attention;
  spec.positions_in_input = row.positions_in_input && !spec.positions_added;
  spec.positions_added = row.positions_in_input && spec.positions_added;
  spec.rope = row.scores == ScoreKind::rope;
  spec.direct_attention = row.scores == ScoreKind::direct;
  spec.relative_attention = row.scores == ScoreKind::relative;
  spec.biases = row.biases;
  return spec;
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> list = [] {
    std::vector<Preset> all;
    for (const PresetRow& row : preset_rows) {
      // m0 and m5 are second names; the authors' standard model has no RoPE.
      const std::string name = row.name;
      const bool shown = name != "m0" && name != "m5" && name != "standard-rope" &&
                         row.biases == Biases::all && row.scores != ScoreKind::relative;
      all.push_back({name, row.description, shown});
    }
    return all;
  }();
  return list;
}

void apply_preset(std::string_view name, ModelSpec& spec) {
  std::vector<std::string> known;
  for (const PresetRow& row : preset_rows) {
    if (row.name == name) {
      spec = with_preset(row, spec);
      return;
    }
    known.emplace_back(row.name);
  }
  throw unknown_name(ExitCode::usage, "architecture", name, known);
}

std::string preset_name(const ModelSpec& spec) {
  for (const PresetRow& row : preset_rows) {
    if (with_preset(row, spec) == spec) return row.name;
  }
  return "custom";
}

}  // namespace posattn
