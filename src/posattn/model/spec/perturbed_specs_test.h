// Specs that differ from a given one in one field: what an engine that does not know all fields of
// a spec must refuse.
#pragma once

#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "posattn/base/error.h"
#include "posattn/model/plan.h"
#include "posattn/model/spec/spec_fields.h"

namespace posattn::testing {

// Every other sensible value of a field.
inline std::vector<bool> other_values(bool value) { return {!value}; }
inline std::vector<int> other_values(int value) {
  std::set<int> values = {0, 1, 2, value - 1, value + 1};
  values.erase(value);
  return {values.begin(), values.end()};
}
// Of the two fields that are text: loops, or kinds.
inline std::vector<std::string> other_values(const std::string& kinds) {
  if (kinds == "1") return {"2", "log2"};
  if (!kinds.empty()) return {""};
  return {"relative,data", "positions,cosine", "direct,data source-scale=node"};
}
template <class Enumeration>
requires std::is_enum_v<Enumeration> std::vector<Enumeration> other_values(Enumeration value) {
  std::vector<Enumeration> values;
  for (int i = 0; to_string(static_cast<Enumeration>(i)) != "?"; ++i) {
    if (static_cast<Enumeration>(i) != value) values.push_back(static_cast<Enumeration>(i));
  }
  return values;
}

struct PerturbedSpec {
  std::string field;
  ModelSpec spec;  // resolved
};

// Resolved specs that differ from `base` in one field each; sizes that follow from others
// (encoding_size, reach) are filled in again. What resolve or plan_of refuses is left out.
inline std::vector<PerturbedSpec> perturbed_specs(const ModelSpec& base) {
  std::vector<PerturbedSpec> result;
  const auto add = [&](const std::string& field, ModelSpec spec) {
    if (field != "encoding_size") spec.encoding_size = 0;
    if (field != "reach") spec.reach = 0;
    if (field == "attention" && spec.attention == AttentionSource::positions) {
      spec.source_scale = SourceScale::none;  // which the data alone has
      spec.score_bias = ScoreBias::none;
      if (spec.scores == Scores::unit) spec.scores = Scores::dot;
    }
    try {
      spec = resolve(spec);
      plan_of(spec);
    } catch (const Error&) {
      return;
    }
    if (spec != base) result.push_back({field, spec});
  };
  visit_fields(base, [&](const char* field, const auto& value, const auto&...) {
    for (const auto& other : other_values(value)) {
      ModelSpec spec = base;
      visit_fields(spec, [&](const char* name, auto& place, const auto&...) {
        if constexpr (std::is_same_v<std::decay_t<decltype(place)>,
                                     std::decay_t<decltype(value)>>) {
          if (std::string_view(name) == field) place = other;
        }
      });
      add(field, spec);
    }
  });
  return result;
}

// The fields of perturbed specs that these bases leave out.
inline std::set<std::string> fields_not_perturbed(const std::vector<ModelSpec>& bases) {
  std::set<std::string> fields;
  visit_fields(bases.front(),
               [&](const char* name, const auto&, const auto&...) { fields.insert(name); });
  for (const ModelSpec& base : bases) {
    for (const PerturbedSpec& perturbed : perturbed_specs(base)) fields.erase(perturbed.field);
  }
  return fields;
}

}  // namespace posattn::testing
