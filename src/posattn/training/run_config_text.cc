// A run's configuration as TOML and JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/text.h"
#include "posattn/base/toml.h"
#include "posattn/model/file/gpt2_weights.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/training/run_config.h"
#include "posattn/training/run_config_fields.h"

namespace posattn {
namespace {

// What readers of text refuse is, here, the file's fault, and it has a line.
template <class Read>
void check_in_file(const std::string& where, const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    throw error.as(ExitCode::configuration, error.problem() + " " + where);
  }
}

// ["positional", "standard"] as "positional,standard"; nothing where it is no list of texts.
std::string joined_texts(const toml::node& node) {
  const toml::array* array = node.as_array();
  std::string list;
  for (size_t k = 0; array != nullptr && k < array->size(); ++k) {
    const auto* text = array->get(k)->as_string();
    if (text == nullptr) return {};
    list += (k == 0 ? "" : ",") + text->get();
  }
  return list;
}

// A TOML value as set_field reads it. What TOML calls it must fit the field: text stays text, and
// only a number field takes an integer for a number.
std::string field_text(const toml::node& node, const FieldInfo& field, const std::string& where) {
  if (field.type == "text" && node.is_string()) return node.as_string()->get();
  if (field.type == "flag" && node.is_boolean()) return node.as_boolean()->get() ? "true" : "false";
  if ((field.type == "integer" || field.type == "number") && node.is_integer()) {
    return std::to_string(node.as_integer()->get());
  }
  if (field.type == "number" && node.is_floating_point()) {
    return fmt::format("{}", node.as_floating_point()->get());
  }
  const bool may_be_list = field.name == "architecture" || field.name == "kinds";
  if (const std::string list = joined_texts(node); may_be_list && !list.empty()) return list;
  const std::string expected = may_be_list               ? "text in quotes, or a list of such"
                               : field.type == "flag"    ? "true or false"
                               : field.type == "integer" ? "an integer"
                               : field.type == "number"  ? "a number"
                                                         : "text in quotes";
  throw Error(ExitCode::configuration, fmt::format("wrong type of '{}' {}", field.name, where),
              expected);
}

std::string seeds_text(const toml::node& node, const std::string& where) {
  if (!node.is_string() && !node.is_integer()) {
    throw Error(ExitCode::configuration, "wrong type of 'seeds' " + where,
                "text such as \"0..9\", or one integer");
  }
  std::string text =
      node.is_string() ? node.as_string()->get() : std::to_string(node.as_integer()->get());
  check_in_file(where, [&] { parse_seeds(text, "seeds"); });
  return text;
}

void check_architectures(const std::string& list) {
  for (const std::string& name : split_architectures(list)) {
    ModelSpec any;
    apply_preset(name, any);
  }
}

// Calls write(row, value, named) for each field. A file names a newer field only where it differs
// from the default that it came with, and `seeds`, if any, in the place of `seed`.
template <class Write>
void write_fields(const ConfigFile& file, const Write& write) {
  visit_config(file.config, [&](FieldRow row, const auto& value, const auto&... since) {
    if (file.seeds && row.name == "seed") {
      row.name = "seeds";
      write(row, *file.seeds, true);
    } else {
      write(row, value, !(... || (value == since.came_with)));
    }
  });
}

// JSON's escapes are a subset of TOML's basic strings.
std::string literal(const std::string& value) { return nlohmann::json(value).dump(); }
std::string literal(bool value) { return value ? "true" : "false"; }
std::string literal(int64_t value) { return std::to_string(value); }
std::string literal(double value) { return fmt::format("{}", value); }

// Whether the program wrote the file, rather than a person.
bool names_all_first_settings(const toml::table& table) {
  const auto first = nlohmann::json::parse(first_settings());
  return std::ranges::all_of(first.items(), [&](const auto& setting) {
    return table.contains(setting.key()) || (setting.key() == "seed" && table.contains("seeds"));
  });
}

}  // namespace

ConfigFile read_config_text(std::string_view text, const std::string& name,
                            const RunConfig& defaults) {
  const toml::table table = parse_toml(text, name, "lines of the form key = value");
  const bool complete = names_all_first_settings(table);
  ConfigFile file{.config = complete ? settings_of_files() : defaults,
                  .seeds = {},
                  .named = {},
                  .complete = complete};
  std::vector<std::string> known;
  for (const FieldInfo& field : config_fields()) known.push_back(field.name);
  known.emplace_back("seeds");
  for (const auto& [key, node] : table) {
    const std::string where = fmt::format("in {}:{}", name, node.source().begin.line);
    if (key.str() == "seeds") {
      file.seeds = seeds_text(node, where);
      continue;
    }
    const auto& fields = config_fields();
    const auto field = std::ranges::find(fields, key.str(), &FieldInfo::name);
    if (field == fields.end()) {
      throw unknown_name(ExitCode::configuration, "key", key.str(), known, where);
    }
    file.named.insert(field->name);
    const std::string value = field_text(node, *field, where);
    if (field->name == "architecture") check_in_file(where, [&] { check_architectures(value); });
    set_field(file.config, field->name, value, where);
  }
  // Tasks in the tokens of a GPT-2 exist where its files are.
  if (is_gpt2_folder(file.config.from)) offer_gpt2_tasks(file.config.from);
  return file;
}

ConfigFile read_config_file(const std::filesystem::path& path, const RunConfig& defaults) {
  return read_config_text(read_toml_file(path), path.string(), defaults);
}

std::string to_toml(const ConfigFile& file) {
  std::string text = fmt::format("# posattn train --config FILE repeats {}\n",
                                 file.seeds ? "these runs" : "this run");
  std::string_view section;
  write_fields(file, [&](const FieldRow& row, const auto& value, bool named) {
    if (row.section != section) text += fmt::format("\n# {}\n", row.section);
    section = row.section;
    if (named) text += fmt::format("{} = {}\n", row.name, literal(value));
  });
  return text;
}

std::string to_json(const ConfigFile& file) {
  auto object = nlohmann::ordered_json::object();
  write_fields(file, [&](const FieldRow& row, const auto& value, bool named) {
    if (named) object[row.name] = value;
  });
  return object.dump();
}

std::string to_toml(const RunConfig& config) { return to_toml(ConfigFile{config, {}}); }

std::string to_json(const RunConfig& config) { return to_json(ConfigFile{config, {}}); }

std::string_view first_settings() {
  return R"({"task":"cumulative-sum","architecture":"positional","seed":0,"length":8,
"variable-length":false,"width":64,"heads":2,"depth":0,"mlp-width":64,"mlp-depth":2,
"scratch-nodes":1,"encoding":"","encoding-size":0,"samples":30000,
"validation-samples":1000,"test-samples":1000,"range":2.0,"integers":false,
"data-seed":-1,"weight-seed":-1,"epochs":2001,"batch":1000,"lr":0.0005,
"optimiser":"adam","beta1":0.9,"beta2":0.999,"epsilon":1e-08,"weight-decay":0.0,
"clip":0.0,"schedule":"plateau","plateau-patience":50,"plateau-factor":0.9,
"plateau-threshold":0.0001,"plateau-floor":1e-06,"plateau-epsilon":1e-08,
"warmup-steps":0,"validate-every":10,"test-every":100,"test-scales":"1..10",
"checkpoint-every":30.0,"path":"auto","device":"auto","precision":"fp32"})";
}

RunConfig settings_of_files() {
  static const RunConfig settings = [] {
    RunConfig config;
    const auto first = nlohmann::ordered_json::parse(first_settings());
    for (const auto& [key, value] : first.items()) {
      set_field(config, key, value.is_string() ? value.get<std::string>() : value.dump());
    }
    visit_config(config, [](const FieldRow&, auto& value, const auto&... since) {
      ((value = since.came_with), ...);
    });
    return config;
  }();
  return settings;
}

}  // namespace posattn
