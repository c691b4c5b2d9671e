#include <algorithm>
#include <bit>

#include "posattn/model/spec/parameters.h"
#include "posattn/model/spec/tensor_names.h"
#include "posattn/simulation/simulate.h"
#include "posattn/simulation/table.h"

namespace posattn::simulation {
namespace {

using Form = std::vector<double>;  // over [own words | words of head 0 | words of head 1]

// The words that a head reads: at every node the mean over one place or several.
struct HeadReads {
  const std::vector<std::vector<int>>* places = nullptr;  // by node; null: the scratch node
  std::vector<int> words = {};
};

// One layer of a positional network under construction: who reads which words, and hidden units as
// linear forms over the words of the node and what its heads deliver. Biases are zero; constants
// come from word 0, which is 1 on every node but the scratch node.
class LayerWriter {
 public:
  LayerWriter(int width, HeadReads first, HeadReads second)
      : width_(width), heads_{std::move(first), std::move(second)}, constants_(width) {}

  Form own(int word, double factor = 1) const;
  // Word `word` of those that a head reads.
  Form read(int head, int word, double factor = 1) const;

  // word += factor relu(form)
  void add_unit(Form form, int word, double factor);
  // word += form, by one unit where it is never negative.
  void keep(const Form& form, int word, bool never_negative = false);
  // word += factor table(form)
  void add_table(const FittedTable& table, const Form& form, int word, double factor = 1);

  int units() const { return static_cast<int>(forms_.size()) + 1; }  // with that of the constants
  void write(const ModelSpec& spec, Parameters<float>& parameters, int layer) const;

 private:
  struct Target {
    int word;
    double factor;
  };
  void write_heads(const ModelSpec& spec, Parameters<float>& parameters, int layer) const;

  int width_;
  HeadReads heads_[2];
  std::vector<Form> forms_;
  std::vector<Target> targets_;
  std::vector<double> constants_;  // of each word
};

Form operator+(Form left, const Form& right);

Form operator-(Form left, const Form& right);

Form operator+(Form left, const Form& right) {
  std::ranges::transform(left, right, left.begin(), std::plus<>());
  return left;
}

Form operator-(Form left, const Form& right) {
  std::ranges::transform(left, right, left.begin(), std::minus<>());
  return left;
}

Form LayerWriter::own(int word, double factor) const {
  Form form(int64_t{2} * width_);
  form[word] = factor;
  return form;
}

Form LayerWriter::read(int head, int word, double factor) const {
  const std::vector<int>& words = heads_[head].words;
  const auto place = std::ranges::find(words, word) - words.begin();
  Form form(int64_t{2} * width_);
  form[width_ + head * (width_ / 2) + place] = factor;
  return form;
}

void LayerWriter::add_unit(Form form, int word, double factor) {
  forms_.push_back(std::move(form));
  targets_.push_back({word, factor});
}

void LayerWriter::keep(const Form& form, int word, bool never_negative) {
  add_unit(form, word, 1);
  if (!never_negative) add_unit(Form(form.size()) - form, word, -1);
}

void LayerWriter::add_table(const FittedTable& table, const Form& form, int word, double factor) {
  const HingeSum sum = table.hinges();
  constants_[word] += factor * sum.constant;
  for (const Hinge& hinge : sum.hinges) {
    Form at = form;
    for (double& x : at) x *= hinge.direction;
    at[0] -= hinge.direction * hinge.knot;
    add_unit(std::move(at), word, factor * hinge.slope);
  }
}

void LayerWriter::write(const ModelSpec& spec, Parameters<float>& parameters, int layer) const {
  write_heads(spec, parameters, layer);
  const auto first = parameters[names::of_layer(layer, names::weight(names::mlp_map(0)))],
             second = parameters[names::of_layer(layer, names::weight(names::mlp_map(1)))];
  const int64_t in = spec.joined_size(), hidden = spec.mlp_width;
  const auto count = static_cast<int64_t>(forms_.size());
  for (int64_t u = 0; u < count; ++u) {
    std::ranges::transform(forms_[u], &first[u * in],
                           [](double x) { return static_cast<float>(x); });
    second[targets_[u].word * hidden + u] = static_cast<float>(targets_[u].factor);
  }
  // The last unit is the word that is 1, and with it all constants.
  first[count * in] = 1;
  for (int w = 0; w < width_; ++w) {
    second[w * hidden + count] = static_cast<float>(constants_[w] + (w == 0 ? 1 : 0));
  }
}

void LayerWriter::write_heads(const ModelSpec& spec, Parameters<float>& parameters,
                              int layer) const {
  const auto value = parameters[names::of_layer(layer, names::weight(names::value))],
             out = parameters[names::of_layer(layer, names::weight(names::output))],
             routes = parameters[names::of_layer(layer, names::routes)],
             weights = parameters[names::of_layer(layer, names::route_weights)];
  const int nodes = spec.nodes(), places = spec.route_places;
  std::ranges::fill(routes, static_cast<float>(nodes - 1));
  for (int64_t w = 0; w < width_; ++w) out[w * width_ + w] = 1;
  for (int h = 0; h < 2; ++h) {
    for (size_t k = 0; k < heads_[h].words.size(); ++k) {
      const auto row = h * spec.head_size() + static_cast<int64_t>(k);
      value[row * width_ + heads_[h].words[k]] = 1;
    }
    for (int i = 0; i < nodes; ++i) {
      const int64_t at = (int64_t{1} * h * nodes + i) * places;
      if (heads_[h].places == nullptr) {
        weights[at] = 1;
        continue;
      }
      const std::vector<int>& read = (*heads_[h].places)[i];
      for (size_t k = 0; k < read.size(); ++k) {
        routes[at + static_cast<int64_t>(k)] = static_cast<float>(read[k]);
        weights[at + static_cast<int64_t>(k)] = 1 / static_cast<float>(read.size());
      }
    }
  }
}

using Places = std::vector<std::vector<int>>;  // by node

int doubling_steps(int nodes) { return std::bit_width(static_cast<unsigned>(nodes - 1)); }

class Construction {
 public:
  Construction(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
               const std::vector<std::vector<FittedTable>>& tables)
      : network_(network), layers_(layers), tables_(tables), nodes_(network.nodes) {
    heads_ = network.heads();
    int words = 0, channels = heads_;
    for (const FoldedLayer& layer : layers) {
      words = std::max(words, layer.words());
      channels = std::max(channels, layer.channel_count());
    }
    words = std::max(words, layers.back().hidden());
    score_ = 1 + words;
    scratch_ = score_ + heads_;
    width_ = std::max({scratch_ + channels, 2 * words, 2 * channels});
    width_ += width_ % 2;
    place_maps();
  }

  Model run(const ModelOrigin& origin) {
    for (size_t l = 0; l < layers_.size(); ++l) add_layers(l);
    ModelSpec spec;
    spec.real_nodes = network_.real_nodes;
    spec.scratch_nodes = nodes_ * nodes_ + 1 - network_.real_nodes;
    spec.data_columns = network_.data_columns;
    spec.output_columns = network_.decoder.weight.rows;
    spec.positions_in_input = true;
    spec.scores = Scores::routes;
    spec.route_places = nodes_;
    spec.width = width_;
    spec.heads = 2;
    spec.depth = static_cast<int>(written_.size());
    spec.mlp_width = std::ranges::max_element(written_, {}, &LayerWriter::units)->units();
    spec = resolve(spec);
    Model model{spec, Parameters<float>(spec), origin};
    write_ends(model);
    for (size_t l = 0; l < written_.size(); ++l) {
      written_[l].write(spec, model.parameters, static_cast<int>(l));
    }
    return model;
  }

 private:
  int node(int i, int j) const { return pair_node(network_.real_nodes, nodes_, i, j); }
  int word(int k) const { return 1 + k; }
  int score(int head) const { return score_ + head; }
  int scratch(int k) const { return scratch_ + k; }

  template <class Read>
  Places places(const Read& read) const {
    Places result(int64_t{nodes_} * nodes_ + 1);
    result.back() = {nodes_ * nodes_};
    for (int i = 0; i < nodes_; ++i) {
      for (int j = 0; j < nodes_; ++j) result[node(i, j)] = read(i, j);
    }
    return result;
  }

  void place_maps() {
    using List = std::vector<int>;
    own_diagonal_ = places([&](int i, int) { return List{node(i, i)}; });
    key_diagonal_ = places([&](int, int j) { return List{node(j, j)}; });
    row_ = places([&](int i, int) {
      List all;
      for (int j = 0; j < nodes_; ++j) all.push_back(node(i, j));
      return all;
    });
    for (int t = 0; t < doubling_steps(nodes_); ++t) {
      next_.push_back(places([&](int i, int j) { return List{node(i, (j + (1 << t)) % nodes_)}; }));
    }
  }

  static std::vector<int> range(int first, int count) {
    std::vector<int> result(count);
    for (int k = 0; k < count; ++k) result[k] = first + k;
    return result;
  }

  // Words on, as they are. Before the first layer data are signed; all else is not negative.
  void carry(LayerWriter& layer, size_t l) const {
    for (int k = 0; k < layers_[l].words(); ++k) {
      layer.keep(layer.own(word(k)), word(k), is_unsigned(l, k));
    }
  }
  bool is_unsigned(size_t l, int k) const { return k >= layers_[l].signed_words; }

  void add_layers(size_t l) {
    add_scores(l);
    add_maximum(l);
    add_exponentials(l);
    add_logarithms(l);
    add_weighted_values(l);
    add_mlp(l);
  }

  void add_scores(size_t l) {
    const FoldedLayer& folded = layers_[l];
    const auto& tables = tables_[l];
    const int words = folded.words();
    // Data stand on the diagonal only, so that the first layer has to fetch those of i too.
    const HeadReads own =
        l == 0 ? HeadReads{&own_diagonal_, range(word(0), network_.data_columns)} : HeadReads{};
    LayerWriter layer(width_, own, {&key_diagonal_, range(word(0), words)});
    const auto mine = [&](int k, double factor) {
      return is_unsigned(l, k) ? layer.own(word(k), factor) : layer.read(0, word(k), factor);
    };
    const auto query = [&](const AffineForm& form) {
      Form sum = layer.own(0, form.constant);
      for (int k = 0; k < words; ++k) sum = sum + mine(k, form.weight[k]);
      return sum;
    };
    const auto key = [&](const std::vector<double>& weight, double constant) {
      return read_words(layer, weight, constant);
    };
    for (int k = 0; k < words; ++k) layer.keep(mine(k, 1), word(k), is_unsigned(l, k));
    for (int h = 0; h < heads_; ++h) {
      const FoldedHead& head = folded.heads[h];
      // Scores of places stand in the word from the start.
      const Form places = layer.own(score(h), l == 0 ? 1 : 0);
      layer.keep(key(head.linear, 0) + places, score(h));
      for (const ScoreProduct& term : head.products) {
        const Form a = query(term.query), b = key(term.key.weight, term.key.constant);
        layer.add_table(tables[term.of_sum], a + b, score(h), 0.25);
        layer.add_table(tables[term.of_difference], a - b, score(h), -0.25);
      }
    }
    written_.push_back(std::move(layer));
  }

  // A linear form of the words that head 1 reads from node j.
  Form read_words(const LayerWriter& layer, const std::vector<double>& weight,
                  double constant) const {
    Form sum = layer.own(0, constant);
    for (size_t k = 0; k < weight.size(); ++k) {
      sum = sum + layer.read(1, word(static_cast<int>(k)), weight[k]);
    }
    return sum;
  }

  // The maximum of twice as many places each time; it does not matter if some come twice.
  void add_maximum(size_t l) {
    for (size_t t = 0; t < next_.size(); ++t) {
      const int from = t == 0 ? score(0) : scratch(0);
      LayerWriter layer(width_, {&next_[t], range(from, heads_)}, {});
      carry(layer, l);
      for (int h = 0; h < heads_; ++h) {
        const Form here = layer.own(from + h), there = layer.read(0, from + h);
        layer.keep(layer.own(score(h)), score(h));
        layer.keep(there, scratch(h));
        layer.add_unit(here - there, scratch(h), 1);
      }
      written_.push_back(std::move(layer));
    }
  }

  void add_exponentials(size_t l) {
    LayerWriter layer(width_, {}, {});
    carry(layer, l);
    for (int h = 0; h < heads_; ++h) {
      // For a single node the maximum is its score.
      const Form below =
          next_.empty() ? layer.own(score(h), 0) : layer.own(score(h)) - layer.own(scratch(h));
      layer.keep(below, score(h));
      layer.add_table(tables_[l][layers_[l].heads[h].exponential], below, scratch(h));
    }
    written_.push_back(std::move(layer));
  }

  void add_logarithms(size_t l) {
    const FoldedLayer& folded = layers_[l];
    LayerWriter layer(width_, {&row_, range(scratch(0), heads_)},
                      {&key_diagonal_, range(word(0), folded.words())});
    carry(layer, l);
    int channel = 0;
    for (int h = 0; h < heads_; ++h) {
      const FoldedHead& head = folded.heads[h];
      layer.keep(layer.own(score(h)), score(h));
      layer.add_table(tables_[l][head.normaliser], layer.read(0, scratch(h), nodes_), score(h), -1);
      for (const ValueChannel& value : head.channels) {
        layer.add_table(tables_[l][value.logarithm],
                        read_words(layer, value.value.weight, value.value.constant),
                        scratch(channel++));
      }
    }
    written_.push_back(std::move(layer));
  }

  void add_weighted_values(size_t l) {
    LayerWriter layer(width_, {}, {});
    carry(layer, l);
    int channel = 0;
    for (int h = 0; h < heads_; ++h) {
      for (const ValueChannel& value : layers_[l].heads[h].channels) {
        const int at = scratch(channel++);
        layer.add_table(tables_[l][value.weighted], layer.own(score(h)) + layer.own(at), at);
      }
    }
    written_.push_back(std::move(layer));
  }

  void add_mlp(size_t l) {
    const FoldedLayer& folded = layers_[l];
    LayerWriter layer(width_, {&row_, range(scratch(0), folded.channel_count())}, {});
    for (int u = 0; u < folded.hidden(); ++u) {
      Form sum = layer.own(0, folded.own.bias[u]);
      for (int k = 0; k < folded.words(); ++k) {
        sum = sum + layer.own(word(k), folded.own.weight(u, k));
      }
      int channel = 0;
      for (const FoldedHead& head : folded.heads) {
        for (const ValueChannel& value : head.channels) {
          sum = sum + layer.read(0, scratch(channel++), nodes_ * value.to_hidden[u]);
        }
      }
      layer.add_unit(std::move(sum), word(u), 1);
    }
    written_.push_back(std::move(layer));
  }

  // The encoder gives every node its data, the row's place, the scores of places and the constant;
  // the decoder is the original's.
  void write_ends(Model& model) const {
    const auto encoder = model.parameters[names::weight(names::encoding)];
    const int64_t inputs = model.spec.input_size(), data = network_.data_columns;
    const auto at = [&](int w, int64_t input) -> float& { return encoder[w * inputs + input]; };
    for (int c = 0; c < data; ++c) at(word(c), c) = 1;
    for (int i = 0; i < nodes_; ++i) {
      for (int j = 0; j < nodes_; ++j) {
        const int64_t place = data + node(i, j);
        at(0, place) = 1;
        at(word(network_.data_columns + i), place) = 1;
        for (int h = 0; h < heads_; ++h) {
          at(score(h), place) = static_cast<float>(layers_[0].heads[h].places(i, j));
        }
      }
    }
    const auto decoder = model.parameters[names::weight(names::decoding)];
    for (int c = 0; c < model.spec.output_columns; ++c) {
      float* row = &decoder[int64_t{1} * c * width_];
      row[0] = static_cast<float>(network_.decoder.bias[c]);
      for (int k = 0; k < network_.decoder.weight.columns; ++k) {
        row[word(k)] = static_cast<float>(network_.decoder.weight(c, k));
      }
    }
  }

  const StandardNetwork& network_;
  const std::vector<FoldedLayer>& layers_;
  const std::vector<std::vector<FittedTable>>& tables_;
  int nodes_, heads_ = 0;
  int score_ = 0, scratch_ = 0, width_ = 0;  // words: 1 | u | scores | what a stage needs
  Places own_diagonal_, key_diagonal_, row_;
  std::vector<Places> next_;
  std::vector<LayerWriter> written_;
};

}  // namespace

int layers_each(int nodes) { return 5 + doubling_steps(nodes); }

int pair_node(int real_nodes, int nodes, int i, int j) {
  if (i == j && i < real_nodes) return i;
  const int pair = i * nodes + j;
  // Behind the diagonal of real nodes the others follow in their order.
  const int before = std::min(real_nodes, pair / (nodes + 1) + 1);
  return real_nodes + pair - before;
}

Model construct(const StandardNetwork& network, const std::vector<FoldedLayer>& layers,
                const std::vector<std::vector<FittedTable>>& tables, const ModelOrigin& origin) {
  return Construction(network, layers, tables).run(origin);
}

}  // namespace posattn::simulation
