#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "posattn/base/error.h"
#include "posattn/base/strict_json.h"
#include "posattn/model/spec.h"

namespace posattn {
namespace {

// No size of a spec may be larger (resolve has tighter limits), so none is cut off on its way to
// int.
constexpr uint64_t number_limit = (1 << 20) + 1;

// Names every field once; writing and reading JSON both go through it.
template <class Spec, class Visitor>
void visit_fields(Spec& spec, Visitor&& visit) {
  visit("real_nodes", spec.real_nodes);
  visit("scratch_nodes", spec.scratch_nodes);
  visit("data_columns", spec.data_columns);
  visit("output_columns", spec.output_columns);
  visit("attention", spec.attention);
  visit("positions_in_input", spec.positions_in_input);
  visit("encoding", spec.encoding);
  visit("encoding_size", spec.encoding_size);
  visit("rope", spec.rope);
  visit("direct_attention", spec.direct_attention);
  visit("width", spec.width);
  visit("heads", spec.heads);
  visit("depth", spec.depth);
  visit("mlp_width", spec.mlp_width);
  visit("mlp_depth", spec.mlp_depth);
}

// What only files of routed models have.
template <class Spec, class Visitor>
void visit_routes(Spec& spec, Visitor&& visit) {
  visit("routed", spec.routed);
  visit("route_places", spec.route_places);
}

Error bad_field(const char* name, const nlohmann::json& value, const std::string& expected) {
  constexpr auto replace = nlohmann::json::error_handler_t::replace;
  return Error(ExitCode::data, fmt::format("{} = {}", name, value.dump(-1, ' ', false, replace)),
               expected);
}

void read_field(const char* name, const nlohmann::json& value, int& field) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > number_limit) {
    throw bad_field(name, value, fmt::format("a whole number from 0 to {}", number_limit));
  }
  field = value.get<int>();
}

void read_field(const char* name, const nlohmann::json& value, bool& field) {
  if (!value.is_boolean()) throw bad_field(name, value, "true or false");
  field = value.get<bool>();
}

void read_field(const char* name, const nlohmann::json& value, AttentionSource& field) {
  if (!value.is_string()) throw bad_field(name, value, "a name");
  field = attention_source_from(value.get<std::string>());
}

void read_field(const char* name, const nlohmann::json& value, Encoding& field) {
  if (!value.is_string()) throw bad_field(name, value, "a name");
  field = encoding_from(value.get<std::string>());
}

}  // namespace

std::string to_json(const ModelSpec& spec) {
  nlohmann::ordered_json object;
  const auto write = [&](const char* name, const auto& field) {
    if constexpr (std::is_enum_v<std::decay_t<decltype(field)>>) {
      object[name] = to_string(field);
    } else {
      object[name] = field;
    }
  };
  visit_fields(spec, write);
  if (spec.routed) visit_routes(spec, write);
  return object.dump();
}

ModelSpec spec_from_json(std::string_view text) try {
  const nlohmann::json object = parse_strict_json(text, "text");
  if (!object.is_object()) throw Error(ExitCode::data, "not a JSON object");
  ModelSpec spec;
  std::vector<std::string> known;
  const auto read = [&](const char* name, auto& field) {
    known.emplace_back(name);
    const auto found = object.find(name);
    if (found == object.end()) {
      throw Error(ExitCode::data, fmt::format("'{}' is missing", name));
    }
    read_field(name, *found, field);
  };
  visit_fields(spec, read);
  if (object.contains("routed")) {
    visit_routes(spec, read);
    if (!spec.routed) throw bad_field("routed", false, "true, or neither routed nor route_places");
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
