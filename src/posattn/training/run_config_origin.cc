#include "posattn/training/run_config_origin.h"

#include <nlohmann/json.hpp>

#include "posattn/training/run_config_fields.h"

namespace posattn {

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
