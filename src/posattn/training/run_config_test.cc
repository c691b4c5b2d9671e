#include "posattn/training/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "posattn/base/error.h"
#include "posattn/kernels/cuda/device_info.h"
#include "posattn/training/run_config_fields.h"

namespace posattn {
namespace {

using ::testing::HasSubstr;

// The code and text of the error that `action` throws.
template <class Action>
std::pair<ExitCode, std::string> error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::done, "no error"};
}

std::pair<ExitCode, std::string> error_of_toml(const std::string& text) {
  return error_of([&] { read_config_text(text, "sweep.toml"); });
}

TEST(RunConfig, EveryFieldIsListedOnceWithHelp) {
  std::set<std::string> names;
  for (const FieldInfo& field : config_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_FALSE(field.section.empty()) << field.name;
    EXPECT_EQ(get_field(RunConfig{}, field.name), field.default_value);
  }
  EXPECT_EQ(get_field(RunConfig{}, "batch"), "1000");
  EXPECT_EQ(get_field(RunConfig{}, "lr"), "0.0005");
}

// Sets every field to something else than its default, so no field is lost on the way.
RunConfig unusual_config() {
  RunConfig config;
  for (const FieldInfo& field : config_fields()) {
    std::string value = "sum \"x\"\\\n";
    if (field.type == "flag") value = "true";
    if (field.type == "integer") value = "3";
    if (field.type == "number") value = "0.3";
    if (field.accepts.starts_with("one of: ")) {  // the last choice is no field's default
      value = field.accepts.substr(field.accepts.rfind(' ') + 1);
    }
    if (field.name == "architecture") value = "m3";  // of which a file may have known ones alone
    set_field(config, field.name, value);
    EXPECT_NE(get_field(config, field.name), field.default_value) << field.name;
  }
  return config;
}

TEST(RunConfig, TomlGivesBackTheSameConfiguration) {
  for (const RunConfig& config : {RunConfig{}, unusual_config()}) {
    const ConfigFile file = read_config_text(to_toml(config), "config.toml");
    EXPECT_EQ(file.config, config);
    EXPECT_FALSE(file.seeds.has_value());
  }
}

TEST(RunConfig, SeedsStandInThePlaceOfTheSeed) {
  const ConfigFile several{RunConfig{}, "3,5"};
  const ConfigFile file = read_config_text(to_toml(several), "config.toml");
  EXPECT_EQ(file.config, several.config);
  EXPECT_EQ(file.seeds, several.seeds);
  const nlohmann::json json = nlohmann::json::parse(to_json(several));
  EXPECT_EQ(json.at("seeds"), "3,5");
  EXPECT_FALSE(json.contains("seed"));
}

TEST(RunConfig, JsonHasEveryFieldWithItsType) {
  const nlohmann::json json = nlohmann::json::parse(to_json(RunConfig{}));
  EXPECT_EQ(json.size(), nlohmann::json::parse(first_settings()).size());
  EXPECT_EQ(nlohmann::json::parse(to_json(unusual_config())).size(), config_fields().size());
  EXPECT_EQ(json["epochs"], 2001);
  EXPECT_EQ(json["lr"], 5e-4);
  EXPECT_EQ(json["task"], "cumulative-sum");
  EXPECT_EQ(json["integers"], false);
}

// What 0.1.0 wrote stays byte for byte, so that keys of recorded runs stay; and settings that came
// later mean, in its files, the default that they came with.
TEST(RunConfig, NewerSettingsChangeNoOlderFile) {
  std::string first(first_settings());
  std::erase(first, '\n');
  EXPECT_EQ(to_json(settings_of_files()), first);
  RunConfig other;
  other.test_lengths = "4,8";
  EXPECT_EQ(nlohmann::json::parse(to_json(other)).at("test-lengths"), "4,8");
  EXPECT_THAT(to_toml(other), ::testing::HasSubstr("test-lengths = \"4,8\""));
  EXPECT_EQ(to_toml(RunConfig{}).find("test-lengths"), std::string::npos);
  // A file that the program wrote does not take today's defaults, a person's does.
  EXPECT_EQ(read_config_text(to_toml(RunConfig{}), "config.toml", other).config, RunConfig{});
  EXPECT_EQ(read_config_text("epochs = 5\n", "mine.toml", other).config.test_lengths, "4,8");
}

// Keys of runs are hashes of this text.
TEST(RunConfig, ModelSettingsKeepTheirNamesAndOrder) {
  RunConfig config;
  config.depth = 3;
  config.encoding = Encoding::one_hot;
  config.causal = config.split_heads = config.positions_added = true;
  config.tied_output = config.fixed_tokens = true;
  config.join = Join::add;
  config.normalisation = Normalisation::before;
  config.activation = Activation::gelu_tanh;
  EXPECT_THAT(to_json(config),
              HasSubstr(R"("length":8,"variable-length":false,"width":64,"heads":2,"depth":3,)"
                        R"("mlp-width":64,"mlp-depth":2,"scratch-nodes":1,"encoding":"one-hot",)"
                        R"("encoding-size":0,"causal":true,"split-heads":true,"join":"add",)"
                        R"("normalisation":"before","activation":"gelu-tanh","positions":"added",)"
                        R"("tied-output":true,"codes":true,"samples":30000)"));
}

// Classes are tied to their codes; numbers are no codes.
TEST(RunConfig, CodesOfTokensAreInTheOutputWhereItIsClasses) {
  for (const auto& [task, tied] : {std::pair{"k-hop", true}, std::pair{"recall", false}}) {
    RunConfig config;
    config.task = task;
    config.fixed_tokens = true;
    EXPECT_EQ(model_spec(config).tied_output, tied) << task;
    EXPECT_TRUE(model_spec(config).fixed_tokens) << task;
  }
}

TEST(RunConfig, FileKeepsDefaultsAndReadsSeeds) {
  RunConfig defaults;
  defaults.batch = 7;
  const ConfigFile file =
      read_config_text("epochs = 5\nrange = 3\nseeds = \"0..2\"\n", "sweep.toml", defaults);
  EXPECT_EQ(file.config.epochs, 5);
  EXPECT_EQ(file.config.range, 3.0);
  EXPECT_EQ(file.config.batch, 7);
  EXPECT_EQ(file.seeds, "0..2");
  EXPECT_EQ(read_config_text("seeds = 4", "x").seeds, "4");
  for (const char* list : {"\"positional,standard\"", "[\"positional\", \"standard\"]"}) {
    EXPECT_EQ(
        read_config_text(std::string("architecture = ") + list + "\n", "x").config.architecture,
        "positional,standard");
  }
}

TEST(RunConfig, UnknownKeyNamesFileLineAndNearestKey) {
  const auto [code, text] = error_of_toml("task = \"sort\"\n\n# a comment\nepocs = 3\n");
  EXPECT_EQ(code, ExitCode::configuration);
  EXPECT_THAT(text, HasSubstr("unknown key 'epocs' in sweep.toml:4"));
  EXPECT_THAT(text, HasSubstr("did you mean 'epochs'?"));
}

TEST(RunConfig, BadFilesAreRefusedWithTheirLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\nbatch = \"many\"\n", "wrong type of 'batch' in sweep.toml:2"},
      {"batch = 2.5\n", "wrong type of 'batch' in sweep.toml:1"},
      {"task = 3\n", "wrong type of 'task' in sweep.toml:1"},
      {"integers = 1\n", "wrong type of 'integers' in sweep.toml:1"},
      {"[training]\nbatch = 5\n", "unknown key 'training' in sweep.toml:1"},
      {"batch = 0\n", "batch = 0 in sweep.toml:1"},
      {"lr = -1.0\n", "lr = -1 in sweep.toml:1"},
      {"lr = nan\n", "lr = nan in sweep.toml:1"},
      {"optimiser = \"adm\"\n", "unknown optimiser 'adm' in sweep.toml:1"},
      {"batch = \n", "sweep.toml:1 is not TOML"},
      {"batch = 1\nbatch = 2\n", "sweep.toml:2 is not TOML"},
      {"seeds = true\n", "wrong type of 'seeds' in sweep.toml:1"},
      {"\nseeds = \"5..1\"\n", "seeds: '5..1' in sweep.toml:2"},
      {"seeds = \"0,0\"\n", "seeds: '0,0' in sweep.toml:1"},
      {"seeds = \"\"\n", "in sweep.toml:1"},
      {"seeds = -1\n", "in sweep.toml:1"},
      {"architecture = \"positional,\"\n", "an empty name"},
      {"\narchitecture = \"positional,standrad\"\n",
       "unknown architecture 'standrad' in sweep.toml:2"},
      {"architecture = [\"standard\", \"standard\"]\n", "is given twice in sweep.toml:1"},
      {"architecture = []\n", "wrong type of 'architecture' in sweep.toml:1"},
      {"architecture = [\"standard\", 3]\n", "wrong type of 'architecture' in sweep.toml:1"},
      {"task = [\"sort\"]\n", "wrong type of 'task' in sweep.toml:1"},
  };
  for (const auto& [toml, expected] : cases) {
    const auto [code, text] = error_of_toml(toml);
    EXPECT_EQ(code, ExitCode::configuration) << toml;
    EXPECT_THAT(text, HasSubstr(expected)) << toml;
  }
}

TEST(RunConfig, SetFieldChecksTypeAndRange) {
  RunConfig config;
  set_field(config, "variable-length", "true");
  EXPECT_TRUE(config.variable_length);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"batch", "1e3"},
                                                        {"batch", ""},
                                                        {"batch", "99999999999999999999"},
                                                        {"lr", "0"},
                                                        {"lr", "inf"},
                                                        {"beta1", "1"},
                                                        {"integers", "yes"},
                                                        {"heads", "-1"},
                                                        {"length", "0"},
                                                        {"encoding", "onehot"},
                                                        {"path", "fast"},
                                                        {"nothing", "1"}}) {
    const auto [code, text] =
        error_of([&, &k = key, &v = value] { set_field(config, k, v, "in --set"); });
    EXPECT_EQ(code, ExitCode::configuration) << key;
    EXPECT_THAT(text, HasSubstr("in --set")) << key;
  }
  // What cannot be read at all has the code that the caller says; a bound does not.
  for (const auto& [value, expected] : std::vector<std::pair<std::string, ExitCode>>{
           {"x", ExitCode::usage}, {"1e9", ExitCode::usage}, {"0", ExitCode::configuration}}) {
    const auto refused = error_of(
        [&, &v = value] { set_field(config, "epochs", v, "in --epochs", ExitCode::usage); });
    EXPECT_EQ(refused.first, expected) << value;
  }
}

TEST(RunConfig, ErrorsNameTheBoundThatIsPassed) {
  RunConfig config;
  for (const auto& [key, value, expected] : std::vector<std::array<std::string, 3>>{
           {"epochs", "9223372036854775807", "at least 1, at most 1000000000"},
           {"samples", "99999999999999999999", "at most 1000000000"},
           {"lr", "inf", "above 0, at most 1e+30"},
           {"lr", "1e999", "above 0, at most 1e+30"},
           {"seed", "9223372036854775807", "at most 9e+18"}}) {
    const auto [code, text] = error_of([&, &k = key, &v = value] { set_field(config, k, v); });
    EXPECT_EQ(code, ExitCode::configuration) << key;
    EXPECT_THAT(text, HasSubstr(expected)) << key;
  }
}

TEST(RunConfig, ImpossibleSettingsAreRefused) {
  EXPECT_NO_THROW(validate(RunConfig{}));
  const auto refused = [](auto change) {
    RunConfig config;
    change(config);
    return error_of([&] { validate(config); });
  };
  using C = RunConfig;
  EXPECT_EQ(refused([](C& c) { c.task = "cumsum"; }).first, ExitCode::usage);
  EXPECT_EQ(refused([](C& c) { c.architecture = "postional"; }).first, ExitCode::usage);
  const std::vector<std::pair<std::function<void(C&)>, std::string>> cases = {
      {[](C& c) { c.batch = 40000; }, "batch = 40000 with samples = 30000"},
      {[](C& c) { c.heads = 3; }, "heads"},
      {[](C& c) { c.length = 0; }, "length = 0"},
      {[](C& c) { c.lr = -1; }, "lr = -1"},
      {[](C& c) { c.test_scales = "1..x"; }, "test-scales"},
      {[](C& c) { c.warmup_steps = 5; }, "warmup-steps = 5 with schedule plateau"},
      {[](C& c) { c.clip = 1, c.clip_relative = 2; }, "clip = 1 with clip-relative = 2"},
      {[](C& c) { c.clip_relative = 1; }, "clip-relative = 1"},
      {[](C& c) { c.schedule = "warmup-linear", c.warmup_steps = 60031; }, "at most 60030"},
      {[](C& c) { c.task = "path", c.variable_length = true; }, "variable-length with task path"},
      {[](C& c) { c.variable_length = true, c.validation_samples = 7; }, "each of 8 lengths"},
      {[](C& c) { c.variable_length = true, c.shortest_length = 3, c.test_samples = 5; },
       "each of 6 lengths"},
      {[](C& c) { c.shortest_length = 3; }, "shortest-length = 3 with samples of one length"},
      {[](C& c) { c.variable_length = true, c.shortest_length = 9; }, "shortest-length = 9"},
      {[](C& c) { c.samples = 1000000000, c.length = 1000; }, "numbers"},
      {[](C& c) { c.integers = true, c.range = 0.5; }, "range = 0.5 with integers"},
      {[](C& c) { c.range = 1e20; }, "value range [-1e+20, 1e+20]"},
      {[](C& c) { c.range = 1e14, c.test_scales = "1..10,100"; }, "value range [-1e+16, 1e+16]"},
      {[](C& c) { c.integers = true, c.range = 1e7; }, "value range"},
      {[](C& c) { c.precision = "tf32", c.device = "cpu"; }, "precision = tf32 on the CPU"},
  };
  for (const auto& [change, expected] : cases) {
    const auto [code, text] = refused(change);
    EXPECT_EQ(code, ExitCode::configuration) << expected;
    EXPECT_THAT(text, HasSubstr(expected));
  }
  if (device_info().usable) return;
  const auto [code, text] = refused([](C& c) { c.device = "cuda"; });
  EXPECT_EQ(code, ExitCode::device);
  EXPECT_THAT(text, HasSubstr("--device cpu"));
}

TEST(RunConfig, ModelSpecFollowsThePresetAndTheOverrides) {
  RunConfig config;
  ModelSpec spec = model_spec(config);
  EXPECT_EQ(spec.depth, 4);
  EXPECT_EQ(spec.nodes(), 9);
  EXPECT_EQ(spec.encoding_size, 9);
  EXPECT_EQ(preset_name(spec), "positional");
  config.architecture = "standard";
  config.task = "min-sum";
  config.length = 4;
  config.depth = 2;
  config.encoding = Encoding::binary;
  spec = model_spec(config);
  EXPECT_EQ(spec.real_nodes, 8);
  EXPECT_EQ(spec.depth, 2);
  EXPECT_EQ(spec.encoding, Encoding::binary);
  EXPECT_TRUE(spec.positions_in_input);
  for (const char* name : {"one-hot", "binary", "sinusoidal", "random", "learned"}) {
    set_field(config, "encoding", name);
    EXPECT_NO_THROW(validate(config)) << name;
  }
  config.architecture = "m2";  // sees no positions
  EXPECT_THROW(validate(config), Error);
}

TEST(RunConfig, SeedsFallBackToTheRunsSeed) {
  RunConfig config;
  config.seed = 5;
  EXPECT_EQ(config.data_seed_used(), 5u);
  config.weight_seed = 0;
  EXPECT_EQ(config.weight_seed_used(), 0u);
  EXPECT_EQ(config.data_seed_used(), 5u);
}

TEST(RunConfig, AnAutomaticPrecisionIsTf32WhereItIsKnownToTrainAsWell) {
  RunConfig config;
  EXPECT_EQ(config.precision, "auto");
  config.device = "cuda";
  EXPECT_EQ(precision_used(config), "tf32");
  config.from = "model.safetensors";
  EXPECT_EQ(precision_used(config), "fp32");
  config.from = "";
  config.task = "k-hop";  // tokens
  EXPECT_EQ(precision_used(config), "fp32");
  config.precision = "tf32";
  EXPECT_EQ(precision_used(config), "tf32");
  config = {};
  config.device = "cpu";
  EXPECT_EQ(precision_used(config), "fp32");
}

}  // namespace
}  // namespace posattn
