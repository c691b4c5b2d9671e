#include "posattn/programs/lowering/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "posattn/base/error.h"
#include "posattn/base/memory.h"
#include "posattn/evaluation/predict.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/tasks/task.h"

namespace posattn {
namespace {

constexpr int longest_dense = 128;
constexpr int most_dense_processors = 2 * longest_dense;  // some tasks have two nodes per number

// What node i reads through a head: nodes with their weights, which sum to one.
using Reads = std::map<int, double>;

class Compiler {
 public:
  Compiler(const NetworkPlan& plan, const CompileOptions& options)
      : plan_(plan),
        options_(options),
        nodes_(plan.program.processors + 1),
        dense_(options.dense || plan.program.sends()),
        spec_(make_spec()),
        model_{spec_, Parameters<float>(spec_), make_origin()} {}

  Model run() {
    write_encoder();
    for (int l = 0; l < spec_.depth; ++l) {
      write_values(l);
      for (int h = 0; h < spec_.heads; ++h) {
        if (plan_.layers[l].scored()) {
          write_data_scores(l, h);
        } else if (dense_) {
          write_scores(l, h);
        } else {
          write_routes(l, h);
        }
      }
      write_mlp(l);
    }
    const std::span<float> decoder = model_.parameters[names::weight(names::decoding)];
    for (size_t o = 0; o < plan_.outputs.size(); ++o) {
      decoder[static_cast<int64_t>(o) * spec_.width + plan_.outputs[o]] = 1;
    }
    check_finite();
    return std::move(model_);
  }

 private:
  int scratch() const { return nodes_ - 1; }

  ModelSpec make_spec() const {
    ModelSpec spec;
    spec.real_nodes = plan_.program.processors;
    spec.data_columns = static_cast<int>(plan_.program.inputs.size());
    spec.output_columns = static_cast<int>(plan_.program.outputs.size());
    spec.positions_in_input = plan_.constants;
    spec.width = plan_.width;
    spec.heads = plan_.heads;
    spec.depth = static_cast<int>(plan_.layers.size());
    spec.mlp_width = plan_.hidden;
    if (!dense_) spec.scores = Scores::routes;
    if (plan_.program.sends()) {
      for (const PlannedLayer& layer : plan_.layers) {
        spec.kinds += spec.kinds.empty() ? "" : ",";
        spec.kinds += layer.scored() ? "data" : "positions";
      }
    }
    if (spec.routed()) spec.route_places = most_places();
    spec = resolve(spec);
    // In memory as numbers, and again as bytes of the file.
    const ParameterLayout layout(spec);
    uint64_t numbers = 0;
    for (const TensorInfo& tensor : layout.tensors()) numbers += tensor.size;
    require_memory(2 * sizeof(float) * numbers,
                   fmt::format("the model of program '{}'", plan_.program.name),
                   "fewer words or processors make it smaller");
    return spec;
  }

  // A single place has weight 1; any other weight takes the form for several.
  int most_places() const {
    size_t most = 1;
    for (const PlannedLayer& layer : plan_.layers) {
      for (const PlannedHead& head : layer.heads) {
        if (!head.route.is_weighted()) continue;
        most = std::max<size_t>(most, 2);
        for (const auto& row : head.route.weighted) most = std::max(most, row.size());
      }
    }
    return static_cast<int>(most);
  }

  ModelOrigin make_origin() const {
    const StaticProgram& program = plan_.program;
    ModelOrigin origin;
    origin.length = program.length;
    // A program may use more processors than its task has nodes: then the task's samples do not
    // fit.
    const auto found = std::ranges::find(tasks(), program.task, &Task::name);
    if (found != tasks().end() && program.length >= (*found)->shortest_length() &&
        (*found)->shape(program.length).real_nodes == program.processors &&
        (*found)->shape(program.length).data_columns == static_cast<int>(program.inputs.size())) {
      origin.task = program.task;
    }
    origin.integers = std::ranges::all_of(program.inputs,
                                          [&](int w) { return !program.words[w].type.is_real(); });
    if (origin.integers) {
      origin.range = 1;
      for (const int w : program.inputs) {
        const WordType& type = program.words[w].type;
        origin.range = std::max(origin.range, static_cast<double>(std::max(-type.low, type.high)));
      }
    }
    if (!options_.program.empty()) origin.notes["program"] = options_.program;
    origin.notes["compiled"] =
        dense_ ? fmt::format("dense sharpness {}", options_.sharpness) : "routes";
    return origin;
  }

  // A number of the program that is finite in double need not be in the file.
  void check_finite() const {
    for (const TensorInfo& info : model_.parameters.layout().tensors()) {
      if (std::ranges::all_of(model_.parameters.slice(info),
                              [](float x) { return std::isfinite(x); })) {
        continue;
      }
      throw Error(ExitCode::configuration,
                  fmt::format("a factor or constant of program '{}' is beyond fp32 (in {})",
                              plan_.program.name, info.name),
                  fmt::format("numbers up to {:.2g}", std::numeric_limits<float>::max()));
    }
  }

  std::span<float> tensor(int layer, std::string_view name) {
    return model_.parameters[names::of_layer(layer, name)];
  }

  // Columns [x | P]: the input's value, and with P what words start with by position.
  void write_encoder() {
    const StaticProgram& program = plan_.program;
    const std::span<float> encoder = model_.parameters[names::weight(names::encoding)];
    const int64_t inputs = spec_.input_size();
    for (size_t w = 0; w < program.words.size(); ++w) {
      if (plan_.start[w] < 0) continue;
      float* row = &encoder[plan_.start[w] * inputs];
      const std::vector<double>& initial = program.words[w].initial;
      const auto input = std::ranges::find(program.inputs, static_cast<int>(w));
      if (input != program.inputs.end()) {
        row[input - program.inputs.begin()] = 1;
      } else if (plan_.constants) {
        std::ranges::copy(initial, row + program.inputs.size());
      }
    }
  }

  // V selects the columns of each head, O is the identity.
  void write_values(int l) {
    const std::span<float> value = tensor(l, names::weight(names::value));
    const std::span<float> out = tensor(l, names::weight(names::output));
    const int64_t width = spec_.width;
    for (int64_t c = 0; c < width; ++c) out[c * width + c] = 1;
    const auto& heads = plan_.layers[l].heads;
    for (size_t h = 0; h < heads.size(); ++h) {
      for (size_t p = 0; p < heads[h].columns.size(); ++p) {
        const auto row = static_cast<int64_t>(h) * spec_.head_size() + static_cast<int64_t>(p);
        value[row * width + heads[h].columns[p]] = 1;
      }
    }
  }

  void write_mlp(int l) {
    const PlannedLayer& layer = plan_.layers[l];
    const auto write = [](std::span<float> weight, int64_t in,
                          const std::vector<LinearForm>& rows) {
      for (size_t r = 0; r < rows.size(); ++r) {
        for (const auto& [column, factor] : rows[r]) {
          weight[r * in + column] = static_cast<float>(factor);
        }
      }
    };
    write(tensor(l, names::weight(names::mlp_map(0))), int64_t{2} * spec_.width, layer.units);
    write(tensor(l, names::weight(names::mlp_map(1))), spec_.mlp_width, layer.columns);
  }

  // The only place that a node reads, or -1. The scratch node reads itself, and all nodes read it
  // through a head that the layer does not use.
  int place_of(int l, int h, int node) const {
    const auto& heads = plan_.layers[l].heads;
    if (node == scratch() || h >= static_cast<int>(heads.size())) return scratch();
    return heads[h].route.is_weighted() ? -1 : heads[h].route.sources[node];
  }

  Reads reads_of(int l, int h, int node) const {
    const int place = place_of(l, h, node);
    if (place >= 0) return {{place, 1.0}};
    const Route& route = plan_.layers[l].heads[h].route;
    Reads reads;
    double rest = 1;
    for (const auto& [from, weight] : route.weighted[node]) {
      if (weight == 0) continue;
      reads[from] += weight;
      rest -= weight;
    }
    // Mass to spare is the scratch node's; what rounding leaves is none.
    if (rest > 1e-7) reads[scratch()] += rest;
    return reads;
  }

  void write_routes(int l, int h) {
    const std::span<float> routes = tensor(l, names::routes);
    const int places = spec_.route_places;
    if (places == 1) {
      for (int i = 0; i < nodes_; ++i) {
        routes[int64_t{1} * h * nodes_ + i] = static_cast<float>(place_of(l, h, i));
      }
      return;
    }
    const std::span<float> weights = tensor(l, names::route_weights);
    for (int i = 0; i < nodes_; ++i) {
      int64_t at = (int64_t{1} * h * nodes_ + i) * places;
      const int64_t end = at + places;
      std::fill(&routes[at], &routes[at] + places, static_cast<float>(scratch()));
      for (const auto& [node, weight] : reads_of(l, h, i)) {
        if (node == scratch() && at == end) break;  // has what the others leave
        routes[at] = static_cast<float>(node);
        weights[at++] = static_cast<float>(weight);
      }
    }
  }

  // One-hot keys K = I, so that column i of W_Q, times 1 / sqrt(d_k), is node i's row of scores.
  void write_scores(int l, int h) {
    const std::span<float> projection = tensor(l, names::weight(names::query_key));
    const int64_t key = spec_.key_size();
    float* query = &projection[2 * h * key * key];
    float* keys = query + key * key;
    const double scale = std::sqrt(static_cast<double>(key));
    for (int64_t j = 0; j < key; ++j) keys[j * key + j] = 1;
    for (int i = 0; i < nodes_; ++i) {
      const Reads reads = reads_of(l, h, i);
      if (reads.size() == 1) {
        query[reads.begin()->first * key + i] = static_cast<float>(options_.sharpness * scale);
        continue;
      }
      for (int64_t j = 0; j < key; ++j) {
        const auto found = reads.find(static_cast<int>(j));
        const double score = found == reads.end() ? -options_.sharpness : std::log(found->second);
        query[j * key + i] = static_cast<float>(score * scale);
      }
    }
  }

  // Scores of messages (messages/by_attention.cc), b / 2 = sharpness or up to twice as much: b
  // times sqrt(d_k) is a power of two, so that products are exact. A bias makes the scratch node,
  // whose words are zero, read itself.
  void write_data_scores(int l, int h) {
    const auto& heads = plan_.layers[l].heads;
    if (h >= static_cast<int>(heads.size())) return;  // has no values either
    const PlannedHead::Scored& at = heads[h].scored;
    const std::span<float> projection = tensor(l, names::weight(names::query_key));
    const int64_t key = spec_.width;
    float* query = &projection[2 * h * key * key];
    float* keys = query + key * key;
    const double least = 2 * options_.sharpness * std::sqrt(static_cast<double>(key));
    const auto b = static_cast<float>(std::exp2(std::ceil(std::log2(least))));
    query[at.index] = 2 * b;
    query[key + at.one] = -b;
    query[2 * key + at.index_square] = b;
    query[2 * key + at.one] = -b;
    tensor(l, names::bias(names::query_key))[2 * h * key + 2] = b / 2;
    keys[at.destination] = 1;
    keys[key + at.square] = 1;
    keys[2 * key + at.one] = -1;
  }

  const NetworkPlan& plan_;
  const CompileOptions& options_;
  int nodes_;
  bool dense_;  // queries and keys, not routes
  ModelSpec spec_;
  Model model_;
};

void require_exact_integers(const NetworkPlan& plan) {
  const double limit = std::ldexp(1.0, 24);
  if (plan.largest_integer_sum < limit) return;
  throw Error(ExitCode::configuration,
              fmt::format("whole numbers up to {:.4g} in {}", plan.largest_integer_sum,
                          plan.largest_integer_place),
              "less than 2^24 = 16777216, up to which fp32 is exact",
              "declare smaller ranges: int[lo..hi]");
}

// Scores give weights to seven digits; sums of whole numbers must have all of theirs.
void require_routes_for_integers(const StaticProgram& program) {
  for (const Round& round : program.rounds) {
    for (const Receive& receive : round.receives) {
      if (!receive.route.is_weighted() || receive.type.is_real()) continue;
      throw Error(ExitCode::configuration,
                  fmt::format("dense weights for '{}', a sum of whole numbers", receive.name),
                  "attention as routes",
                  "leave out --dense or --attention data, or declare real words");
    }
  }
}

Error beyond_fp32(const std::string& what) {
  return Error(ExitCode::data, what,
               fmt::format("smaller numbers: a network computes in fp32, up to {:.2g}",
                           std::numeric_limits<float>::max()),
               "the level mpc computes in double");
}

bool is_held(float x) { return std::isfinite(x); }

}  // namespace

Model compile(const NetworkPlan& plan, const CompileOptions& options) {
  const StaticProgram& program = plan.program;
  if (options.dense &&
      (program.length > longest_dense || program.processors > most_dense_processors)) {
    throw Error(ExitCode::configuration,
                fmt::format("dense weights for {} processors at n = {}", program.processors,
                            program.length),
                fmt::format("n up to {}", longest_dense),
                "leave out --dense: routes hold the same attention for any n");
  }
  if (options.dense || program.sends()) require_routes_for_integers(program);
  require_exact_integers(plan);
  if (!(options.sharpness > 0) || !std::isfinite(options.sharpness)) {
    throw Error(ExitCode::configuration, fmt::format("sharpness {}", options.sharpness),
                "a number above 0");
  }
  return Compiler(plan, options).run();
}

Model compile(const StaticProgram& program, const CompileOptions& options) {
  const RoutedProgram routed = route_messages(program, options.routing);
  return compile(plan_network(routed.program, options.sizes), options);
}

std::vector<double> run_network(const Model& model, const StaticProgram& routed,
                                std::span<const double> inputs, int64_t samples) {
  const std::vector<float> rows(inputs.begin(), inputs.end());
  const auto large = std::ranges::find_if_not(rows, is_held) - rows.begin();
  if (large < std::ssize(rows)) {
    const auto columns = std::ssize(routed.inputs);
    throw beyond_fp32(fmt::format("{} of '{}' on processor {}", inputs[large],
                                  routed.words[routed.inputs[large % columns]].name,
                                  large / columns % routed.processors));
  }
  const std::vector<float> outputs = predict_rows(model, rows, samples);
  if (!std::ranges::all_of(outputs, is_held)) {
    throw beyond_fp32(fmt::format("an overflow in the network of program '{}'", routed.name));
  }
  return {outputs.begin(), outputs.end()};
}

}  // namespace posattn
