#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"
#include "posattn/model/spec/spec_fields.h"

namespace posattn {
namespace {

// No size of a spec may be larger (resolve has tighter limits), so none is cut off on its way to
// int.
constexpr uint64_t number_limit = (1 << 20) + 1;

Error bad_field(const char* name, const nlohmann::json& value, const std::string& expected) {
  constexpr auto replace = nlohmann::json::error_handler_t::replace;
  return Error(ExitCode::data, fmt::format("{} = {}", name, value.dump(-1, ' ', false, replace)),
               expected);
}

void read_field(const char* name, const nlohmann::json& value, int& field) {
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() ? value.get<uint64_t>() > number_limit
                                  : value.get<int64_t>() < -int64_t{number_limit})) {
    throw bad_field(name, value, fmt::format("a whole number of at most {}", number_limit));
  }
  field = value.get<int>();
}

void read_field(const char* name, const nlohmann::json& value, bool& field) {
  if (!value.is_boolean()) throw bad_field(name, value, "true or false");
  field = value.get<bool>();
}

template <class Enumeration>
requires std::is_enum_v<Enumeration>
void read_field(const char* name, const nlohmann::json& value, Enumeration& field) {
  if (!value.is_string()) throw bad_field(name, value, "a name");
  field = from_name<Enumeration>(value.get<std::string>());
}

void read_field(const char* name, const nlohmann::json& value, std::string& field) {
  if (!value.is_string()) throw bad_field(name, value, "text");
  field = value.get<std::string>();
}

// What files of 0.1.0 and 0.2.0 say in place of a choice.
struct Flag {
  const char* name;
  Scores scores;
  bool always;  // else only where it is true
};
constexpr Flag score_flags[] = {{"direct_attention", Scores::direct, true},
                                {"routed", Scores::routes, false},
                                {"relative_attention", Scores::distance, false}};
constexpr const char* rotation_flag = "rope";

bool read_flag(const nlohmann::json& object, const char* name, bool needed) {
  const auto found = object.find(name);
  bool value = false;
  if (found != object.end()) {
    read_field(name, *found, value);
  } else if (needed) {
    throw Error(ExitCode::data, fmt::format("'{}' is missing", name));
  }
  return value;
}

// Adds the flags' names to `known`.
void read_choices(const nlohmann::json& object, ModelSpec& spec, std::vector<std::string>& known) {
  const char* said = nullptr;
  for (const Flag& flag : score_flags) {
    known.emplace_back(flag.name);
    if (!read_flag(object, flag.name, flag.always)) continue;
    if (said != nullptr) {
      throw Error(ExitCode::data, fmt::format("{} and {}", said, flag.name), "one of the two");
    }
    said = flag.name;
    spec.scores = flag.scores;
  }
  known.emplace_back(rotation_flag);
  spec.rotation = read_flag(object, rotation_flag, true) ? Rotation::rope : Rotation::none;
  known.emplace_back("scores");
  const auto found = object.find("scores");
  if (found == object.end()) return;
  if (said != nullptr) {
    throw Error(ExitCode::data, fmt::format("{} and scores", said), "one of the two");
  }
  read_field("scores", *found, spec.scores);
}

// The order in which files name the fields of 0.2.0: it is part of a file's bytes, and so of its
// hash. Later fields follow in the order of the list.
constexpr const char* order_of_files[] = {"real_nodes",
                                          "scratch_nodes",
                                          "data_columns",
                                          "output_columns",
                                          "attention",
                                          "positions_in_input",
                                          "encoding",
                                          "encoding_size",
                                          "rope",
                                          "direct_attention",
                                          "width",
                                          "heads",
                                          "depth",
                                          "mlp_width",
                                          "mlp_depth",
                                          "routed",
                                          "route_places",
                                          "biases",
                                          "relative_attention",
                                          "reach",
                                          "causal",
                                          "split_heads",
                                          "join",
                                          "normalisation",
                                          "activation",
                                          "vocabulary"};

}  // namespace

std::string to_json(const ModelSpec& spec) {
  nlohmann::ordered_json object;
  for (const char* name : order_of_files) object[name] = nullptr;
  const auto write = [&](const char* name, const auto& field) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(field)>>) {
      object[name] = to_string(field);
    } else {
      object[name] = field;
    }
  };
  const auto visit = [&](const char* name, const auto& field, auto origin, const auto&...) {
    bool named = !std::is_same_v<decltype(origin), SinceFlags>;
    if constexpr (std::is_same_v<decltype(origin), SinceRouted>) named = spec.routed();
    if constexpr (requires { origin.came_with; }) named = field != origin.came_with;
    if (named) {
      write(name, field);
    } else {
      object.erase(name);
    }
  };
  visit_fields(spec, visit);
  object[rotation_flag] = spec.rotation == Rotation::rope;
  bool said = spec.scores == Scores::dot;
  for (const Flag& flag : score_flags) {
    const bool holds = spec.scores == flag.scores;
    said = said || holds;
    if (holds || flag.always) {
      object[flag.name] = holds;
    } else {
      object.erase(flag.name);
    }
  }
  if (!said) object["scores"] = to_string(spec.scores);
  return object.dump();
}

ModelSpec spec_from_json(std::string_view text) try {
  const nlohmann::json object = parse_strict_json(text, "text");
  if (!object.is_object()) throw Error(ExitCode::data, "not a JSON object");
  ModelSpec spec;
  std::vector<std::string> known;
  const bool routed = object.contains("routed");
  const auto visit = [&](const char* name, auto& field, auto origin, const auto&...) {
    using Origin = decltype(origin);
    if constexpr (std::is_same_v<Origin, SinceFlags>) return;
    if constexpr (std::is_same_v<Origin, SinceRouted>) {
      if (!routed) return;
    }
    known.emplace_back(name);
    const auto found = object.find(name);
    if (found != object.end()) return read_field(name, *found, field);
    if constexpr (requires { origin.came_with; }) {
      field = origin.came_with;
    } else {
      throw Error(ExitCode::data, fmt::format("'{}' is missing", name));
    }
  };
  visit_fields(spec, visit);
  read_choices(object, spec, known);
  if (routed && !spec.routed()) {
    throw bad_field("routed", false, "true, or neither routed nor route_places");
  }
  for (const auto& item : object.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      throw unknown_name(ExitCode::data, "key", item.key(), known);
    }
  }
  return resolve(spec);
} catch (const Error& error) {  // whatever is wrong, it is the file that is wrong
  throw Error(ExitCode::data, "model spec: " + error.problem(), error.expected(), error.hint());
}

}  // namespace posattn
