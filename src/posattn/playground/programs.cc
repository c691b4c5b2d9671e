// Programs that a page compiles, and what it is told of them.
#include <nlohmann/json.hpp>

#include "posattn/playground/played_program.h"
#include "posattn/playground/playground.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/lowering/network_plan.h"

namespace posattn::playground {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const Receive& receive) {
  Json json = {{"name", receive.name}, {"word", receive.word}};
  if (receive.route.is_sent()) {
    json["destination"] = receive.route.destination;
  } else if (receive.route.is_weighted()) {
    json["weighted"] = receive.route.weighted;
  } else {
    json["sources"] = receive.route.sources;
  }
  return json;
}

Json json_of(const StaticProgram& program, const Round& round) {
  Json receives = Json::array();
  for (const Receive& receive : round.receives) receives.push_back(json_of(receive));
  Json sets = Json::array();
  for (const Update& update : round.updates) sets.push_back(update.word);
  return {{"lines", round.lines},
          {"origin", round.origin},
          {"sets", sets},
          {"updates", describe_updates(program, round)},
          {"receives", receives}};
}

Json json_of(const ProgramParameter& parameter) {
  Json json = {{"name", parameter.name}, {"value", parameter.value}, {"whole", parameter.whole}};
  if (parameter.low) json["low"] = *parameter.low;
  if (parameter.high) json["high"] = *parameter.high;
  return json;
}

Json json_of(const StaticProgram& program) {
  Json words = Json::array(), rounds = Json::array();
  for (const Word& word : program.words) {
    words.push_back({{"name", word.name},
                     {"type", to_string(word.type)},
                     {"own", word.name.find(' ') == std::string::npos},
                     {"starts", !word.initial.empty()}});
  }
  for (const int word : program.inputs) words[word]["starts"] = true;
  for (const Round& round : program.rounds) rounds.push_back(json_of(program, round));
  return {{"words", words},
          {"inputs", program.inputs},
          {"outputs", program.outputs},
          {"rounds", rounds}};
}

Json json_of(const PlayedProgram& played) {
  const StaticProgram& program = played.routed.program;
  const ModelSpec& spec = played.compiled.spec;
  Json json = {{"name", program.name}, {"task", program.task}, {"processors", program.processors}};
  json.update(json_of(program));
  // The switches of messages come after the inputs that people give.
  json["inputs"].erase(json["inputs"].begin() + static_cast<int>(played.written.inputs.size()),
                       json["inputs"].end());
  for (size_t r = 0; r < program.rounds.size(); ++r) {
    json["rounds"][r]["layers"] = held_words(played.plan, static_cast<int>(r)).layers;
  }
  json["promises"] = Json::array();
  for (const auto& [promise, first, count] : played.written.promises) {
    json["promises"].push_back(
        {{"promise", to_string(promise)}, {"first", first}, {"count", count}});
  }
  json["written"] = played.written.sends() ? json_of(played.written) : Json();
  json.update({{"depth", spec.depth},
               {"heads", spec.heads},
               {"width", spec.width},
               {"mlp_width", spec.mlp_width},
               {"weights", played.compiled.parameters.layout().parameter_count()}});
  return json;
}

int32_t compile_program(const char* text, int32_t length, const char* parameters,
                        double sharpness) {
  const std::string name = "program.par";
  std::vector<std::string> warnings;
  TextOptions options{.settings = parse_settings(parameters)};
  const std::vector<ProgramParameter> known = text_parameters(text, name, length, options);
  options.warnings = &warnings;
  StaticProgram written = compile_text(text, name, length, options);
  RoutedProgram routed = route_messages(written, Routing::automatic);
  NetworkPlan plan = plan_network(routed.program);
  CompileOptions choices;
  choices.dense = sharpness > 0;
  if (choices.dense) choices.sharpness = sharpness;
  choices.program = text;
  Model model = compile(plan, choices);
  auto played = std::make_unique<PlayedProgram>(
      PlayedProgram{std::move(written), std::move(routed), std::move(plan), model, model});
  Json json = json_of(*played);
  json["parameters"] = Json::array();
  for (const ProgramParameter& parameter : known) json["parameters"].push_back(json_of(parameter));
  json["warnings"] = warnings;
  answer().text = json.dump();
  return programs().add(std::move(played));
}

}  // namespace

Handles<PlayedProgram>& programs() {
  static Handles<PlayedProgram> all("program");
  return all;
}

}  // namespace posattn::playground

using namespace posattn::playground;

int32_t play_compile(const char* text, int32_t length, const char* parameters, double sharpness) {
  return answered([&] { return compile_program(text, length, parameters, sharpness); });
}

void play_free_program(int32_t program) { programs().remove(program); }
