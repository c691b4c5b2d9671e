#include "posattn/model/file/infer_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "posattn/base/error.h"
#include "posattn/model/spec/tensor_names.h"

namespace posattn {
namespace {

constexpr int layer_limit = 1 << 12;       // as in a spec
constexpr int64_t extent_limit = 1 << 20;  // as in a spec: sums and products below fit an int64_t
constexpr const char* where_spec_comes_from =
    "posattn's own files carry their spec as metadata; scripts/convert.py keeps it with --metadata";

// The sizes that the tensors show directly.
struct Sizes {
  int64_t width = 0, inputs = 0, outputs = 0, heads = 0, mlp_width = 0;
  int64_t key = 0;          // columns of qk_proj.weight; 0 with direct attention
  int64_t score_nodes = 0;  // of attn.scores; 0 without direct attention
  int depth = 0, mlp_depth = 0;
};

const std::vector<int64_t>& shape_of(const SafetensorsFile& file, const std::string& name,
                                     size_t rank) {
  const TensorView* tensor = file.find(name);
  if (tensor == nullptr) {
    throw Error(ExitCode::data, fmt::format("tensor '{}' is missing", name),
                "the parameter names of a positional or standard Transformer",
                where_spec_comes_from);
  }
  const bool fits = tensor->shape.size() == rank &&
                    std::all_of(tensor->shape.begin(), tensor->shape.end(), [](int64_t extent) {
                      return extent >= 1 && extent <= extent_limit;
                    });
  if (!fits) {
    throw Error(ExitCode::data, fmt::format("tensor '{}' has an impossible shape", name),
                fmt::format("{} sizes from 1 to {}", rank, extent_limit));
  }
  return tensor->shape;
}

Sizes sizes_of(const SafetensorsFile& file) {
  if (file.find(names::positions) != nullptr) {
    throw Error(ExitCode::data, "the file holds its own positions but not what kind they are",
                "metadata that tells random from learned positions", where_spec_comes_from);
  }
  if (file.find(names::of_layer(0, names::routes)) != nullptr) {
    throw Error(ExitCode::data, "the file holds routes but not what model they belong to",
                "the metadata of a routed model", where_spec_comes_from);
  }
  Sizes sizes;
  const auto& encoding = shape_of(file, names::weight(names::encoding), 2);
  sizes.width = encoding[0];
  sizes.inputs = encoding[1];
  sizes.outputs = shape_of(file, names::weight(names::decoding), 2)[0];
  const auto count = [&](auto&& name) {
    int found = 0;
    while (found <= layer_limit && file.find(name(found)) != nullptr) ++found;
    return found;
  };
  sizes.depth = count([](int i) { return names::of_layer(i, names::weight(names::value)); });
  sizes.mlp_depth =
      count([](int i) { return names::of_layer(0, names::weight(names::mlp_map(i))); });
  sizes.mlp_width = shape_of(file, names::of_layer(0, names::weight(names::mlp_map(0))), 2)[0];
  if (file.find(names::of_layer(0, names::scores)) != nullptr) {
    const auto& scores = shape_of(file, names::of_layer(0, names::scores), 3);
    sizes.heads = scores[0];
    sizes.score_nodes = scores[1];
    return sizes;
  }
  const auto& qk = shape_of(file, names::of_layer(0, names::weight(names::query_key)), 2);
  sizes.key = qk[1];
  sizes.heads = qk[0] / (2 * sizes.key);
  if (sizes.heads * 2 * sizes.key != qk[0]) {
    throw Error(ExitCode::data, fmt::format("qk_proj.weight has {} rows", qk[0]),
                fmt::format("a multiple of twice its {} columns", sizes.key));
  }
  return sizes;
}

// A preset that agrees with the sizes; nodes is 0 where they leave it open.
struct Fit {
  std::string preset;
  int64_t nodes = 0;
};

std::optional<Fit> fit(const std::string& preset, const Sizes& sizes) {
  ModelSpec spec;
  apply_preset(preset, spec);
  std::vector<int64_t> claims;  // of the number of nodes; they must agree
  const bool direct = spec.scores == Scores::direct;
  if (direct != (sizes.score_nodes > 0) || spec.scores == Scores::distance || spec.reads_pairs()) {
    return {};
  }
  if (spec.positions_in_input) {
    claims.push_back(sizes.inputs - sizes.outputs);
  } else if (sizes.inputs != sizes.outputs) {
    return {};
  }
  if (spec.scores == Scores::direct) {
    claims.push_back(sizes.score_nodes);
  } else if (spec.attention == AttentionSource::positions) {
    claims.push_back(sizes.key);
  } else if (spec.attention == AttentionSource::data_and_positions) {
    claims.push_back(sizes.key - sizes.width);
  } else if (sizes.key != sizes.width) {
    return {};
  }
  if (claims.empty()) return Fit{preset, 0};
  if (claims.front() != claims.back() || claims.front() < 2) return {};
  return Fit{preset, claims.front()};
}

std::string describe(const std::vector<Fit>& fits) {
  std::string text;
  for (const Fit& fit : fits) {
    const std::string nodes =
        fit.nodes == 0 ? "any length" : fmt::format("{} nodes and a scratch node", fit.nodes - 1);
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", fit.preset, nodes);
  }
  return text.empty() ? "no architecture" : text;
}

std::vector<Fit> all_fits(const Sizes& sizes, const std::optional<std::string>& architecture) {
  std::vector<Fit> fits;
  for (const Preset& preset : presets()) {
    const bool named = architecture == preset.name;
    if (!named && (architecture || !preset.shown_by_shapes)) continue;
    if (const std::optional<Fit> found = fit(preset.name, sizes)) fits.push_back(*found);
  }
  return fits;
}

Fit choose(const Sizes& sizes, const ModelHints& hints, std::optional<int> real_nodes) {
  std::vector<Fit> fits = all_fits(sizes, hints.architecture);
  if (real_nodes) {
    std::erase_if(fits, [&](const Fit& f) { return f.nodes != 0 && f.nodes != *real_nodes + 1; });
    for (Fit& fit : fits) fit.nodes = *real_nodes + 1;
  }
  if (fits.size() == 1 && fits.front().nodes != 0) return fits.front();

  const std::vector<Fit> possible = all_fits(sizes, std::nullopt);
  if (fits.empty() && (hints.architecture || real_nodes)) {
    std::string flags;
    if (hints.architecture) flags += " --architecture " + *hints.architecture;
    if (hints.length) flags += fmt::format(" --length {}", *hints.length);
    throw Error(ExitCode::usage, fmt::format("the shapes contradict{}", flags),
                "what they fit: " + describe(possible));
  }
  if (fits.empty()) {
    throw Error(ExitCode::data, "the shapes fit no architecture with one-hot positions", "",
                where_spec_comes_from);
  }
  const bool open = std::any_of(fits.begin(), fits.end(), [](const Fit& f) { return !f.nodes; });
  const char* flags = fits.size() == 1 ? "--length" : "--architecture";
  throw Error(ExitCode::usage, "the shapes do not determine the model: they fit " + describe(fits),
              "",
              fmt::format("say which with {}{}", flags,
                          open && fits.size() > 1 ? ", and with --length where it is open" : ""));
}

}  // namespace

ModelSpec infer_spec(const SafetensorsFile& file, const ModelHints& hints,
                     std::optional<int> real_nodes) {
  ModelSpec spec;
  if (hints.architecture) apply_preset(*hints.architecture, spec);  // refuses an unknown name
  const Sizes sizes = sizes_of(file);
  if (hints.heads && *hints.heads != sizes.heads) {
    throw Error(ExitCode::usage, fmt::format("the shapes contradict --heads {}", *hints.heads),
                fmt::format("{} heads", sizes.heads));
  }
  const Fit chosen = choose(sizes, hints, real_nodes);
  apply_preset(chosen.preset, spec);
  spec.real_nodes = static_cast<int>(chosen.nodes - 1);
  spec.scratch_nodes = 1;
  spec.data_columns = spec.output_columns = static_cast<int>(sizes.outputs);
  spec.width = static_cast<int>(sizes.width);
  spec.heads = static_cast<int>(sizes.heads);
  spec.depth = sizes.depth;
  spec.mlp_width = static_cast<int>(sizes.mlp_width);
  spec.mlp_depth = sizes.mlp_depth;
  return resolve(spec);
}

}  // namespace posattn
