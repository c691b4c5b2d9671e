#include "posattn/results/manifest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "posattn/base/enum_names.h"
#include "posattn/base/error.h"
#include "posattn/base/json_fields.h"
#include "posattn/base/version.h"

namespace posattn {
namespace {

using Json = nlohmann::ordered_json;

constexpr EnumNames<RunStatus, 5> status_names = {{{RunStatus::running, "running"},
                                                   {RunStatus::done, "done"},
                                                   {RunStatus::diverged, "diverged"},
                                                   {RunStatus::interrupted, "interrupted"},
                                                   {RunStatus::failed, "failed"}}};

Json parsed_or_null(const std::string& json) { return json.empty() ? Json() : Json::parse(json); }

}  // namespace

std::string_view to_string(RunStatus status) { return name_of(status_names, status); }
RunStatus run_status_from(std::string_view name) {
  return value_of(status_names, ExitCode::data, "status", name);
}

bool has_ended(RunStatus status) {
  return status == RunStatus::done || status == RunStatus::diverged;
}

nlohmann::ordered_json build_json() {
  const BuildInfo& info = build_info();
  return {{"version", info.version},
          {"commit", info.commit},
          {"compiler", info.compiler},
          {"flags", info.flags},
          {"build_type", info.build_type}};
}

std::string to_json(const Manifest& manifest) {
  Json json;
  json["status"] = to_string(manifest.status);
  if (!manifest.message.empty()) json["message"] = manifest.message;
  json["epoch"] = manifest.epoch;
  json["final"] = parsed_or_null(manifest.final_metrics);
  json["started"] = manifest.started;
  json["ended"] = manifest.ended.empty() ? Json() : Json(manifest.ended);
  json["command_line"] = manifest.command_line;
  json["configuration"] = parsed_or_null(manifest.configuration);
  json["seeds"] = manifest.seeds;
  json["engine"] = manifest.engine;
  json["build"] = build_json();
  json["libraries"] = manifest.libraries;
  // A command line may hold any bytes; what is not UTF-8 is replaced.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Manifest manifest_from_json(std::string_view text, std::string_view name) {
  const nlohmann::json json = parse_strict_json(text, name);
  const JsonFields fields(json, std::string(name));
  Manifest manifest;
  manifest.status = run_status_from(fields.text("status"));
  if (fields.has("message")) manifest.message = fields.text("message");
  manifest.epoch = fields.integer("epoch");
  if (!fields.at("final").is_null()) manifest.final_metrics = fields.at("final").dump();
  manifest.started = fields.text("started");
  if (!fields.at("ended").is_null()) manifest.ended = fields.text("ended");
  manifest.command_line = fields.text("command_line");
  manifest.configuration = fields.at("configuration").dump();
  manifest.seeds = fields.texts("seeds");
  manifest.engine = fields.texts("engine");
  manifest.libraries = fields.texts("libraries");
  return manifest;
}

std::string utc_now() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

}  // namespace posattn
