// Programs that a page compiles, and what it is told of them.
#include <limits>
#include <nlohmann/json.hpp>

#include "posattn/base/error.h"
#include "posattn/base/random.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/file/model_file.h"
#include "posattn/model/hooks.h"
#include "posattn/playground/answer.h"
#include "posattn/playground/playground.h"
#include "posattn/programs/checking/program_task.h"
#include "posattn/programs/checking/verify.h"
#include "posattn/programs/form/static_program.h"
#include "posattn/programs/language/language.h"
#include "posattn/programs/lowering/compile.h"
#include "posattn/programs/lowering/network_plan.h"
#include "posattn/programs/messages/route_messages.h"

namespace posattn::playground {
namespace {

using Json = nlohmann::ordered_json;

// A program that a page holds: as it is written, as its network carries it out, and its weights.
struct PlayedProgram {
  StaticProgram written;
  RoutedProgram routed;  // without messages: what the network carries out
  NetworkPlan plan;
  Model compiled, model;  // as compiled, and with noise
};

Handles<PlayedProgram>& programs() {
  static Handles<PlayedProgram> all("program");
  return all;
}

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

// What a page does to a program's weights: here it tries them against the program.
int32_t verify_program(const PlayedProgram& played, int32_t samples, int32_t seed) {
  VerifyRequest request;
  request.model = &played.model;
  request.program = &played.written;
  request.samples = samples;
  request.seed = static_cast<uint64_t>(seed);
  request.any_weights = true;  // a page adds noise to them
  const Verification found = verify(request);
  Json json = {{"holds", found.holds()}, {"decided", found.is_decided()}};
  int64_t mismatches = 0;
  for (const ScaleVerification& scale : found.scales) {
    mismatches += scale.mismatches;
    json["scales"].push_back({{"c", scale.c},
                              {"samples", scale.samples},
                              {"mismatches", scale.mismatches},
                              {"largest_error", scale.largest_error},
                              {"largest_bound", scale.largest_bound},
                              {"mse", scale.mse}});
  }
  json["counter_example"] = nullptr;
  if (const auto& example = found.counter_example) {
    json["counter_example"] = {{"c", example->c},
                               {"input", example->input},
                               {"expected", example->expected},
                               {"found", example->found},
                               {"against", example->against}};
  }
  answer().text = json.dump();
  return static_cast<int32_t>(mismatches);
}

// Zeros stay, and with them what is connected to what.
void set_noise(PlayedProgram& played, double noise, int32_t seed) {
  if (!(noise >= 0) || noise > 100) throw Error(ExitCode::usage, "the noise", "from 0 to 100");
  played.model = played.compiled;
  if (noise == 0) return;
  Parameters<float>& parameters = played.model.parameters;
  uint32_t index = 0;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    RandomStream random(static_cast<uint64_t>(seed), Purpose::initial_values, 2, index++);
    if (!tensor.trained) continue;
    for (float& value : parameters.slice(tensor)) {
      if (value != 0) value = static_cast<float>(value * (1 + noise * random.normal()));
    }
  }
}

// Inputs that go through a program and its network, and what each round makes of them.

constexpr int64_t most_numbers = 4'000'000;  // of one answer: more than a page can show

std::span<const double> checked_input(const StaticProgram& program, const double* row,
                                      int32_t count) {
  const auto expected = static_cast<int64_t>(program.inputs.size()) * program.processors;
  if (count != expected) {
    throw Error(ExitCode::data, "an input of " + std::to_string(count) + " numbers",
                std::to_string(expected) + ", processor after processor");
  }
  const std::span<const double> input(row, static_cast<size_t>(count));
  if (const auto fault = input_fault(program, input)) {
    throw Error(ExitCode::data, fault->problem, fault->expected);
  }
  return input;
}

// An input of the program as it is written, as one of the network.
std::vector<double> network_input(const PlayedProgram& played, const double* row, int32_t count) {
  return routed_inputs<double>(played.written, played.routed,
                               checked_input(played.written, row, count), 1);
}

void check_size(const StaticProgram& program) {
  const auto moments = static_cast<int64_t>(program.rounds.size()) + 1;
  if (moments * static_cast<int64_t>(program.words.size()) * program.processors > most_numbers) {
    throw Error(ExitCode::usage, "the words of so large a program", "fewer processors or rounds");
  }
}

void add_words(const PlayedProgram& played, const double* row, int32_t count) {
  const StaticProgram& program = played.routed.program;
  check_size(program);
  const auto words = static_cast<int64_t>(program.words.size());
  const auto rounds = static_cast<int>(program.rounds.size());
  const std::vector<double> input = network_input(played, row, count);
  const std::vector<double> exact = trace_static(program, input);
  const std::vector<float> given(input.begin(), input.end());
  const Activations found =
      activations_of(played.model.spec, played.model.parameters,
                     {.inputs = given, .samples = 1, .real_nodes = program.processors});
  for (int round = -1; round < rounds; ++round) {
    const HeldWords held = held_words(played.plan, round);
    for (int i = 0; i < program.processors; ++i) {
      for (int64_t w = 0; w < words; ++w) {
        answer().numbers.push_back(
            exact[((round + 1) * int64_t{program.processors} + i) * words + w]);
        answer().numbers.push_back(held.columns[w] >= 0
                                       ? found.state(held.depth, i, held.columns[w])
                                       : std::numeric_limits<double>::quiet_NaN());
      }
    }
  }
}

void add_outputs(const PlayedProgram& played, const double* row, int32_t count) {
  const std::vector<double> input = network_input(played, row, count);
  const std::vector<float> given(input.begin(), input.end());
  const std::vector<float> found = predict_rows(played.model, given, 1);
  const std::vector<double> exact =
      run_static<double>(played.written, std::span(row, static_cast<size_t>(count)), 1);
  answer().numbers.assign(found.begin(), found.end());
  answer().numbers.insert(answer().numbers.end(), exact.begin(), exact.end());
}

void add_input(const PlayedProgram& played, double c, int32_t seed) {
  if (!(c > 0) || c > 1e6) throw Error(ExitCode::usage, "c of an input", "above 0, up to 1e6");
  const StaticProgram& program = played.written;
  std::vector<float> input(program.inputs.size() * program.processors);
  RandomStream random(static_cast<uint64_t>(seed), Purpose::evaluation_data, 0, 0);
  ProgramTask(program).draw(random, test_range(2, c, false), program.length, input);
  answer().numbers.assign(input.begin(), input.end());
}

}  // namespace

}  // namespace posattn::playground

using namespace posattn::playground;

int32_t play_compile(const char* text, int32_t length, const char* parameters, double sharpness) {
  return answered([&] { return compile_program(text, length, parameters, sharpness); });
}

void play_free_program(int32_t program) { programs().remove(program); }

int32_t play_verify(int32_t program, int32_t samples, int32_t seed) {
  return answered([&] { return verify_program(programs().at(program), samples, seed); });
}

int32_t play_noise(int32_t program, double noise, int32_t seed) {
  return answered([&] {
    set_noise(programs().at(program), noise, seed);
    return 0;
  });
}

int32_t play_draw(int32_t program, double c, int32_t seed) {
  return answered([&] {
    add_input(programs().at(program), c, seed);
    return 0;
  });
}

int32_t play_words(int32_t program, const double* row, int32_t count) {
  return answered([&] {
    add_words(programs().at(program), row, count);
    return 0;
  });
}

int32_t play_trace(int32_t program, const double* row, int32_t count) {
  return answered([&] {
    const StaticProgram& written = programs().at(program).written;
    check_size(written);
    answer().numbers = trace_static(written, checked_input(written, row, count));
    return 0;
  });
}

int32_t play_run(int32_t program, const double* row, int32_t count) {
  return answered([&] {
    add_outputs(programs().at(program), row, count);
    return 0;
  });
}
