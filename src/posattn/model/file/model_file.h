// Model files: safetensors with the authors' parameter names; the spec and what the model was
// trained on stand in the metadata. A file without our metadata is accepted where the shapes
// determine the spec. Reading a file reads that file and nothing else: the file of a model of texts
// holds its vocabulary.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/spec.h"

namespace posattn {

class Task;

// Where a model comes from: what evaluate and predict need to know beyond the spec. Empty task:
// unknown (a foreign file).
struct ModelOrigin {
  std::string task;
  std::string task_set = {};  // the task's parameters, as regions=4
  int length = 0;             // the task's n
  bool variable_length = false;
  int shortest_length = 0;  // of those that it was trained on; 0: the task's
  double range = 2;         // trained on values in [-range, range]
  bool integers = false;
  std::map<std::string, std::string> notes;   // further metadata: seed, epoch, losses, ...
  std::shared_ptr<const Task> own_task = {};  // in the tokens of the file's own vocabulary, if any
};

// The task of this origin: its own, or else the registered one of its name, with its parameters;
// null for a name that this program does not know. Throws as variant_of.
const Task* task_of(const ModelOrigin& origin);
// The same; throws as task_named_in does where there is none.
const Task& task_of(const ModelOrigin& origin, const std::string& file);

struct Model {
  ModelSpec spec;
  Parameters<float> parameters;
  ModelOrigin origin;
};

// The user's hints about a file that has no metadata of ours; a hint that contradicts the shapes
// (or the metadata) is refused. `vocabulary` is the folder of vocab.json and merges.txt, for files
// of posattn 0.2.0, which named it and did not hold its vocabulary.
struct ModelHints {
  std::optional<std::string> architecture = {}, task = {};
  std::optional<int> length = {}, heads = {};
  std::optional<std::string> vocabulary = {}, task_set = {};
};

// Whether the weights are a program's, exact as written: folding products of them could round.
bool is_compiled(const Model& model);

std::vector<std::byte> model_bytes(const Model& model);  // what save_model writes
void save_model(const std::filesystem::path& path, const Model& model);
Model load_model(const std::filesystem::path& path, const ModelHints& hints = {});

// The two halves of load_model, for those who also need the bytes.
std::vector<std::byte> read_model_file(const std::filesystem::path& path);
Model model_from_bytes(std::span<const std::byte> bytes, const std::string& name,
                       const ModelHints& hints = {});

}  // namespace posattn
