#include "posattn/model/file/model_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/random.h"
#include "posattn/base/temporary_folder_test.h"
#include "posattn/model/file/safetensors.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/text/byte_pair_tokeniser.h"
#include "posattn/text/small_tokeniser_test.h"

namespace posattn {
namespace {

namespace fs = std::filesystem;

class ModelFileTest : public ::testing::Test {
 protected:
  // Saves without our metadata, as a converted state dict is.
  void save_bare(const Model& model) {
    std::vector<TensorView> tensors;
    for (const TensorInfo& info : model.parameters.layout().tensors()) {
      tensors.push_back(make_view(info.name, info.shape, model.parameters.slice(info)));
    }
    write_file(path_, write_safetensors({{"format", "pt"}}, tensors));
  }

  // Saves `model` after `change` has worked on what the file holds.
  template <class Change>
  void save_changed(const Model& model, Change&& change) {
    save_model(path_, model);
    const std::vector<std::byte> bytes = read_file(path_, 1 << 24);
    SafetensorsFile file = parse_safetensors(bytes);
    change(file);
    write_file(path_, write_safetensors(file.metadata, file.tensors));
  }

  std::string refused(ExitCode code, const ModelHints& hints = {}) {
    try {
      load_model(path_, hints);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_TRUE(error.problem().find(path_.string()) != std::string::npos) << error.what();
      return error.what();
    }
    return "no error";
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_.path() / "m.safetensors";
};

Model model_of(const char* preset, int length = 8, int width = 16,
               Encoding encoding = Encoding::one_hot) {
  ModelSpec spec;
  spec.real_nodes = length;
  spec.width = width;
  spec.mlp_width = 12;
  spec.depth = 2;
  spec.encoding = encoding;
  spec.pair_classes = 2;
  apply_preset(preset, spec);
  spec = resolve(spec);
  Model model{spec, Parameters<float>(spec), {}};
  initialise(model.parameters, 1);
  model.origin.task = spec.pair_classes > 0 ? "neighbour-min" : "cumulative-sum";
  model.origin.length = length;
  return model;
}

bool same_values(const Model& a, const Model& b) {
  return std::ranges::equal(a.parameters.values(), b.parameters.values());
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

#define EXPECT_HAS(text, part) EXPECT_PRED2(has, text, part)

TEST_F(ModelFileTest, RoundTripOfEveryPresetAndEncoding) {
  for (const Preset& preset : presets()) {
    for (const Encoding encoding : {Encoding::one_hot, Encoding::random, Encoding::learned,
                                    Encoding::binary, Encoding::sinusoidal}) {
      Model model = model_of(preset.name.c_str(), 5, 16, encoding);
      model.origin.range = 1.1;
      model.origin.integers = true;
      model.origin.variable_length = true;
      model.origin.notes = {{"seed", "3"}, {"epoch", "2000"}};
      save_model(path_, model);
      const Model loaded = load_model(path_, {.architecture = preset.name, .length = 5});
      EXPECT_EQ(loaded.spec, model.spec);
      EXPECT_TRUE(same_values(loaded, model));
      EXPECT_EQ(loaded.origin.task, model.origin.task);
      EXPECT_EQ(loaded.origin.length, 5);
      EXPECT_EQ(loaded.origin.range, 1.1);
      EXPECT_TRUE(loaded.origin.integers && loaded.origin.variable_length);
      EXPECT_EQ(loaded.origin.notes, model.origin.notes);
    }
  }
}

TEST_F(ModelFileTest, HoldsTheShortestLengthOnlyWhereItIsNotTheTasks) {
  Model model = model_of("relative", 5);
  model.origin.variable_length = true;
  save_changed(model, [](auto& file) { EXPECT_FALSE(file.metadata.contains("shortest_length")); });
  EXPECT_EQ(load_model(path_).origin.shortest_length, 0);
  model.origin.shortest_length = 3;
  save_model(path_, model);
  EXPECT_EQ(load_model(path_).origin.shortest_length, 3);
  for (const char* wrong : {"0", "6", "-1", "x"}) {
    save_changed(model, [&](auto& file) { file.metadata["shortest_length"] = wrong; });
    EXPECT_HAS(refused(ExitCode::data), "shortest");
  }
}

TEST_F(ModelFileTest, AModelOfPairsFitsTasksWithThemAlone) {
  Model model = model_of("structural");
  model.origin.task = "sort";
  save_model(path_, model);
  try {
    load_model(path_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_HAS(error.problem(), "does not fit task sort");
  }
}

TEST_F(ModelFileTest, HintsThatContradictTheMetadataAreRefused) {
  save_model(path_, model_of("positional"));
  EXPECT_HAS(refused(ExitCode::usage, {.architecture = "standard"}), "--architecture standard");
  EXPECT_HAS(refused(ExitCode::usage, {.task = "sort"}), "--task sort");
  EXPECT_HAS(refused(ExitCode::usage, {.length = 9}), "--length 9");
  EXPECT_HAS(refused(ExitCode::usage, {.heads = 4}), "--heads 4");
  EXPECT_HAS(refused(ExitCode::usage, {.architecture = "positionl"}), "did you mean");
}

TEST_F(ModelFileTest, DamagedTensorsAreRefused) {
  const Model model = model_of("positional");
  save_changed(model, [](auto& file) { file.tensors.pop_back(); });
  EXPECT_HAS(refused(ExitCode::data), "tensor 'decoding.bias' is missing");
  const float number = 1;
  save_changed(model, [&](auto& file) {
    file.tensors.push_back(make_view<float>("extra", {1}, std::span(&number, 1)));
  });
  EXPECT_HAS(refused(ExitCode::data), "tensor 'extra' does not belong");
  save_changed(model, [](auto& file) { file.tensors[0].shape = {1, 16}; });
  EXPECT_HAS(refused(ExitCode::data), "tensor 'encoding.weight' has shape [1, 16]");
  save_changed(model, [](auto& file) { file.tensors[0].type = DataType::i32; });
  EXPECT_HAS(refused(ExitCode::data), "is of type I32");
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Model damaged = model;
    damaged.parameters["transformer_layers.1.attn.v_proj.bias"][3] = bad;
    save_model(path_, damaged);
    EXPECT_HAS(refused(ExitCode::data), "tensor 'transformer_layers.1.attn.v_proj.bias' holds");
  }
}

Model routed_model(int places) {
  ModelSpec spec;
  spec.width = 4;
  spec.mlp_width = 6;
  spec.depth = 2;
  spec.scores = Scores::routes;
  spec.route_places = places;
  spec = resolve(spec);
  Model model{spec, Parameters<float>(spec), {}};
  initialise(model.parameters, 1);
  model.origin.task = "sort";
  model.origin.length = 8;
  model.origin.notes = {{"compiled", "routes"}};
  int32_t node = 0;
  for (const TensorInfo& tensor : model.parameters.layout().tensors()) {
    for (float& value : model.parameters.slice(tensor)) {
      if (tensor.integers) value = static_cast<float>(node++ * 5 % 9);
      if (tensor.name.ends_with("route_weights")) value = 1.0f / static_cast<float>(places);
    }
  }
  return model;
}

TEST_F(ModelFileTest, RoutedModelsRoundTripWithIntegersInTheFile) {
  for (const int places : {1, 3}) {
    const Model model = routed_model(places);
    save_model(path_, model);
    const Model loaded = load_model(path_);
    EXPECT_EQ(loaded.spec, model.spec);
    EXPECT_TRUE(same_values(loaded, model));
    EXPECT_TRUE(is_compiled(loaded));
    const std::vector<std::byte> bytes = read_file(path_, 1 << 20);
    const SafetensorsFile file = parse_safetensors(bytes);
    const TensorView* routes = file.find("transformer_layers.1.attn.routes");
    ASSERT_NE(routes, nullptr);
    EXPECT_EQ(routes->type, DataType::i32);
    EXPECT_EQ(routes->shape,
              places == 1 ? std::vector<int64_t>({2, 9}) : std::vector<int64_t>({2, 9, places}));
    EXPECT_EQ(file.find("transformer_layers.0.attn.route_weights") != nullptr, places > 1);
    EXPECT_EQ(file.find("transformer_layers.0.attn.qk_proj.weight"), nullptr);
  }
  EXPECT_FALSE(is_compiled(model_of("positional")));
}

TEST_F(ModelFileTest, HostileRoutesAreRefused) {
  const std::string routes = "transformer_layers.1.attn.routes";
  for (const float bad : {-1.0f, 9.0f, 2147483520.0f, -2147483648.0f}) {
    Model model = routed_model(3);
    model.parameters[routes][17] = bad;
    save_model(path_, model);
    EXPECT_HAS(refused(ExitCode::data), "attn.routes' holds");
    EXPECT_HAS(refused(ExitCode::data), "a node: 0 to 8");
  }
  for (const float bad : {-0.1f, 0.5f, 3.0f, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    Model model = routed_model(3);
    model.parameters["transformer_layers.0.attn.route_weights"][7] = bad;
    save_model(path_, model);
    EXPECT_HAS(refused(ExitCode::data), "attn.route_weights' holds");
  }
  const auto find = [](SafetensorsFile& file, const std::string& part) -> TensorView& {
    return *std::ranges::find_if(file.tensors, [&](const TensorView& tensor) {
      return tensor.name.find(part) != std::string::npos;
    });
  };
  save_changed(routed_model(1), [&](auto& file) { find(file, "routes").type = DataType::f32; });
  EXPECT_HAS(refused(ExitCode::data), "attn.routes' is of type F32");
  save_changed(routed_model(3),
               [&](auto& file) { find(file, "route_weights").type = DataType::i32; });
  EXPECT_HAS(refused(ExitCode::data), "route_weights' is of type I32");
  save_changed(routed_model(3), [&](auto& file) {
    std::erase_if(file.tensors,
                  [](const TensorView& t) { return t.name.ends_with("1.attn.route_weights"); });
  });
  EXPECT_HAS(refused(ExitCode::data), "attn.route_weights' is missing");
  save_changed(routed_model(1), [&](auto& file) { file.metadata["variable_length"] = "true"; });
  EXPECT_HAS(refused(ExitCode::data), "a routed model of several lengths");
  save_changed(routed_model(1), [&](auto& file) { file.metadata = {{"format", "pt"}}; });
  EXPECT_HAS(refused(ExitCode::data), "routes but not what model");
}

VocabularyText vocabulary_of(uint64_t seed) {
  const SmallTokeniserFiles files = small_tokeniser(150, " 01", seed);
  return *BytePairTokeniser(files.vocabulary_text(), files.merges_text(), "").vocabulary();
}

// A model of texts in tokens of its own.
Model model_of_texts(uint64_t seed) {
  ModelOrigin origin{.task = "mixed-sum-gpt2", .length = 4, .notes = {}};
  origin.own_task =
      gpt2_task(origin.task, std::make_shared<const BytePairTokeniser>(vocabulary_of(seed)));
  const TaskShape shape = origin.own_task->shape(origin.length);
  ModelSpec spec;
  spec.real_nodes = shape.real_nodes;
  spec.data_columns = 0;
  spec.vocabulary = shape.vocabulary;
  spec.output_columns = shape.output_columns;
  spec.loss = Loss::cross_entropy;
  spec.width = spec.mlp_width = 4;
  spec.depth = 1;
  apply_preset("standard", spec);
  spec = resolve(spec);
  Model model{spec, Parameters<float>(spec), std::move(origin)};
  initialise(model.parameters, seed);
  return model;
}

std::string encoded(const Model& model) {
  std::string text;
  for (const int32_t token :
       task_of(model.origin)->written_answers()->tokeniser().encode("0110 1001 0001 1110 1011")) {
    text += std::to_string(token) + " ";
  }
  return text;
}

TEST_F(ModelFileTest, AModelOfTextsHoldsItsVocabulary) {
  const size_t tasks_before = tasks().size();
  std::vector<Model> loaded;
  for (const uint64_t seed : {1, 2}) {
    const Model model = model_of_texts(seed);
    save_model(path_, model);
    EXPECT_EQ(model_bytes(load_model(path_)), model_bytes(model));
    loaded.push_back(load_model(path_));
    EXPECT_EQ(encoded(loaded.back()), encoded(model));
  }
  EXPECT_NE(encoded(loaded[0]), encoded(loaded[1]));  // each with its own, at the same time
  EXPECT_EQ(tasks().size(), tasks_before);
}

TEST_F(ModelFileTest, AnOlderModelOfTextsNeedsItsFolder) {
  const SmallTokeniserFiles files = small_tokeniser(150, " 01", 1);
  const fs::path folder = folder_.path() / "gpt2";
  fs::create_directory(folder);
  write_file(folder / "vocab.json", files.vocabulary_text());
  write_file(folder / "merges.txt", files.merges_text());
  const Model model = model_of_texts(1);
  save_changed(model, [&](auto& file) {
    file.metadata.erase("vocabulary");
    file.metadata.erase("merges");
    file.metadata["note.tokeniser"] = folder.string();
  });
  EXPECT_HAS(refused(ExitCode::data), "--vocabulary FOLDER");
  const Model loaded = load_model(path_, {.vocabulary = folder.string()});
  EXPECT_EQ(model_bytes(loaded), model_bytes(model));
  EXPECT_HAS(refused(ExitCode::data, {.vocabulary = folder_.path().string()}), "vocab.json");
  save_model(path_, model);
  EXPECT_EQ(model_bytes(load_model(path_, {.vocabulary = folder.string()})), model_bytes(model));
  save_model(path_, model_of_texts(2));
  EXPECT_HAS(refused(ExitCode::usage, {.vocabulary = folder.string()}), "that it holds");
  save_model(path_, model_of("positional"));
  EXPECT_HAS(refused(ExitCode::usage, {.vocabulary = folder.string()}), "a model without one");
  save_bare(model_of("positional"));
  EXPECT_HAS(refused(ExitCode::usage, {.vocabulary = folder.string()}), "does not say its task");
}

TEST_F(ModelFileTest, AVocabularyThatDoesNotBelongIsRefused) {
  const VocabularyText text = vocabulary_of(1);
  const struct {
    const char* key;
    std::string value, part;
  } rows[] = {
      {"vocabulary", text.tokens + "zz\n", "a vocabulary of 408 tokens"},
      {"vocabulary", text.tokens + "a\n", "token 'a' twice"},
      {"vocabulary", "", "no token for byte 0x00"},
      {"merges", text.merges + "x y\n", "merges:151: 'xy' is not in the vocabulary"},
      {"task", "sort", "a vocabulary with task 'sort'"},
      {"length", "5", "does not fit task mixed-sum-gpt2 at length 5"},
  };
  for (const auto& row : rows) {
    save_changed(model_of_texts(1), [&](auto& file) { file.metadata[row.key] = row.value; });
    EXPECT_HAS(refused(ExitCode::data), row.part);
  }
  for (const char* key : {"vocabulary", "merges"}) {
    save_changed(model_of_texts(1), [&](auto& file) { file.metadata.erase(key); });
    EXPECT_HAS(refused(ExitCode::data), std::string("metadata '") + key + "' is missing");
  }
  save_changed(model_of("positional"), [&](auto& file) {
    file.metadata["vocabulary"] = text.tokens;
    file.metadata["merges"] = text.merges;
  });
  EXPECT_HAS(refused(ExitCode::data), "a vocabulary of 407 tokens");
}

TEST_F(ModelFileTest, AFlippedBitIsRefusedOrChangesNothing) {
  for (const Model& model : {model_of("standard", 2, 2), model_of_texts(3)}) {
    const std::vector<std::byte> good = model_bytes(model);
    std::vector<std::byte> bytes = good;
    for (uint64_t seed = 0; seed < 200; ++seed) {
      RandomStream random(seed, Purpose::test_data, 0, 0);
      std::byte& byte = bytes[random.below(static_cast<uint32_t>(bytes.size()))];
      const auto bit = static_cast<std::byte>(1U << random.below(8));
      byte ^= bit;
      try {
        EXPECT_EQ(model_bytes(model_from_bytes(bytes, "m")), good);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data) << error.what();
      }
      byte ^= bit;
    }
  }
}

TEST_F(ModelFileTest, BadMetadataIsRefused) {
  const struct {
    const char *key, *value, *part;
  } rows[] = {
      {"posattn", "2", "format version '2'"},
      {"spec", "{}", "'real_nodes' is missing"},
      {"length", "9", "does not fit task cumulative-sum at length 9"},
      {"length", "eight", "metadata length: 'eight'"},
      {"length", "-1", "metadata length = -1"},
      {"range", "nan", "metadata range"},
      {"range", "-2", "metadata range = -2"},
      {"range", "1e16", "value range [-1e+16, 1e+16]"},
      {"range", "1e-16", "value range [-1e-16, 1e-16]"},
      {"integers", "yes", "metadata integers = 'yes'"},
  };
  for (const auto& row : rows) {
    save_changed(model_of("positional"), [&](auto& file) { file.metadata[row.key] = row.value; });
    EXPECT_HAS(refused(ExitCode::data), row.part);
  }
  save_changed(model_of("positional"), [](auto& file) { file.metadata.erase("task"); });
  EXPECT_HAS(refused(ExitCode::data), "metadata 'task' is missing");
  // A spec far larger than the file must be refused before its memory is taken.
  save_changed(model_of("positional"), [](auto& file) {
    ModelSpec spec;
    spec.depth = 4096;
    file.metadata["spec"] = to_json(resolve(spec));
  });
  EXPECT_HAS(refused(ExitCode::data), "those of 4096 layers");
}

TEST_F(ModelFileTest, MissingTruncatedAndForeignFiles) {
  EXPECT_HAS(refused(ExitCode::data), "No such file");
  write_file(path_, "not a model file at all");
  EXPECT_HAS(refused(ExitCode::data), "the header length is");
  save_model(path_, model_of("positional"));
  fs::resize_file(path_, fs::file_size(path_) - 1);
  EXPECT_HAS(refused(ExitCode::data), "damaged");
  const float number = 1;
  write_file(path_,
             write_safetensors({}, {make_view<float>("wte.weight", {1}, std::span(&number, 1))}));
  EXPECT_HAS(refused(ExitCode::data), "tensor 'encoding.weight' is missing");
}

// With and without metadata: a damaged header gives an Error, or a model that is whole.
TEST_F(ModelFileTest, DamagedHeadersNeverCrash) {
  for (const bool bare : {false, true}) {
    if (bare) {
      save_bare(model_of("standard", 2, 2));
    } else {
      save_model(path_, model_of("standard", 2, 2));
    }
    const std::vector<std::byte> good = read_file(path_, 1 << 20);
    uint64_t header = 0;
    std::memcpy(&header, good.data(), sizeof header);
    for (uint32_t seed = 0; seed < 300; ++seed) {
      RandomStream random(seed, Purpose::test_data, bare, 0);
      std::vector<std::byte> bytes = good;
      bytes[8 + random.below(static_cast<uint32_t>(header))] = std::byte('0' + random.below(10));
      std::ofstream(path_, std::ios::binary)  // write_file waits for the disk every time
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      try {
        const Model model = load_model(path_);
        EXPECT_EQ(model.spec, resolve(model.spec));
      } catch (const Error& error) {
        EXPECT_NE(error.code(), ExitCode::failed);
      }
    }
  }
}

TEST_F(ModelFileTest, ShapesAloneTellPositionalAndStandard) {
  for (const char* preset : {"positional", "standard", "m1", "positional-direct"}) {
    for (const int length : {1, 2, 8}) {
      Model model = model_of(preset, length);
      save_bare(model);
      const Model loaded = load_model(path_);
      EXPECT_EQ(loaded.spec, model.spec) << preset << " " << length;
      EXPECT_TRUE(same_values(loaded, model));
      EXPECT_EQ(loaded.origin.task, "");
      EXPECT_EQ(loaded.origin.length, length);
    }
  }
}

TEST_F(ModelFileTest, TaskHintGivesTheTasksOwnLength) {
  save_bare(model_of("positional", 8));
  const Model loaded = load_model(path_, {.task = "min-sum"});
  EXPECT_EQ(loaded.origin.task, "min-sum");
  EXPECT_EQ(loaded.origin.length, 4);
  EXPECT_EQ(load_model(path_, {.task = "min-sum", .length = 4}).origin.length, 4);
  EXPECT_HAS(refused(ExitCode::usage, {.task = "min-sum", .length = 8}), "--length 8");
  EXPECT_HAS(refused(ExitCode::usage, {.task = "path"}), "--task path");
  EXPECT_HAS(refused(ExitCode::usage, {.task = "cumsum"}), "unknown task 'cumsum'");
}

TEST_F(ModelFileTest, AmbiguousShapesNameTheFlagThatSettles) {
  // n + 1 = width: positional, or one of those that attend to the data.
  Model model = model_of("positional", 15, 16);
  save_bare(model);
  const std::string message = refused(ExitCode::usage);
  EXPECT_HAS(message, "positional (15 nodes and a scratch node)");
  EXPECT_HAS(message, "m2 (any length)");
  EXPECT_HAS(message, "--architecture");
  EXPECT_EQ(load_model(path_, {.architecture = "positional"}).spec, model.spec);
  EXPECT_EQ(load_model(path_, {.architecture = "m5"}).spec, model.spec);
  EXPECT_HAS(refused(ExitCode::usage, {.architecture = "m4"}), "say which with --length");
  const Model other = load_model(path_, {.architecture = "m4", .length = 8});
  EXPECT_EQ(other.spec, model_of("m4", 8).spec);

  // m3 looks like a longer positional model; the length settles it.
  model = model_of("m3", 8);
  save_bare(model);
  EXPECT_HAS(refused(ExitCode::usage), "m3 (8 nodes and a scratch node)");
  EXPECT_EQ(load_model(path_, {.length = 8}).spec, model.spec);
  EXPECT_EQ(load_model(path_, {.length = 24}).spec, model_of("positional", 24).spec);
}

TEST_F(ModelFileTest, HintsThatContradictTheShapesAreRefused) {
  save_bare(model_of("standard"));
  EXPECT_EQ(load_model(path_, {.architecture = "standard-rope"}).spec,
            model_of("standard-rope").spec);
  EXPECT_EQ(load_model(path_, {.heads = 2}).spec.heads, 2);
  const std::string message = refused(ExitCode::usage, {.architecture = "positional", .length = 8});
  EXPECT_HAS(message, "the shapes contradict --architecture positional --length 8");
  EXPECT_HAS(message, "standard (8 nodes and a scratch node)");
  EXPECT_HAS(refused(ExitCode::usage, {.length = 7}), "--length 7");
  EXPECT_HAS(refused(ExitCode::usage, {.length = 0}), "--length 0");
  EXPECT_HAS(refused(ExitCode::usage, {.heads = 4}), "--heads 4");
}

TEST_F(ModelFileTest, StoredPositionsNeedMetadata) {
  save_bare(model_of("positional", 8, 16, Encoding::learned));
  EXPECT_HAS(refused(ExitCode::data), "metadata that tells random from learned");
}

}  // namespace
}  // namespace posattn
