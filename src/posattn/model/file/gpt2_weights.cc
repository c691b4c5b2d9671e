#include "posattn/model/file/gpt2_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "posattn/base/error.h"
#include "posattn/base/file.h"
#include "posattn/model/file/half.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr uint64_t config_limit = 1 << 20, weights_limit = uint64_t{1} << 36;
constexpr std::string_view output_table = "lm_head.weight", token_table = "wte.weight";

// `count` outputs of a public map, from `column` on, are those from `row` on of a map of ours.
struct Part {
  std::string ours;
  int64_t row = 0, column = 0, count = 0;
};

// A public tensor [in, out], or [out] with in = 1. A table is read as one row.
struct Mapping {
  std::string name;
  std::vector<int64_t> shape;
  int64_t in = 1;
  std::vector<Part> parts;

  int64_t out() const { return shape.back(); }
};

class Mapper {
 public:
  Mapper(const ModelSpec& spec, int positions) : spec_(spec) {
    const int64_t d = spec.width;
    table(token_table, names::tokens, spec.vocabulary, spec.vocabulary);
    table("wpe.weight", names::positions, positions, spec.real_nodes);
    for (int layer = 0; layer < spec.depth; ++layer) {
      const auto ours = [&](std::string_view name) { return names::of_layer(layer, name); };
      const std::string theirs = fmt::format("h.{}.", layer);
      norm(theirs + "ln_1", ours(names::attention_norm));
      map(theirs + "attn.c_attn", d, 3 * d, attention_parts(layer));
      map(theirs + "attn.c_proj", d, d, {{ours(names::output), 0, 0, d}});
      norm(theirs + "ln_2", ours(names::mlp_norm));
      map(theirs + "mlp.c_fc", d, spec.mlp_width,
          {{ours(names::mlp_map(0)), 0, 0, spec.mlp_width}});
      map(theirs + "mlp.c_proj", spec.mlp_width, d, {{ours(names::mlp_map(1)), 0, 0, d}});
    }
    norm("ln_f", std::string(names::last_norm));
  }

  const std::vector<Mapping>& all() const { return all_; }

 private:
  void table(std::string_view theirs, std::string_view ours, int64_t rows, int64_t used) {
    const int64_t d = spec_.width;
    all_.push_back({std::string(theirs), {rows, d}, 1, {{std::string(ours), 0, 0, used * d}}});
  }
  void norm(const std::string& theirs, const std::string& ours) {
    for (const auto end : {".weight", ".bias"}) {
      all_.push_back({theirs + end, {spec_.width}, 1, {{ours + end, 0, 0, spec_.width}}});
    }
  }
  void map(const std::string& theirs, int64_t in, int64_t out, std::vector<Part> parts) {
    std::vector<Part> biases = parts;
    for (Part& part : parts) part.ours = names::weight(part.ours);
    for (Part& part : biases) part.ours = names::bias(part.ours);
    all_.push_back({theirs + ".weight", {in, out}, in, std::move(parts)});
    all_.push_back({theirs + ".bias", {out}, 1, std::move(biases)});
  }
  std::vector<Part> attention_parts(int layer) const {
    const int64_t d = spec_.width, size = spec_.key_size();
    const std::string query_key = names::of_layer(layer, names::query_key);
    std::vector<Part> parts;
    for (int64_t head = 0; head < spec_.heads; ++head) {
      parts.push_back({query_key, 2 * head * size, head * size, size});
      parts.push_back({query_key, (2 * head + 1) * size, d + head * size, size});
    }
    parts.push_back({names::of_layer(layer, names::value), 0, 2 * d, d});
    return parts;
  }

  const ModelSpec& spec_;
  std::vector<Mapping> all_;
};

// copy(index in theirs, index in ours) for every element of a part.
template <class Copy>
void for_each_element(const Mapping& mapping, const Part& part, Copy&& copy) {
  for (int64_t i = 0; i < mapping.in; ++i) {
    const int64_t theirs = i * mapping.out() + part.column, ours = part.row * mapping.in + i;
    for (int64_t r = 0; r < part.count; ++r) copy(theirs + r, ours + r * mapping.in);
  }
}

// Masks that old versions stored with the weights.
bool is_mask(std::string_view name) {
  return name.starts_with("h.") &&
         (name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias"));
}

class Loader {
 public:
  Loader(const SafetensorsFile& file, const std::string& where) : where_(where) {
    constexpr std::string_view prefix = "transformer.";
    for (const TensorView& tensor : file.tensors) {
      std::string_view name = tensor.name;
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
      if (!tensors_.emplace(name, &tensor).second) {
        throw bad(fmt::format("tensor '{}' stands there twice", name),
                  "once, with or without '" + std::string(prefix) + "'");
      }
    }
  }

  const TensorView& find(std::string_view name, const std::vector<int64_t>& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      throw bad(fmt::format("tensor '{}' is missing", name), "one of shape " + shape_text(shape));
    }
    const TensorView& tensor = *found->second;
    if (tensor.shape != shape) {
      throw bad(fmt::format("tensor '{}' has shape {}", name, shape_text(tensor.shape)),
                fmt::format("{}, as config.json says", shape_text(shape)));
    }
    used_.insert(found->first);
    return tensor;
  }

  std::vector<float> values(const TensorView& tensor) const {
    const auto count = static_cast<int64_t>(tensor.data.size() / element_size(tensor.type));
    std::vector<float> values(count);
    const auto convert = [&](float (*number)(uint16_t)) {
      for (int64_t i = 0; i < count; ++i) {
        uint16_t bits = 0;
        std::memcpy(&bits, tensor.data.data() + i * sizeof bits, sizeof bits);
        values[i] = number(bits);
      }
    };
    switch (tensor.type) {
      case DataType::f32:
        values = tensor.values<float>();
        break;
      case DataType::f16:
        convert(half_to_float);
        break;
      case DataType::bf16:
        convert(bfloat_to_float);
        break;
      default:
        throw bad(fmt::format("tensor '{}' is of type {}", tensor.name, to_string(tensor.type)),
                  "F32, F16 or BF16");
    }
    if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) {
      throw bad(fmt::format("tensor '{}' holds a number that is not finite", tensor.name),
                "finite weights");
    }
    return values;
  }

  void check_rest(const ModelSpec& spec) {
    if (tensors_.contains(output_table)) {
      const std::vector<int64_t> shape = {spec.vocabulary, spec.width};
      if (values(find(output_table, shape)) != values(find(token_table, shape))) {
        throw bad(fmt::format("'{}' is not '{}'", output_table, token_table),
                  "an output that is the table of tokens, as GPT-2's");
      }
    }
    for (const auto& [name, tensor] : tensors_) {
      if (used_.contains(name) || is_mask(name)) continue;
      throw bad(fmt::format("tensor '{}' does not belong to the model", name),
                "the tensors of a GPT-2 of the sizes in config.json");
    }
  }

 private:
  Error bad(const std::string& what, std::string expected) const {
    return Error(ExitCode::data, fmt::format("{}: {}", where_, what), std::move(expected),
                 "config.json and model.safetensors must be of one model");
  }

  const std::string& where_;
  std::map<std::string_view, const TensorView*> tensors_;  // without the prefix
  std::set<std::string_view> used_;
};

}  // namespace

Parameters<float> gpt2_parameters(const Gpt2Config& config, const ModelSpec& spec,
                                  const SafetensorsFile& file, const std::string& where) {
  Loader loader(file, where);
  const Mapper mapper(spec, config.positions);
  // Everything is there before memory is taken.
  for (const Mapping& mapping : mapper.all()) loader.find(mapping.name, mapping.shape);
  loader.check_rest(spec);
  Parameters<float> parameters(spec);
  for (const Mapping& mapping : mapper.all()) {
    const std::vector<float> theirs = loader.values(loader.find(mapping.name, mapping.shape));
    for (const Part& part : mapping.parts) {
      const std::span<float> ours = parameters[part.ours];
      for_each_element(mapping, part, [&](int64_t from, int64_t to) { ours[to] = theirs[from]; });
    }
  }
  return parameters;
}

template <class T>
std::map<std::string, PublicTensor> gpt2_tensors(const ModelSpec& spec,
                                                 const Parameters<T>& parameters) {
  std::map<std::string, PublicTensor> tensors;
  const Mapper mapper(spec, spec.real_nodes);
  for (const Mapping& mapping : mapper.all()) {
    PublicTensor& tensor = tensors[mapping.name];
    tensor.shape = mapping.shape;
    int64_t size = 1;
    for (const int64_t extent : mapping.shape) size *= extent;
    tensor.values.resize(size);
    for (const Part& part : mapping.parts) {
      const std::span<const T> ours = parameters[part.ours];
      for_each_element(mapping, part,
                       [&](int64_t to, int64_t from) { tensor.values[to] = ours[from]; });
    }
  }
  return tensors;
}
template std::map<std::string, PublicTensor> gpt2_tensors(const ModelSpec&,
                                                          const Parameters<float>&);
template std::map<std::string, PublicTensor> gpt2_tensors(const ModelSpec&,
                                                          const Parameters<double>&);

bool is_gpt2_folder(const std::filesystem::path& path) {
  return !path.empty() && path_exists(path / "config.json") &&
         path_exists(path / "model.safetensors");
}

Gpt2Config read_gpt2_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  return read_gpt2_config(read_text_file(file, config_limit), file.string());
}

Parameters<float> read_gpt2_parameters(const std::filesystem::path& folder, const ModelSpec& spec) {
  const std::filesystem::path file = folder / "model.safetensors";
  const std::vector<std::byte> bytes = read_file(file, weights_limit);
  return gpt2_parameters(read_gpt2_config(folder), spec, parse_safetensors(bytes, file.string()),
                         file.string());
}

}  // namespace posattn
