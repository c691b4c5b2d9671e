#include "posattn/model/file/model_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/base/text.h"
#include "posattn/model/file/infer_spec.h"
#include "posattn/model/file/safetensors.h"
#include "posattn/model/spec/check_batch.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/tasks/task.h"
#include "posattn/tasks/written_prompt.h"
#include "posattn/text/byte_pair_tokeniser.h"

namespace posattn {
namespace {

using Metadata = std::map<std::string, std::string>;

// The numbers of the largest spec that resolve allows, and the header.
constexpr uint64_t file_limit = (uint64_t{1} << 35) + (uint64_t{1} << 27);
constexpr const char* format_key = "posattn";  // its value is the format's version
constexpr const char* format_version = "1";
constexpr std::string_view note_prefix = "note.";
constexpr const char* task_set_key = "task_set";  // where the task's parameters are not standard
constexpr const char* shortest_key = "shortest_length";  // where it is not the task's
constexpr const char *tokens_key = "vocabulary", *merges_key = "merges";  // VocabularyText
constexpr const char* folder_note = "tokeniser";  // of 0.2.0, whose files name a folder instead

Error bad_file(std::string what, std::string expected = {}, std::string hint = {}) {
  return Error(ExitCode::data, std::move(what), std::move(expected), std::move(hint));
}

const VocabularyText* vocabulary_of(const ModelOrigin& origin) {
  const Task* task = task_of(origin);
  const WrittenAnswers* written = task == nullptr ? nullptr : task->written_answers();
  return written == nullptr ? nullptr : written->tokeniser().vocabulary();
}

Metadata metadata_of(const Model& model) {
  const ModelOrigin& origin = model.origin;
  Metadata metadata = {
      {format_key, format_version},
      {"spec", to_json(model.spec)},
      {"task", origin.task},
      {"length", std::to_string(origin.length)},
      {"variable_length", origin.variable_length ? "true" : "false"},
      {"range", fmt::format("{}", origin.range)},
      {"integers", origin.integers ? "true" : "false"},
  };
  if (!origin.task_set.empty()) metadata[task_set_key] = origin.task_set;
  if (origin.shortest_length > 0) {
    metadata[shortest_key] = std::to_string(origin.shortest_length);
  }
  for (const auto& [key, value] : origin.notes) metadata[std::string(note_prefix) + key] = value;
  if (const VocabularyText* vocabulary = vocabulary_of(origin)) {
    metadata[tokens_key] = vocabulary->tokens;
    metadata[merges_key] = vocabulary->merges;
  }
  return metadata;
}

const std::string& metadata_at(const Metadata& metadata, const std::string& key) {
  const auto found = metadata.find(key);
  if (found == metadata.end()) throw bad_file(fmt::format("metadata '{}' is missing", key));
  return found->second;
}

bool truth_at(const Metadata& metadata, const std::string& key) {
  const std::string& text = metadata_at(metadata, key);
  if (text != "true" && text != "false") {
    throw bad_file(fmt::format("metadata {} = '{}'", key, text), "true or false");
  }
  return text == "true";
}

ModelOrigin origin_from(const Metadata& metadata) try {
  ModelOrigin origin;
  origin.task = metadata_at(metadata, "task");
  const int64_t length = parse_integer(metadata_at(metadata, "length"), "metadata length");
  if (length < 0 || length > 1 << 20) {
    throw bad_file(fmt::format("metadata length = {}", length), "0 to 1048576");
  }
  origin.length = static_cast<int>(length);
  origin.variable_length = truth_at(metadata, "variable_length");
  origin.range = parse_number(metadata_at(metadata, "range"), "metadata range");
  if (origin.range <= 0) {
    throw bad_file(fmt::format("metadata range = {}", origin.range), "a number above 0");
  }
  origin.integers = truth_at(metadata, "integers");
  training_range(origin.range, origin.integers);  // throws where no samples can be drawn
  if (metadata.contains(shortest_key)) {
    const int64_t shortest = parse_integer(metadata_at(metadata, shortest_key), shortest_key);
    if (shortest < 1 || shortest > length) {
      throw bad_file(fmt::format("metadata {} = {}", shortest_key, shortest),
                     fmt::format("1 to {}", length));
    }
    origin.shortest_length = static_cast<int>(shortest);
  }
  if (metadata.contains(task_set_key)) origin.task_set = metadata_at(metadata, task_set_key);
  for (const auto& [key, value] : metadata) {
    if (key.starts_with(note_prefix)) origin.notes[key.substr(note_prefix.size())] = value;
  }
  return origin;
} catch (const Error& error) {  // a bad number is the file's fault here, not the user's
  throw bad_file(error.problem(), error.expected(), error.hint());
}

bool fits(const ModelSpec& spec, const Task& task, int length) {
  if (length < task.shortest_length()) return false;
  const TaskShape shape = task.shape(length);
  return shape.real_nodes == spec.real_nodes && shape.data_columns == spec.data_columns &&
         shape.output_columns == spec.output_columns && pairs_fit(spec, shape);
}

const Task& hinted_task(const ModelHints& hints) {
  return find_task(*hints.task, hints.task_set.value_or(""));
}

// Takes the task from the hint where the file does not name it.
void settle_task(ModelOrigin& origin, const ModelSpec& spec, const ModelHints& hints) {
  if (!hints.task) return;
  const Task& task = hinted_task(hints);
  origin.task = *hints.task;
  origin.task_set = hints.task_set.value_or("");
  for (origin.length = spec.real_nodes; origin.length >= 1; --origin.length) {
    if (fits(spec, task, origin.length)) return;
  }
  throw Error(ExitCode::usage, fmt::format("the shapes contradict --task {}", *hints.task),
              fmt::format("a task of {} nodes with {} numbers in and {} out", spec.real_nodes,
                          spec.data_columns, spec.output_columns));
}

std::optional<int> hinted_real_nodes(const ModelHints& hints) {
  if (!hints.length) return {};
  const int shortest = hints.task ? hinted_task(hints).shortest_length() : 1;
  if (*hints.length < shortest || *hints.length >= 1 << 20) {
    throw Error(ExitCode::usage, fmt::format("--length {}", *hints.length),
                fmt::format("{} to 1048575", shortest));
  }
  return hints.task ? hinted_task(hints).shape(*hints.length).real_nodes : *hints.length;
}

void check_hint(bool same, const char* flag, const std::string& said, const std::string& found) {
  if (same) return;
  throw Error(ExitCode::usage, fmt::format("the file contradicts {} {}", flag, said), found,
              "leave the flag out: the file says what it is");
}

Error vocabulary_refused(const std::string& folder, const std::string& expected) {
  return Error(ExitCode::usage, fmt::format("the file contradicts --vocabulary {}", folder),
               expected, "leave the flag out");
}

// The tokeniser that the file holds or, for an older file, that of the folder which the user names;
// null for a model without one.
std::shared_ptr<const Tokeniser> tokeniser_of(const Metadata& metadata, ModelOrigin& origin,
                                              const ModelHints& hints) {
  const auto folder = origin.notes.extract(folder_note);
  std::shared_ptr<const Tokeniser> held, named;
  if (hints.vocabulary) {
    named = std::make_shared<const BytePairTokeniser>(read_byte_pair_tokeniser(*hints.vocabulary));
  }
  if (metadata.contains(tokens_key) || metadata.contains(merges_key)) {
    held = std::make_shared<const BytePairTokeniser>(
        VocabularyText{metadata_at(metadata, tokens_key), metadata_at(metadata, merges_key)});
    if (named == nullptr || *named->vocabulary() == *held->vocabulary()) return held;
    throw vocabulary_refused(*hints.vocabulary, "the vocabulary that it holds");
  }
  if (folder.empty()) {
    if (named != nullptr) throw vocabulary_refused(*hints.vocabulary, "a model without one");
    return nullptr;
  }
  if (named != nullptr) return named;
  throw bad_file("an older file, which does not hold its vocabulary",
                 fmt::format("the vocabulary of '{}'", printable(folder.mapped())),
                 "--vocabulary FOLDER names it; in Python, "
                 "posattn.load(FILE, vocabulary=FOLDER).save(NEW) writes a file that holds it");
}

void take_own_task(const Metadata& metadata, const ModelSpec& spec, const ModelHints& hints,
                   ModelOrigin& origin) {
  const std::shared_ptr<const Tokeniser> tokeniser = tokeniser_of(metadata, origin, hints);
  if (tokeniser == nullptr) return;
  if (tokeniser->size() != spec.vocabulary) {
    throw bad_file(fmt::format("a vocabulary of {} tokens", tokeniser->size()),
                   fmt::format("{}, as the spec says", spec.vocabulary));
  }
  origin.own_task = gpt2_task(origin.task, tokeniser);
  if (origin.own_task == nullptr) {
    throw bad_file(fmt::format("a vocabulary with task '{}'", printable(origin.task)),
                   "a task in its tokens, such as mixed-min-gpt2", "use a newer posattn");
  }
}

void check_hints(const ModelSpec& spec, const ModelOrigin& origin, const ModelHints& hints) {
  if (hints.architecture) {
    ModelSpec said = spec;
    apply_preset(*hints.architecture, said);
    check_hint(said == spec, "--architecture", *hints.architecture, preset_name(spec));
  }
  if (hints.task) check_hint(*hints.task == origin.task, "--task", *hints.task, origin.task);
  if (hints.task_set) {
    check_hint(*hints.task_set == origin.task_set, "--task-set", *hints.task_set, origin.task_set);
  }
  if (hints.length) {
    check_hint(*hints.length == origin.length, "--length", std::to_string(*hints.length),
               std::to_string(origin.length));
  }
  if (hints.heads) {
    check_hint(*hints.heads == spec.heads, "--heads", std::to_string(*hints.heads),
               std::to_string(spec.heads));
  }
}

// The file's tensors in the order of the layout; it must have exactly these. Checked before any
// memory is taken for the weights.
std::vector<const TensorView*> match_tensors(const ParameterLayout& layout,
                                             const SafetensorsFile& file) {
  std::map<std::string_view, const TensorView*> present;
  for (const TensorView& tensor : file.tensors) present[tensor.name] = &tensor;
  std::vector<const TensorView*> matched;
  for (const TensorInfo& wanted : layout.tensors()) {
    const auto found = present.find(wanted.name);
    if (found == present.end()) {
      throw bad_file(fmt::format("tensor '{}' is missing", wanted.name),
                     fmt::format("one of shape {}", shape_text(wanted.shape)));
    }
    const TensorView& tensor = *found->second;
    if (tensor.shape != wanted.shape) {
      throw bad_file(fmt::format("tensor '{}' has shape {}", wanted.name, shape_text(tensor.shape)),
                     shape_text(wanted.shape));
    }
    const DataType type = wanted.integers ? DataType::i32 : DataType::f32;
    if (tensor.type != type) {
      throw bad_file(fmt::format("tensor '{}' is of type {}", wanted.name, to_string(tensor.type)),
                     std::string(to_string(type)),
                     wanted.integers ? "" : "convert the tensors to 32-bit floats first");
    }
    matched.push_back(&tensor);
    present.erase(found);
  }
  if (!present.empty()) {
    throw bad_file(fmt::format("tensor '{}' does not belong to the model", present.begin()->first),
                   "only the tensors of its spec");
  }
  return matched;
}

// Routes, the only integers of a model: every one must be the index of a node.
void read_routes(const TensorView& tensor, int nodes, std::span<float> routes) {
  for (size_t i = 0; i < routes.size(); ++i) {
    int32_t node = 0;
    std::memcpy(&node, tensor.data.data() + i * sizeof node, sizeof node);
    if (node < 0 || node >= nodes) {
      throw bad_file(fmt::format("tensor '{}' holds {} at index {}", tensor.name, node, i),
                     fmt::format("a node: 0 to {}", nodes - 1));
    }
    routes[i] = static_cast<float>(node);
  }
}

void check_route_weights(const ModelSpec& spec, const Parameters<float>& parameters) {
  if (!spec.routed() || spec.route_places == 1) return;
  for (int layer = 0; layer < spec.depth; ++layer) {
    const std::string name = names::of_layer(layer, names::route_weights);
    const std::span<const float> weights = parameters[name];
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (i % spec.route_places == 0) sum = 0;
      sum += weights[i];
      // Weights that sum to 1 may do so up to their rounding.
      if (weights[i] < 0 || sum > 1 + 1e-5) {
        throw bad_file(fmt::format("tensor '{}' holds {} at index {}", name, weights[i], i),
                       "weights that are not negative and sum to at most 1 in a row");
      }
    }
  }
}

// A model without biases holds zeros in their places.
void check_absent_biases(const ModelSpec& spec, const Parameters<float>& parameters) {
  if (spec.biases == Biases::all) return;
  for (const TensorInfo& tensor : parameters.layout().tensors()) {
    if (tensor.trained || tensor.initial != Initial::zero) continue;
    const std::span<const float> values = parameters.slice(tensor);
    const auto found = std::ranges::find_if(values, [](float value) { return value != 0; });
    if (found == values.end()) continue;
    throw bad_file(fmt::format("tensor '{}' holds {} at index {}", tensor.name, *found,
                               found - values.begin()),
                   "zeros: the model has no biases");
  }
}

Parameters<float> read_parameters(const ModelSpec& spec, const SafetensorsFile& file) {
  if (static_cast<size_t>(spec.depth) > file.tensors.size()) {  // spares a long list of names
    throw bad_file(fmt::format("{} tensors", file.tensors.size()),
                   fmt::format("those of {} layers", spec.depth));
  }
  const auto layout = std::make_shared<const ParameterLayout>(spec);
  const std::vector<const TensorView*> tensors = match_tensors(*layout, file);
  Parameters<float> parameters(layout);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::span<float> values = parameters.slice(layout->tensors()[i]);
    if (layout->tensors()[i].integers) {
      read_routes(*tensors[i], spec.nodes(), values);
      continue;
    }
    std::memcpy(values.data(), tensors[i]->data.data(), values.size_bytes());
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [](float value) { return !std::isfinite(value); });
    if (bad != values.end()) {
      throw bad_file(fmt::format("tensor '{}' holds {} at index {}", tensors[i]->name, *bad,
                                 bad - values.begin()),
                     "finite numbers");
    }
  }
  check_route_weights(spec, parameters);
  check_absent_biases(spec, parameters);
  return parameters;
}

Model model_from(const SafetensorsFile& file, const ModelHints& hints) {
  const auto version = file.metadata.find(format_key);
  if (version == file.metadata.end()) {
    if (hints.vocabulary) {
      throw vocabulary_refused(*hints.vocabulary, "a file that does not say its task");
    }
    const ModelSpec spec = infer_spec(file, hints, hinted_real_nodes(hints));
    ModelOrigin origin;
    origin.length = spec.real_nodes;
    settle_task(origin, spec, hints);
    return Model{spec, read_parameters(spec, file), std::move(origin)};
  }
  if (version->second != format_version) {
    throw bad_file(fmt::format("format version '{}'", version->second),
                   fmt::format("'{}'", format_version), "use a newer posattn");
  }
  const ModelSpec spec = spec_from_json(metadata_at(file.metadata, "spec"));
  ModelOrigin origin = origin_from(file.metadata);
  // A model saved from a file of unknown task: the user may still name it.
  if (origin.task.empty()) settle_task(origin, spec, hints);
  take_own_task(file.metadata, spec, hints, origin);
  const Task* task = task_of(origin);
  if (spec.routed() && origin.variable_length) {
    throw bad_file("a routed model of several lengths", "one length: its places are fixed");
  }
  if (task != nullptr && !fits(spec, *task, origin.length)) {
    throw bad_file(
        fmt::format("the spec does not fit task {} at length {}", origin.task, origin.length));
  }
  check_hints(spec, origin, hints);
  return Model{spec, read_parameters(spec, file), std::move(origin)};
}

}  // namespace

const Task* task_of(const ModelOrigin& origin) {
  if (origin.own_task != nullptr) return origin.own_task.get();
  const auto found = std::ranges::find(tasks(), origin.task, &Task::name);
  return found == tasks().end() ? nullptr : &variant_of(**found, origin.task_set);
}

const Task& task_of(const ModelOrigin& origin, const std::string& file) {
  const Task* task = task_of(origin);
  return task == nullptr ? task_named_in(file, origin.task) : *task;
}

bool is_compiled(const Model& model) { return model.origin.notes.contains("compiled"); }

std::vector<std::byte> model_bytes(const Model& model) {
  std::vector<TensorView> tensors;
  std::deque<std::vector<int32_t>> integers;  // views look into them
  for (const TensorInfo& info : model.parameters.layout().tensors()) {
    const std::span<const float> values = model.parameters.slice(info);
    if (info.integers) {
      integers.emplace_back(values.begin(), values.end());
      tensors.push_back(make_view<int32_t>(info.name, info.shape, integers.back()));
    } else {
      tensors.push_back(make_view(info.name, info.shape, values));
    }
  }
  return write_safetensors(metadata_of(model), tensors);
}

void save_model(const std::filesystem::path& path, const Model& model) {
  write_output_file(path, model_bytes(model));
}

std::vector<std::byte> read_model_file(const std::filesystem::path& path) {
  return read_file(path, file_limit);
}

Model load_model(const std::filesystem::path& path, const ModelHints& hints) {
  return model_from_bytes(read_model_file(path), path.string(), hints);
}

Model model_from_bytes(std::span<const std::byte> bytes, const std::string& name,
                       const ModelHints& hints) {
  const SafetensorsFile file = parse_safetensors(bytes, name);
  try {
    return model_from(file, hints);
  } catch (const Error& error) {
    // A flag may be at fault (usage); all else is the file, also when its spec is impossible.
    throw Error(error.code() == ExitCode::usage ? ExitCode::usage : ExitCode::data,
                fmt::format("{}: {}", name, error.problem()), error.expected(), error.hint());
  }
}

}  // namespace posattn
